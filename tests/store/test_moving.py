"""Letters of a replay move to the shard that has the session: none is lost, none is sent twice."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest

from holdfast.delivery.messages.shard_call import ShardCall
from holdfast.store.format.records import pack_letter, unpack_letter
from holdfast.store.replays import control, moving
from holdfast.store.replays import run as replay_run
from holdfast.store.replays.control import Replays
from holdfast.store.replays.job_records import JobState
from holdfast.store.replays.moving import REPLAYS, IsOver, Moving
from holdfast.store.replays.parameters import ReplayOptions
from tests.store.hall import ALL, Hall, Scene, ended, prepare
from tests.store.store_process import StoreProcess, letter, until

if TYPE_CHECKING:
    from holdfast.delivery.letters.dead import DeadLetter
    from holdfast.delivery.ports.homes import HomesPort

TO = ReplayOptions(rate=10_000, canary=0, to="far/1")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_run, "_COUNT_S", 0.01)
    monkeypatch.setattr(moving, "_AGAIN_S", 0.01)
    monkeypatch.setattr(moving, "_LOOK_S", 0.01)
    monkeypatch.setattr(control, "_GOODBYE_S", 0.1)


class Whereabouts:
    """The sessions here; shard 1 has all others that have a name like one of its own."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def is_durable(self, key: str) -> bool | None:
        return self._hall.is_durable(key)

    def is_away(self, key: str) -> bool:
        return self._hall.is_away(key)

    def shard_of(self, key: str) -> int | None:
        return 1 if key.startswith("far/") else None


class Homes:
    """Letters to shard 1, which answers if it can."""

    def __init__(self) -> None:
        self.is_there, self.answers = True, True
        # The dead letters that it got, in each letter.
        self.got: list[list[DeadLetter]] = []
        self.answered: list[dict[str, Any]] = []
        # The jobs of which everything was moved.
        self.all_moved: list[str] = []

    @property
    def others(self) -> list[int]:
        return [1]

    def may_send(self, _: int) -> bool:
        return True

    def send(
        self, shard: int, what: str, data: bytes, done: Callable[[bytes | None], None]
    ) -> None:
        assert (shard, what) == (1, REPLAYS)
        line, _, rest = data.partition(b"\n")
        head = orjson.loads(line)
        answer: bytes | None = b"{}"
        if "session" in head:
            answer = orjson.dumps({"is_there": self.is_there, "is_away": False})
        elif "sizes" in head:
            found = []
            for size in head["sizes"]:
                found.append(unpack_letter(rest[:size]))
                rest = rest[size:]
            self.got.append(found)
            answer = b'{"stored":true}' if self.answers else None
        else:
            self.all_moved.append(head["job"])
        asyncio.get_running_loop().call_soon(done, answer)

    def answer(self, _: ShardCall, answer: bytes) -> None:
        self.answered.append(orjson.loads(answer))


def among(at: StoreProcess, hall: Hall, homes: Homes, **more: Any) -> Replays:
    """Replays that reach other shards."""

    def make_moving(is_over: IsOver) -> Moving:
        port = cast("HomesPort", homes)
        return Moving(at.store, at.letters, Whereabouts(hall), port, lambda _: True, is_over)

    return Replays(
        *(at.store, at.letters, at.reader),
        receivers=hall,
        audit=at.audit,
        new_id=at.new_id,
        make_moving=make_moving,
        **more,
    )


@pytest.fixture
async def shard(scene: Scene) -> tuple[StoreProcess, Hall, Replays, Homes]:
    at, hall, _ = scene
    homes = Homes()
    return at, hall, among(at, hall, homes), homes


Shard = tuple[StoreProcess, Hall, Replays, Homes]


async def test_letters_move_as_they_are_to_the_shard_of_the_session(shard: Shard) -> None:
    at, hall, jobs, homes = shard
    first, second = letter(11, of=2), letter(12, of=1, receiver="ann/1")
    await prepare(at, first, second)
    job = await jobs.start(ALL, TO, "operator")
    assert await ended(job) is JobState.DONE
    assert homes.got == [[first._replace(job=job.id), second._replace(job=job.id)]]
    assert (at.dead(), hall.delivered) == ([], [])
    assert (job.total, job.sent, job.skipped) == (0, 0, {})
    assert homes.all_moved == [job.id]
    stored = await jobs.get(job.id)
    assert stored is not None
    assert (stored.sent, stored.total) == (0, 0)


async def test_letters_stay_if_the_session_is_nowhere(shard: Shard) -> None:
    at, _, jobs, homes = shard
    homes.is_there = False
    await prepare(at, letter(11, of=1))
    planned = await jobs.plan(ALL, TO, "operator")
    assert planned.skipped == {"receiver": 1}
    job = await jobs.start(ALL, TO, "operator")
    assert await ended(job) is JobState.DONE
    assert (at.dead(), homes.got, job.skipped) == ([11], [], {"receiver": 1})


async def test_a_letter_that_died_elsewhere_than_its_session_lives_goes_there(shard: Shard) -> None:
    at, hall, jobs, homes = shard
    far, near = letter(11, of=1, receiver="far/1"), letter(12, of=2)
    await prepare(at, far, near)
    job = await jobs.start(ALL, ReplayOptions(rate=10_000, canary=0), "operator")
    assert await ended(job) is JobState.DONE
    assert (homes.got, hall.delivered) == ([[far._replace(job=job.id)]], [("joe/1", 2)])
    assert (job.total, job.sent) == (1, 1)


async def test_a_letter_is_here_until_the_other_shard_has_it(shard: Shard) -> None:
    at, hall, jobs, homes = shard
    homes.answers = False
    died = letter(11, of=1)
    await prepare(at, died)
    job = await jobs.start(ALL, TO, "operator")
    await until(lambda: len(homes.got) > 1)
    assert at.dead() == [11]
    # No other replay sends it meanwhile.
    other = await jobs.start(ALL, ReplayOptions(rate=10_000, canary=0), "operator")
    assert await ended(other) is JobState.DONE
    assert (hall.delivered, other.skipped) == ([], {"replayed": 1})
    homes.answers = True
    assert await ended(job) is JobState.DONE
    assert at.dead() == []
    assert homes.got == [[died._replace(job=job.id)]] * len(homes.got)


async def test_the_next_process_moves_what_a_killed_one_has_taken(shard: Shard) -> None:
    at, hall, jobs, homes = shard
    homes.answers = False
    died = letter(11, of=1)
    await prepare(at, died)
    job = await jobs.start(ALL, TO, "operator")
    await until(lambda: len(homes.got) > 1)
    await jobs.close()
    homes.answers = True
    later = among(at, hall, homes)
    assert await later.resume() == 1
    again = await later.get(job.id)
    assert again is not None
    assert await ended(again) is JobState.DONE
    assert (at.dead(), again.sent) == ([], 0)
    assert homes.got[-1] == [died._replace(job=job.id)]


async def test_a_letter_that_comes_twice_is_there_once(shard: Shard) -> None:
    at, _, jobs, homes = shard
    moving = jobs.moving
    assert moving is not None
    record = pack_letter(letter(11, of=1), {})
    for _ in range(2):
        data = orjson.dumps({"job": "7", "sizes": [len(record)]}) + b"\n" + record
        moving.carry_out(ShardCall(1, 5, "1 5", REPLAYS, data), 0.0)
    await until(lambda: len(homes.answered) == 2)
    assert homes.answered == [{"stored": True}] * 2
    assert at.dead() == [11]


async def test_a_brought_letter_is_sent_although_it_died_later_by_the_clock_of_its_shard(
    shard: Shard,
) -> None:
    at, hall, _, homes = shard
    jobs = among(at, hall, homes, given_id=lambda: "77")
    late = int(at.new_id()) + 10**15
    brought = letter(late, of=1)._replace(job="77")
    await prepare(at, brought, letter(late + 1, of=2))
    job = await jobs.start(ALL, ReplayOptions(rate=10_000, canary=0), "operator")
    assert await ended(job) is JobState.DONE
    assert (job.total, job.sent, hall.delivered) == (1, 1, [("joe/1", 1)])


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_shard_says_whether_all_of_its_letters_have_moved(
    shard: Shard, *, is_known: bool
) -> None:
    at, hall, jobs, homes = shard
    await prepare(at, letter(11, of=1))
    job = await jobs.start(ALL, TO, "operator")
    assert await ended(job) is JobState.DONE
    # As in the next process, which does not remember it.
    moving = among(at, hall, homes).moving
    assert moving is not None
    data = orjson.dumps({"job": job.id if is_known else "8", "are_all": True})
    moving.carry_out(ShardCall(1, 5, "1 5", REPLAYS, data), 0.0)
    await until(lambda: bool(homes.answered))
    assert homes.answered == [{"are_all": is_known}]
