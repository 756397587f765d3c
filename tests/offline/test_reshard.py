"""A deployment is divided otherwise: everything is there once, whenever the process is killed."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from holdfast.cluster.frames import CALL, DURABLE, MESSAGE, LogEntry, write
from holdfast.cluster.shards import Homes, first_map
from holdfast.compose.cannot_start import CannotStart
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.shared_queues.work import make_work
from holdfast.offline import tenure as tenure_module
from holdfast.offline.kinds import KINDS, Fate
from holdfast.offline.reshard import STEPS, Plan, Report, reshard
from holdfast.offline.tenure import Tenure, holding
from holdfast.settings import Settings
from holdfast.store.format import records
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT
from holdfast.store.letters.filter import LetterFilter
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader
from holdfast.store.links.resp import Word
from holdfast.store.replays.job_records import Job, JobState, pack_job, unpack_job
from holdfast.store.replays.parameters import ReplayOptions
from tests.offline import made_up as model
from tests.offline.made_up import Division, MadeUp, check, check_nothing_is_left, divided, fill
from tests.store.servers import ValkeyServer
from tests.web.sharding.fleet import Visitor, fleet
from tests.web.sharding.worker import RULES


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    server = ValkeyServer()
    yield server
    server.close()


def settings(valkey: ValkeyServer, data: Path, **more: Any) -> Settings:
    given = {"redis": valkey.url, "data": data, "chat": False, "node": "n", **more}
    return Settings(**given)


async def run(valkey: ValkeyServer, data: Path, plan: Plan, **more: Any) -> Report:
    found = settings(valkey, data, **more)
    async with holding(found) as tenure:
        return await reshard(tenure, found, plan)


def test_each_kind_of_key_has_a_fate_and_what_moves_is_moved_by_one_step() -> None:
    no_kinds = {"generation", "in_generation", "indexes", "prefix", "tag", "unknown_to_former"}
    names = {name for name in dir(RedisKeys("holdfast")) if not name.startswith("_")}
    assert names - no_kinds == {*KINDS}
    moved = [kind for step in STEPS for kind in step.kinds]
    assert sorted(moved) == sorted(
        kind for kind, (fate, _) in KINDS.items() if fate in (Fate.MOVES, Fate.SPREADS)
    )


@pytest.mark.slow
@limits(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made=model.made_up(), counts=st.lists(st.integers(1, 3), min_size=2, max_size=4))
def test_everything_is_there_once_after_every_division(
    valkey: ValkeyServer, tmp_path: Path, made: MadeUp, counts: list[int]
) -> None:
    first, *others = counts
    before = divided(first_map(first))
    model.leave_work(made, before)
    fill(valkey, made, before)
    check(valkey, made)
    for count in others:
        report = asyncio.run(run_among(valkey, tmp_path, count))
        assert (report.after, division(valkey).count) == (count, count)
        model.leave_work(made, division(valkey))
        check(valkey, made)
        check_nothing_is_left(valkey)
        if report.has_moved and others.index(count) == 0:
            model.check_keys(valkey, made, before)
        assert sum(report.sessions.values()) == (len(made.clients) if report.has_moved else 0)


async def run_among(
    valkey: ValkeyServer, data: Path, count: int | None, homes: Homes = model.HOMES
) -> Report:
    """With the homes of the test, which no rules of several workers need yet."""
    found = settings(valkey, data)
    plan = Plan(count, rules=homes is not model.HOMES)
    async with holding(found) as tenure:
        return await reshard(tenure, found, plan, homes=homes)


def division(valkey: ValkeyServer) -> Division:
    return model.division_in(valkey)[1]


EXAMPLE = MadeUp(
    clients={"joe/1": model.IDS.new(7), "ann/1": model.IDS.new(8), "anonymous/-1": "", "kim/2": ""},
    handed={"joe/1": b"1 1 7"},
)
EXAMPLE.clients |= {"anonymous/-1": model.IDS.new(900), "kim/2": model.IDS.new(9)}
for number in range(1, 6):
    wire = b'{"channel":"/kept/a","data":%d}' % number
    EXAMPLE.bodies[number] = records.pack_message(Message(wire, id=number, channel="/kept/a"))
    EXAMPLE.receivers[number] = {"joe/1", "ann/1", "bob/0", "/kept/a", "work:/jobs/a/0"}
    EXAMPLE.marks.setdefault("joe/1", {})[number] = b"1 1 0 1 0"
EXAMPLE.topics["/kept/a"] = b"{}"
EXAMPLE.held["/news"] = orjson.dumps({"v": 1, "since": 5, "reason": "", "who": "operator"})
EXAMPLE.remarks["f1"] = b"{}"
EXAMPLE.requests["ann/1"] = {
    "ann/1|7": model.request("ann/1", ["joe/1", "kim/2"]),
    "ann/1|7 ann/1": b"true",
}
for receiver in ("bob/1", "kim/2"):
    EXAMPLE.letters[f"9{receiver[-1]}"] = DeadLetter.of(
        Message(b"{}", id=9, channel="/news"),
        id=f"9{receiver[-1]}",
        receiver=f"client/{receiver}",
        code="user.update.bad",
        reason="why",
    )
EXAMPLE.keyed["k1"] = (0, 5, 77)


class Killed(Exception):
    """The process ends here."""


class Mortal:
    """A store that is asked for the last time: before its answer, or before that command."""

    def __init__(self, store: Reader, lives: list[int], *, is_done: bool) -> None:
        self._store, self._lives, self._is_done = store, lives, is_done

    async def ask(self, *command: Word) -> Any:
        [answer] = await self.ask_all(command)
        return answer

    async def ask_all(self, *commands: Sequence[Word]) -> list[Any]:
        self._lives[0] -= 1
        if self._lives[0] < 0 and not self._is_done:
            raise Killed
        answers = await self._store.ask_all(*commands)
        if self._lives[0] < 0:
            raise Killed
        return answers


class MortalTenure(Tenure):
    lives: list[int]
    is_done: bool

    async def store(self, shard: int) -> Any:
        return Mortal(await super().store(shard), self.lives, is_done=self.is_done)


async def run_and_die(
    valkey: ValkeyServer,
    data: Path,
    count: int,
    lives: int,
    *,
    is_done: bool,
    homes: Homes = model.HOMES,
) -> bool:
    """Whether it was killed."""
    found = settings(valkey, data)
    async with AsyncExitStack() as stack:
        tenure = MortalTenure(found, stack, "lock")
        tenure.lives, tenure.is_done = [lives], is_done
        try:
            await reshard(tenure, found, Plan(count), homes=homes)
        except Killed:
            return True
    return False


# Thousands of answers of the store, for each of which a busy machine takes its time.
@pytest.mark.timeout(600)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "count", "is_done"), [(1, 2, False), (2, 3, True), (3, 1, False), (2, 1, True)]
)
async def test_whenever_it_is_killed_servers_find_everything_and_the_next_run_goes_on(
    valkey: ValkeyServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: int,
    count: int,
    is_done: bool,
) -> None:
    # So that it can be killed between any two of a few commands.
    monkeypatch.setattr("holdfast.offline.shard_side._MOST_COMMANDS", 9)
    before, found = divided(first_map(first)), set()
    for lives in range(1000):
        fill(valkey, EXAMPLE, before)
        was_killed = await run_and_die(valkey, tmp_path, count, lives, is_done=is_done)
        check(valkey, EXAMPLE)
        now = division(valkey)
        found.add(now.count)
        if lives % 4 == 0 or now.count != first:
            await run_among(valkey, tmp_path, count)
            check(valkey, EXAMPLE)
            check_nothing_is_left(valkey)
            assert division(valkey).count == count
        if not was_killed:
            break
    assert found == {first, count}
    assert lives > 40


@pytest.mark.slow
async def test_workers_follow_a_run_that_was_killed_after_its_decision(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    valkey.ask("FLUSHALL")
    one, two = homes_in(tmp_path)
    async with (
        fleet(one, 1, valkey.url) as server,
        Visitor(server, 0, "joe/1") as joe,
        Visitor(server, 0, "ann/1") as ann,
    ):
        for each in (joe, ann):
            assert (await each.subscribe("/news"))["successful"]
        for number in range(5):
            assert await joe.publish("/news", number)
        await server.end(0, signal.SIGKILL)
    found = state_of(valkey)
    # As the rules of the workers want.
    lives, kept = 20, Homes(dict.fromkeys(RULES, 1))
    while division(valkey).count == 1:
        lives += 1
        valkey.ask("FLUSHALL")
        for name, dump in found.items():
            valkey.ask("RESTORE", name, 0, dump)
        valkey.ask("HDEL", RedisKeys("holdfast").meta, "lease", "holder")
        assert await run_and_die(valkey, tmp_path, 2, lives, is_done=True, homes=kept)
    second = RedisKeys("holdfast", 1)
    assert valkey.ask("HGET", second.meta, "generation") is None
    async with (
        fleet(two, 2, valkey.url) as workers,
        Visitor(workers, 0, "joe/1") as joe,
        Visitor(workers, 1, "ann/1") as ann,
    ):
        for each in (joe, ann):
            await each.hear({*range(5)})
            assert each.heard == [*range(5)]
    generation = valkey.ask("HGET", RedisKeys("holdfast").meta, "generation")
    assert valkey.ask("HGET", second.meta, "generation") == generation == b"2"


def homes_in(directory: Path) -> list[Path]:
    homes = [directory / "one", directory / "two"]
    for each in homes:
        each.mkdir()
    return homes


@pytest.mark.slow
async def test_what_a_killed_run_has_left_can_be_dropped(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    fill(valkey, EXAMPLE, divided(first_map(2)))
    lives = 40
    while not valkey.ask("KEYS", "*:g2:*"):
        assert await run_and_die(valkey, tmp_path, 3, lives, is_done=True)
        lives += 1
    report = await run_among(valkey, tmp_path, None)
    assert (report.has_moved, report.before, report.after) == (False, 2, 2)
    assert report.removed > 0
    check(valkey, EXAMPLE)
    check_nothing_is_left(valkey)


async def test_a_dry_run_says_who_gets_what_and_writes_nothing(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    fill(valkey, EXAMPLE, divided(first_map(1)))
    before = state_of(valkey)
    report = await run(valkey, tmp_path, Plan(3, is_dry=True))
    assert state_of(valkey) == before
    assert (report.before, report.after, report.is_dry, report.has_moved) == (1, 3, True, True)
    assert sum(report.sessions.values()) == 4
    assert (sum(report.entries.values()), report.messages) == (25, 5)
    # Each message has receivers in two shards or more.
    assert report.needed >= 2 * report.memory > 200_000
    done = await run(valkey, tmp_path, Plan(3))
    assert (done.sessions, done.entries) == (report.sessions, report.entries)


def state_of(valkey: ValkeyServer) -> dict[bytes, bytes]:
    return {name: valkey.ask("DUMP", name) for name in sorted(valkey.ask("KEYS", "*"))}


async def test_other_rules_move_what_channels_keep(valkey: ValkeyServer, tmp_path: Path) -> None:
    fill(valkey, EXAMPLE, divided(first_map(3)))
    for segments in (1, 2):
        homes = Homes({"/kept/*": segments, "/jobs/**": 1})
        report = await run_among(valkey, tmp_path, None, homes)
        assert report.has_moved is (homes != model.HOMES) or segments == 2
        assert division(valkey).homes == homes
        check(valkey, EXAMPLE)
        check_nothing_is_left(valkey)


async def test_work_of_a_session_that_leaves_its_queue_waits_there_marked(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    made = MadeUp(clients={f"{each}/1": model.IDS.new(5) for each in model.SUBJECTS})
    for id, session in enumerate(made.clients, 7):
        job = Message(b"{}", id=id, channel=model.JOB)
        make_work(job)
        made.bodies[id], made.receivers[id] = records.pack_message(job), {session}
        made.handed[session] = b"1 1 %d" % id
    fill(valkey, made, divided(first_map(1)))
    await run_among(valkey, tmp_path, 3)
    now = division(valkey)
    model.leave_work(made, now)
    waiting = {id for id, its in made.receivers.items() if its == {model.JOBS}}
    assert 0 < len(waiting) < len(made.bodies)
    assert made.marks[model.JOBS] == dict.fromkeys(waiting, b"0 0 0 1 1")
    check(valkey, made)
    check_nothing_is_left(valkey)


FRAME = write([LogEntry(MESSAGE, "/news", 5, "client/joe/1", DURABLE, b"{}")])
PASSING = write([LogEntry(MESSAGE, "/news", 5, "client/joe/1", 0, b"{}")])
ASKED = write([LogEntry(CALL, "what", 5, "", 0, b"{}")])
PLACE = "abcdefgh 1-7 1"


async def test_nothing_is_decided_that_replicas_do_not_have(
    valkey: ValkeyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tenure_module, "_CONFIRMED_MS", 20)
    fill(valkey, EXAMPLE, divided(first_map(2)))
    before = model.division_in(valkey)
    with pytest.raises(CannotStart, match="replicas:1: 0 replicas of the store of shard 0 have"):
        await run(valkey, tmp_path, Plan(3), durability="replicas:1")
    assert model.division_in(valkey) == before
    check(valkey, EXAMPLE)


async def test_a_request_that_is_unreadable_moves_as_it_is(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    fill(valkey, EXAMPLE, divided(first_map(2)))
    generation, now = model.division_in(valkey)
    at = [RedisKeys("holdfast", shard, generation) for shard in range(2)]
    [home] = [shard for shard in range(2) if now.of("joe/1", EXAMPLE.clients) == shard]
    valkey.ask("HSET", at[1 - home].requests, "joe/1|8", b"{")
    known = model.known("joe/1|8", ["joe/1"])
    for name, value in known.items():
        valkey.ask("HSET", at[home].requests, name, value)
    await run_among(valkey, tmp_path, 1)
    generation, _ = model.division_in(valkey)
    assert valkey.ask("HGET", RedisKeys("holdfast", 0, generation).requests, "joe/1|8") == b"{"


@pytest.mark.parametrize(
    ("part", "frame", "place", "is_left"),
    [
        ("all", FRAME, "", True),
        ("all", FRAME, PLACE, False),
        ("all", PASSING, "", False),
        ("1", ASKED, "", True),
        ("2", ASKED, "", False),
        ("inbox", ASKED, "", True),
    ],
    ids=["stored", "taken", "passing", "call", "call to another one", "inbox"],
)
async def test_what_a_shard_has_not_taken_yet_is_not_lost(
    valkey: ValkeyServer, tmp_path: Path, part: str, frame: bytes, place: str, is_left: bool
) -> None:
    fill(valkey, EXAMPLE, divided(first_map(2)))
    first, second = RedisKeys("holdfast"), RedisKeys("holdfast", 1)
    if part == "inbox":
        valkey.ask("HSET", second.inbox, "0 5", frame)
    else:
        valkey.ask("HSET", first.meta, "openings", "abcdefgh 1-7", "log", PLACE)
        valkey.ask("XADD", first.log, "1-7", "before", "", "place", PLACE, part, frame)
    if place:
        valkey.ask("HSET", second.meta, "place 0", place)
    before = state_of(valkey)
    report = await run(valkey, tmp_path, Plan(1, is_dry=True))
    assert bool(report.untaken) is is_left
    if is_left:
        with pytest.raises(CannotStart, match="shard 1 has not"):
            await run(valkey, tmp_path, Plan(1))
        assert state_of(valkey) == before
    else:
        assert (await run(valkey, tmp_path, Plan(1))).has_moved
        check_nothing_is_left(valkey)


async def test_what_cannot_be_divided_is_refused_and_stays(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    meta = RedisKeys("holdfast").meta
    valkey.ask("FLUSHALL")
    with pytest.raises(CannotStart, match="the store is empty"):
        await run(valkey, tmp_path, Plan(2))
    fill(valkey, EXAMPLE, divided(first_map(1)))
    before = state_of(valkey)
    job = job_in_state(JobState.RUNNING)
    valkey.ask("ZADD", RedisKeys("holdfast").replays, 0, job.id)
    fields: list[Any] = [word for pair in pack_job(job).items() for word in pair]
    valkey.ask("HSET", RedisKeys("holdfast").replay(job.id), *fields)
    with pytest.raises(CannotStart, match="is under way"):
        await run(valkey, tmp_path, Plan(2))
    valkey.ask("DEL", RedisKeys("holdfast").replays, RedisKeys("holdfast").replay(job.id))
    for layout, why in ((2, "upgrade --finish"), (99, "later release")):
        valkey.ask("HSET", meta, "version", layout)
        with pytest.raises(CannotStart, match=why):
            await run(valkey, tmp_path, Plan(2))
    valkey.ask("HSET", meta, "version", LAYOUT)
    assert state_of(valkey) == before


@pytest.mark.slow
async def test_a_server_that_has_the_store_keeps_it(valkey: ValkeyServer, tmp_path: Path) -> None:
    fill(valkey, EXAMPLE, divided(first_map(1)))
    meta = RedisKeys("holdfast").meta
    valkey.ask("HSET", meta, "epoch", "s-1.aaaaaaaa", "lease", 1, "holder", "else")

    async def live() -> None:
        while True:
            valkey.ask("HINCRBY", meta, "lease", 1)
            await asyncio.sleep(0.05)

    living = asyncio.create_task(live())
    try:
        with pytest.raises(StoreUnavailable, match="another server, n, has the store"):
            await run(valkey, tmp_path, Plan(2))
    finally:
        living.cancel()
        await asyncio.wait([living])
    assert valkey.ask("HGET", meta, "epoch") == b"s-1.aaaaaaaa"
    check(valkey, EXAMPLE)


async def test_replays_are_added_and_audits_come_together(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    fill(valkey, EXAMPLE, divided(first_map(3)))
    for shard in range(3):
        job, keys = job_in_state(JobState.DONE), RedisKeys("holdfast", shard)
        job.total, job.acked, job.channels = 10, shard, {"/a": 1}
        valkey.ask("ZADD", keys.replays, 0, job.id)
        fields: list[Any] = [word for pair in pack_job(job).items() for word in pair]
        valkey.ask("HSET", keys.replay(job.id), *fields, "replayed", 4)
    await run_among(valkey, tmp_path, 1)
    keys = RedisKeys("holdfast", 0, 2)
    assert valkey.ask("ZRANGE", keys.replays, 0, -1) == [b"7"]
    job = unpack_job(valkey.ask("HGETALL", keys.replay("7")))
    assert (job.total, job.acked, job.sent, job.channels) == (30, 3, 12, {"/a": 3})
    audit = valkey.ask("XRANGE", keys.audit, "-", "+")
    assert [id for id, _ in audit] == [b"10-0", b"11-0", b"12-0"]


def job_in_state(state: JobState) -> Job:
    return Job("7", "operator", LetterFilter(), ReplayOptions(), state, started=1)
