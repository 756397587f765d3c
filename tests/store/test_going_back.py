"""A store that goes back to an earlier state in use, as if a replica is promoted too early."""

import asyncio
import random
import secrets
from collections import deque
from math import inf
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis

from holdfast.client import Client
from holdfast.delivery.guard.holds import ChannelHold
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED
from holdfast.delivery.messages.session_record import SessionRecord
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.topics.configured import TopicRecord
from holdfast.store.format import publish_keys, records, scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.layouts import LAYOUT, OLDEST_LAYOUT
from holdfast.store.format.opening_scripts import finish_upgrade
from holdfast.store.framing import latest
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.writing import turn_writer
from holdfast.store.writing.reconciliation import Knowledge, KnownQueue
from tests.serving import Server
from tests.store.model import SESSIONS, Both, Model, Room, opening
from tests.store.servers import ValkeyServer
from tests.store.store_process import (
    BASE,
    KEYS,
    StoreProcess,
    ids,
    letter,
    mark,
    message,
    session,
    store_process,
    until,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Past:
    """The state of a store at one moment."""

    def __init__(self, server: ValkeyServer | str) -> None:
        self._redis = Redis.from_url(server if isinstance(server, str) else server.url)
        self._dumped = self._dump()

    def _dump(self) -> dict[Any, Any]:
        """Return everything as it is at one moment."""
        while True:
            names = self._redis.keys("*")
            with self._redis.pipeline(transaction=True) as step:
                step.keys("*")
                for name in names:
                    step.dump(name)
                found, *dumped = step.execute()
            if {*found} == {*names}:
                return dict(zip(names, dumped, strict=True))

    def come_back(self) -> None:
        """The store goes back to this state in one step."""
        with self._redis.pipeline(transaction=True) as step:
            step.flushall()
            for name, dumped in self._dumped.items():
                step.restore(name, 0, dumped)
            step.execute()


class Recorded:
    """A session as the server knows it."""

    def __init__(self, key: str) -> None:
        self.key = key

    def record(self) -> SessionRecord:
        return session(self.key)


def known_queue(receiver: str, *messages: Message) -> KnownQueue:
    return KnownQueue(receiver, messages, tuple)


async def back(at: StoreProcess) -> None:
    """The server has noticed and told everything again."""
    await at.answered()
    await until(lambda: at.store.is_available)
    await at.answered()


async def test_a_store_that_went_back_gets_what_it_lost_and_loses_what_had_left_since(
    at: StoreProcess,
) -> None:
    at.store.save(session("joe/1"))
    at.store.save(session("eve/1"))
    at.store.save_topics({"/gone": TopicRecord()})
    at.store.save_channel_hold("/gone", ChannelHold(1, "why"))
    at.store.save_requests({"/ret/gone": b"asked"})
    at.keep(message(1), "joe/1")
    at.keep(message(2), "joe/1", "eve/1")
    at.store.mark("joe/1", [mark(1, 1)])
    await at.answered()
    past = Past(at.server)
    at.store.settle("joe/1", ids(1), ACKED)
    at.store.forget("eve/1", ids(2))
    at.store.save(session("ann/1"))
    at.keep(message(3), "joe/1", "ann/1", "/history")
    at.store.save_requests({"/ret/gone": b"", "/ret/here": b"asked"})
    await at.answered()
    at.known = Knowledge(
        sessions=[Recorded("joe/1"), Recorded("ann/1")],
        queues=[
            KnownQueue("joe/1", [message(2), message(3)], lambda: [mark(2, 2)]),
            known_queue("ann/1", message(3)),
            known_queue("/history", message(3)),
        ],
        holds={"/held": ChannelHold(2, "why")},
        topics={"/here": TopicRecord()},
        requests={"/ret/here": b"asked"},
    )
    past.come_back()
    at.keep(message(4), "joe/1")
    await back(at)
    assert at.kept[4] == [PersistOutcome.KEPT]
    assert at.queue("joe/1") == {2: "0 2 0 1 0", 3: "", 4: ""}
    assert at.bodies() == {2, 3, 4}
    assert [at.receivers(n) for n in (2, 3)] == [{"joe/1"}, {"joe/1", "ann/1", "/history"}]
    assert at.hash(KEYS.sessions).keys() == {"joe/1", "ann/1"}
    assert await at.store.loading().requests() == {"/ret/here": b"asked"}
    assert at.hash(KEYS.topics).keys() == {"/here"}
    assert at.hash(KEYS.held).keys() == {"/held"}
    assert at.names() >= {KEYS.marks("joe/1")}
    assert at.hash(KEYS.marks("joe/1")).keys() == {str(BASE + 2)}
    assert at.store.losses == 1
    assert "fenced" not in at.events


async def test_a_store_that_lost_the_end_of_an_upgrade_is_in_the_newest_layout_again(
    shared_valkey: ValkeyServer, redis: Redis
) -> None:
    redis.hset(KEYS.meta, mapping={"version": OLDEST_LAYOUT, "generation": KEYS.generation})
    async with store_process(shared_valkey) as at:
        past = Past(at.server)
        past.come_back()
        at.store.save(session("joe/1"))
        await back(at)
        assert at.hash(KEYS.meta)["version"] == str(OLDEST_LAYOUT)
        past = Past(at.server)
        await at.store.run(finish_upgrade(KEYS))
        at.store.layout.enter(LAYOUT)
        past.come_back()
        at.store.save(session("joe/1"))
        await back(at)
        assert at.hash(KEYS.meta)["version"] == str(LAYOUT)
        assert at.store.layout.number == LAYOUT


async def test_calls_that_a_store_did_not_carry_out_are_made_again_with_their_answers(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine is, a turn is sent as one.
    monkeypatch.setattr(turn_writer, "_TURN_S", inf)
    at.store.save(session("joe/1"))
    await at.answered()
    past = Past(at.server)
    at.keep(message(1), "joe/1")
    await at.answered()
    at.known = Knowledge(sessions=[Recorded("joe/1")])
    past.come_back()
    at.keep(message(2, key="k"), "joe/1")
    at.keep(message(3, key="k"), "joe/1")
    at.store.dead_letter([letter(9, of=1)], "joe/1")
    removed = asyncio.create_task(at.store.run(scripts.letters_remove(KEYS, [letter(9)])))
    # Everything before it is sent with it.
    await asyncio.sleep(0)
    await back(at)
    assert await removed == [1]
    assert (at.kept[2], at.kept[3]) == ([PersistOutcome.KEPT], [PersistOutcome.REPEATED])
    assert (at.queue("joe/1"), at.dead()) == ({2: ""}, [])


async def test_publishes_that_wait_for_replicas_are_in_a_store_that_went_back_again(
    shared_valkey: ValkeyServer,
) -> None:
    asked: list[Callable[[bool], None]] = []
    async with store_process(shared_valkey, confirm=lambda _, done: asked.append(done)) as at:
        at.store.save(session("joe/1"))
        await at.answered()
        at.keep(message(1), "joe/1")
        await at.answered()
        past = Past(at.server)
        done: list[PersistOutcome] = []
        fields = {"/ret/here": b"asked"}
        at.store.keep(message(2), ["joe/1", "/history"], done.append, fields)
        at.keep(message(3, key="k"), "joe/1")
        await at.answered()
        # They are in no queue yet.
        at.known = Knowledge(sessions=[Recorded("joe/1")])
        past.come_back()
        at.store.settle("joe/1", ids(9), ACKED)
        await back(at)
        assert at.queue("joe/1") == {1: "", 2: "", 3: ""}
        assert at.receivers(2) == {"joe/1", "/history"}
        assert await at.store.loading().requests() == {"/ret/here": b"asked"}
        for confirmed in asked:
            confirmed(True)
        assert [*at.kept.values(), done] == [[PersistOutcome.KEPT]] * 3
        at.known = Knowledge(sessions=[Recorded("joe/1")])
        past.come_back()
        at.store.settle("joe/1", ids(9), ACKED)
        await back(at)
        assert at.queue("joe/1") == {}


async def test_the_latest_dead_letters_are_in_a_store_that_went_back_again(
    at: StoreProcess,
) -> None:
    at.keep(message(1), "joe/1", "ann/1")
    await at.answered()
    past = Past(at.server)
    at.store.dead_letter([letter(9, of=1)], "joe/1")
    await at.answered()
    at.known = Knowledge(queues=[known_queue("ann/1", message(1))])
    past.come_back()
    at.store.save(session("joe/1"))
    await back(at)
    assert (at.dead(), at.queue("joe/1"), at.queue("ann/1")) == ([9], {}, {1: ""})


async def test_dead_letters_that_were_removed_do_not_come_back(at: StoreProcess) -> None:
    at.store.dead_letter([letter(8, of=1)], "joe/1")
    await at.answered()
    past = Past(at.server)
    at.store.dead_letter([letter(9, of=2), letter(10, of=3)], "joe/1")
    removing = scripts.letters_remove(KEYS, [letter(8), letter(9)])
    assert await at.store.run(removing) == [2]
    past.come_back()
    at.store.save(session("joe/1"))
    await back(at)
    assert at.dead() == [10]


async def test_dead_letters_that_a_store_did_not_remove_are_there(at: StoreProcess) -> None:
    past = Past(at.server)
    at.store.dead_letter([letter(9, of=1)], "joe/1")
    await at.answered()
    at.server.set(min_replicas_to_write="1")
    with pytest.raises(StoreUnavailable, match="NOREPLICAS"):
        await at.store.run(scripts.letters_remove(KEYS, [letter(9)]))
    at.server.set(min_replicas_to_write="0")
    past.come_back()
    at.store.save(session("joe/1"))
    await back(at)
    assert at.dead() == [9]


async def test_the_latest_publish_keys_are_in_a_store_that_went_back_again(
    at: StoreProcess,
) -> None:
    past = Past(at.server)
    at.keep(message(1, key="k"), "joe/1")
    await at.answered()
    at.store.settle("joe/1", ids(1), ACKED)
    await at.answered()
    past.come_back()
    at.keep(message(2, key="k"), "joe/1")
    await back(at)
    assert at.kept[2] == [PersistOutcome.REPEATED]
    assert at.names() == {KEYS.meta, KEYS.handed, KEYS.keyed, KEYS.keyed_order}


@pytest.mark.parametrize("answers_later", [False, True], ids=["away since", "answers later"])
async def test_what_a_store_had_shortly_before_it_was_away_is_there_again_however_late(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch, *, answers_later: bool
) -> None:
    # Every moment in which the store answers is long.
    monkeypatch.setattr(latest, "_KEEP_S", 0.0)
    monkeypatch.setattr(publish_keys, "_LATEST_S", 0.0)
    past = Past(at.server)
    at.store.dead_letter([letter(9, of=8)], "joe/1")
    at.keep(message(1, key="k"), "joe/1")
    await at.answered()
    at.store.settle("joe/1", ids(1), ACKED)
    await at.answered()
    if answers_later:
        at.store.probe()
        await at.answered_line()
    past.come_back()
    at.keep(message(2, key="k"), "joe/1")
    await back(at)
    if answers_later:
        assert (at.dead(), at.kept[2]) == ([], [PersistOutcome.KEPT])
    else:
        assert (at.dead(), at.kept[2]) == ([9], [PersistOutcome.REPEATED])


async def test_the_latest_frames_are_in_a_store_that_went_back_as_they_were(
    at: StoreProcess,
) -> None:
    for n in range(3):
        at.store.journal.write_frame(b"frame %d" % n, [n])
    await at.answered()
    frames = entries(at)
    past = Past(at.server)
    for n in range(3, 6):
        at.store.journal.write_frame(b"frame %d" % n, [n])
    await at.answered()
    frames = entries(at)
    past.come_back()
    at.store.journal.write_frame(b"frame 6", [6])
    await back(at)
    await back(at)
    # Their digests are the same, by which readers recognise repeats.
    assert entries(at)[:6] == frames
    [*_, last] = entries(at)
    assert (last[b"seq"], last[b"frame"]) == (b"7", b"frame 6")
    # It was made before the loss was noticed.
    assert last[b"epoch"] == frames[0][b"epoch"] != at.store.epoch.encode()


async def test_lost_frames_that_are_no_longer_known_leave_a_gap(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at.store.journal, "_latest", deque(maxlen=2))
    past = Past(at.server)
    for n in range(4):
        at.store.journal.write_frame(b"frame %d" % n, [n])
    await at.answered()
    past.come_back()
    at.store.save(session("joe/1"))
    await back(at)
    assert [entry[b"seq"] for entry in entries(at)] == [b"3", b"4"]


def entries(at: StoreProcess) -> list[dict[bytes, bytes]]:
    """The entries of the journal."""
    return [entry for _, entry in at.server.ask("XRANGE", KEYS.journal("test"), "-", "+")]


async def test_writes_and_posted_calls_wait_while_a_store_is_told_what_it_lost(
    at: StoreProcess,
) -> None:
    past = Past(at.server)
    at.keep(message(1), "joe/1")
    await at.answered()
    at.known = Knowledge(queues=[known_queue("joe/1", *map(message, range(1, 3000)))])
    past.come_back()
    at.store.save(session("ann/1"))
    async with asyncio.timeout(60):
        while not at.events:  # noqa: ASYNC110 - in the very next turn
            # Later than in the next turn, it may have been told everything.
            await asyncio.sleep(0)
    assert not at.store.is_available
    at.keep(message(5000), "joe/1")
    at.store.settle("joe/1", ids(*range(2, 3000)), ACKED)
    at.store.save_channel_hold("/a", ChannelHold(1, "why"))
    with pytest.raises(StoreUnavailable):
        await at.store.run(scripts.advance_clock(KEYS, 1, given=0))
    await back(at)
    assert at.kept[5000] == [PersistOutcome.REFUSED]
    assert at.queue("joe/1") == {1: ""}
    assert at.hash(KEYS.held).keys() == {"/a"}


async def test_a_store_that_goes_back_while_it_is_told_is_told_everything_again(
    at: StoreProcess,
) -> None:
    past = Past(at.server)
    at.keep(message(1), "joe/1")
    await at.answered()
    many = [message(n) for n in range(1, 5000)]
    at.known = Knowledge(queues=[known_queue("joe/1", *many)])
    past.come_back()
    at.keep(message(6000), "joe/1")
    at.store.flush()
    await until(lambda: len(at.bodies()) > 1000)
    past.come_back()
    await back(at)
    assert at.queue("joe/1").keys() == {*range(1, 5000), 6000}
    assert at.kept[6000] == [PersistOutcome.KEPT]
    assert at.store.losses == 2


async def test_a_process_that_has_not_loaded_everything_removes_nothing(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    at.keep(message(1), "joe/1")
    await at.answered()
    past = Past(at.server)
    at.keep(message(2), "joe/1")
    await at.answered()
    monkeypatch.setattr(at.store._telling, "_know", lambda: None)
    past.come_back()
    at.keep(message(3), "joe/1")
    await back(at)
    assert at.queue("joe/1") == {1: "", 3: ""}


async def test_records_that_nobody_can_read_stay_in_a_store_that_went_back(
    at: StoreProcess,
) -> None:
    at.keep(message(1), "old/1")
    at.keep(message(2), "joe/1")
    at.server.ask("HSET", KEYS.sessions, "old/1", "of a later release")
    at.server.ask("HSET", KEYS.bodies, str(BASE + 3), "of a later release")
    at.server.ask("SADD", KEYS.receivers(BASE + 3), "joe/1")
    await at.answered()
    past = Past(at.server)
    at.keep(message(4), "joe/1")
    await at.answered()
    past.come_back()
    at.store.settle("joe/1", ids(9), ACKED)
    await back(at)
    assert at.bodies() == {1, 3}
    assert at.hash(KEYS.sessions).keys() == {"old/1"}


async def test_a_store_that_forgot_the_opening_of_this_process_was_not_taken_over(
    shared_valkey: ValkeyServer,
) -> None:
    async with store_process(shared_valkey) as first:
        first.keep(message(1), "joe/1")
        await first.answered()
        past = Past(shared_valkey)
    async with store_process(shared_valkey) as at:
        before = at.store.epoch
        at.known = Knowledge(queues=[known_queue("joe/1", message(1))])
        past.come_back()
        at.keep(message(2), "joe/1")
        await back(at)
        assert (at.kept[2], at.events) == ([PersistOutcome.KEPT], ["emptied"])
        assert number_of(at.store.epoch) > number_of(before)


async def test_a_store_that_is_restored_from_an_old_backup_was_not_taken_over(
    shared_valkey: ValkeyServer, redis: Redis
) -> None:
    room = Room(redis)
    room.open()
    backup = Past(shared_valkey)
    for number in range(900):
        room.call(opening(f"start{number:03d}"))
    async with store_process(shared_valkey) as at:
        at.known = Knowledge(queues=[known_queue("joe/1", message(1))])
        backup.come_back()
        at.keep(message(2), "joe/1")
        await back(at)
        assert (at.kept[2], at.events) == ([PersistOutcome.KEPT], ["emptied"])
        assert at.queue("joe/1") == {1: "", 2: ""}


@pytest.mark.parametrize(
    ("epoch", "says"),
    [
        ("seed-9.rival000", "another process has taken the store over"),
        # Perhaps that of a rival which opened a store that had gone back.
        ("seed-2.unknown0", "If no other server has the store, start this one again"),
        ("other-1.unknown0", "If no other server has the store, start this one again"),
    ],
)
async def test_a_server_that_ends_because_of_an_unknown_epoch_says_what_to_do(
    shared_valkey: ValkeyServer,
    redis: Redis,
    caplog: pytest.LogCaptureFixture,
    epoch: str,
    says: str,
) -> None:
    room = Room(redis)
    room.open()
    for number in range(2):
        room.call(opening(f"start{number:03d}"))
    async with store_process(shared_valkey) as at:
        shared_valkey.ask("HSET", KEYS.meta, "epoch", epoch, "call", "unknown0-000000000000")
        at.store.probe()
        await until(lambda: at.events == ["fenced"])
    assert says in caplog.text


def number_of(epoch: str) -> int:
    return int(epoch.rpartition("-")[2].partition(".")[0])


@pytest.mark.slow
@pytest.mark.parametrize("is_embedded", [False, True])
async def test_an_idle_server_notices_within_two_seconds_that_its_store_went_back(
    shared_valkey: ValkeyServer, *, is_embedded: bool
) -> None:
    server = Server({} if is_embedded else {"redis": shared_valkey.url})
    try:
        url = f"unix://{server.data}/store.sock" if is_embedded else shared_valkey.url
        past = Past(url)
        async with Client(server.url, session="joe/1") as joe:
            await joe.subscribe("/orders")
        # The server makes a call every second.
        await asyncio.sleep(1.5)
        past.come_back()
        with Redis.from_url(url) as redis:
            keys = RedisKeys("holdfast")
            assert not redis.exists(keys.sessions)
            async with asyncio.timeout(60):
                while not redis.exists(keys.sessions):  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.05)
        assert server.log().count("the store has lost changes") == 1
    finally:
        server.stop()


async def test_a_store_that_went_back_and_was_opened_by_another_process_is_lost(
    at: StoreProcess, redis: Redis
) -> None:
    past = Past(at.server)
    at.keep(message(1), "joe/1")
    await at.answered()
    past.come_back()
    Room(redis).call(opening("rival000"))
    at.keep(message(2), "joe/1")
    await until(lambda: at.events == ["fenced"])
    assert at.kept[2] == [PersistOutcome.REFUSED]
    assert at.bodies() == set()


async def test_a_rival_that_opens_the_store_first_after_it_went_back_is_not_replaced(
    at: StoreProcess, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = Past(at.server)
    at.keep(message(1), "joe/1")
    await at.answered()
    past.come_back()
    ask_again = at.store._right._ask_again

    def open_after_rival() -> None:
        Room(redis).call(opening("rival000"))
        ask_again()

    monkeypatch.setattr(at.store._right, "_ask_again", open_after_rival)
    at.store.settle("joe/1", ids(1), ACKED)
    await until(lambda: at.events == ["fenced"])
    assert at.server.ask("HGET", KEYS.meta, "epoch").endswith(b".rival000")


def knowledge_of(model: Model) -> Knowledge:
    """What a server would have in memory."""
    return Knowledge(
        sessions=[Recorded(key) for key in model.sessions],
        queues=[queue_in(model, key) for key in SESSIONS],
        requests={name: value.encode() for name, value in model.requests.items()},
    )


def queue_in(model: Model, key: str) -> KnownQueue:
    messages, tried = [], []
    for id, entry in model.queues[key].items():
        found, generation = records.unpack_entry(id, entry.encode())
        kept = message(id - BASE)
        kept.generation = generation
        if found.seq:
            tried.append(found)
        else:
            kept = found.with_former(kept)
        messages.append(kept)
    return KnownQueue(key, messages, lambda: tried)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
async def test_a_store_that_goes_back_often_matches_the_model(
    at: StoreProcess, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    both = Both(at.store)
    monkeypatch.setattr(at.store._telling, "_know", lambda: knowledge_of(both.model))
    pasts: list[Past] = []
    for _ in range(400):
        await one_step(both, at, dice, pasts)
    # A store that goes back is noticed at the next call.
    both.save(SESSIONS[0])
    await back(at)
    assert at.store.losses > 2
    # Sessions that waited for the store are looked at once it has everything again.
    await until(lambda: at.told[-1:] == [at.store.losses])
    with Redis.from_url(at.server.url) as redis:
        both.model.letters.clear()
        redis.delete(*redis.keys("{test}:*dead*") or ["-"])
        both.model.check(Room(redis))


async def one_step(  # noqa: C901 - a list of what may happen
    both: Both, at: StoreProcess, dice: random.Random, pasts: list[Past]
) -> None:
    key, n = dice.choice(SESSIONS), dice.randrange(8)
    match dice.randrange(13):
        case 0 | 1:
            both.save(key)
        case 2 | 3 | 4:
            await until(lambda: at.store.is_available)
            both.keep(n, dice.sample(SESSIONS, dice.randint(1, 3)))
            at.store.flush()
            if pasts and dice.random() < 0.1:
                pasts[-1].come_back()
            # Nobody has a message before its publish was answered.
            await at.answered()
        case 5 if dice.random() < 0.5:
            both.hand_over(key, dice.randint(1, 9))
        case 5:
            both.mark(n, key, dice.randint(1, 9))
        case 6:
            both.settle(n, key)
        case 7:
            both.move(n, key, dice.choice(SESSIONS), dice.randint(0, 2))
        case 8 if dice.random() < 0.5:
            both.ask(n, key)
        case 8:
            both.forget(key)
        case 9:
            both.dead_letter(n, key, is_durable=dice.random() < 0.8)
        case 10:
            at.store.flush()
            await asyncio.sleep(0)
        case 11:
            pasts.append(Past(at.server))
        case _ if pasts and dice.random() < 0.5:
            at.store.flush()
            dice.choice(pasts[-3:]).come_back()
        case _:
            await at.answered()


@pytest.mark.parametrize("has_nonce", [True, False], ids=["a nonce", "broken: no nonce"])
async def test_two_openings_with_the_same_number_are_told_apart_by_their_nonces(
    shared_valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch, has_nonce: bool
) -> None:
    if not has_nonce:
        monkeypatch.setattr(secrets, "token_hex", lambda _: "00000000")
    async with store_process(shared_valkey):
        past = Past(shared_valkey)
        async with store_process(shared_valkey) as second:
            # A replica takes over that knows nothing of the second opening.
            past.come_back()
            async with store_process(shared_valkey) as third:
                assert number_of(second.store.epoch) == number_of(third.store.epoch)
                second.keep(message(1), "joe/1")
                await second.answered_line()
                await third.answered()
                assert ("fenced" in second.events) is has_nonce
                assert third.events == []
