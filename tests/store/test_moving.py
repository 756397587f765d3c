"""Letters of a replay move to the shard that has the session: none is lost, none is sent twice."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.store.format.letter_records import pack_letter, unpack_letter
from holdfast.store.replays import control, moving
from holdfast.store.replays import run as replay_run
from holdfast.store.replays.control import Replays
from holdfast.store.replays.job_records import JobState
from holdfast.store.replays.moving import ALL_MOVED, LETTERS, SESSION, IsOver, Moving
from holdfast.store.replays.parameters import ReplayOptions
from tests.store.hall import ALL, Hall, Scene, ended, prepare
from tests.store.store_process import StoreProcess, letter, until

if TYPE_CHECKING:
    from holdfast.delivery.letters.dead import DeadLetter

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


class Calls:
    """Calls to shard 1, which answers if it can."""

    def __init__(self) -> None:
        self.is_there, self.answers = True, True
        # The dead letters that it got, in each call.
        self.got: list[list[DeadLetter]] = []
        # The jobs of which everything was moved.
        self.all_moved: list[str] = []
        # What it calls here, and what it was answered.
        self.handlers: dict[str, Any] = {}
        self.shard = 1
        self.answered: list[dict[str, Any]] = []

    def handle(self, operation: str, handler: Any) -> None:
        self.handlers[operation] = handler

    def may_ask(self, _: int) -> bool:
        return True

    def send(
        self,
        shard: int,
        operation: str,
        asked: Mapping[str, Any],
        heard: Callable[[dict[str, Any] | None], None],
    ) -> None:
        assert shard == 1
        answer: dict[str, Any] | None = {}
        if operation == SESSION:
            answer = {"is_there": self.is_there, "is_away": False}
        elif operation == LETTERS:
            self.got.append([unpack_letter(each.encode()) for each in asked["letters"]])
            answer = {"stored": True} if self.answers else None
        else:
            self.all_moved.append(asked["job"])
        asyncio.get_running_loop().call_soon(heard, answer)

    def call(self, operation: str, asked: Mapping[str, Any]) -> None:
        """Let shard 1 call this one."""
        self.handlers[operation](asked, self, 0.0)

    def answer(self, answer: dict[str, Any]) -> None:
        self.answered.append(answer)


def among(at: StoreProcess, hall: Hall, calls: Calls, **more: Any) -> Replays:
    """Replays that reach other shards."""

    def make_moving(is_over: IsOver) -> Moving:
        return Moving(
            *(at.store, at.letters, Whereabouts(hall), [1], calls),
            is_away=lambda _: True,
            is_over=is_over,
        )

    return Replays(
        *(at.store, at.letters, at.reader),
        receivers=hall,
        audit=at.audit,
        new_id=at.new_id,
        make_moving=make_moving,
        **more,
    )


@pytest.fixture
async def shard(scene: Scene) -> tuple[StoreProcess, Hall, Replays, Calls]:
    at, hall, _ = scene
    calls = Calls()
    return at, hall, among(at, hall, calls), calls


Shard = tuple[StoreProcess, Hall, Replays, Calls]


async def test_letters_move_as_they_are_to_the_shard_of_the_session(shard: Shard) -> None:
    at, hall, jobs, calls = shard
    first, second = letter(11, of=2), letter(12, of=1, receiver="ann/1")
    await prepare(at, first, second)
    job = await jobs.start(ALL, TO, "operator")
    assert await ended(job) is JobState.DONE
    assert calls.got == [[first._replace(job=job.id), second._replace(job=job.id)]]
    assert (at.dead(), hall.delivered) == ([], [])
    assert (job.total, job.sent, job.skipped) == (0, 0, {})
    assert calls.all_moved == [job.id]
    stored = await jobs.get(job.id)
    assert stored is not None
    assert (stored.sent, stored.total) == (0, 0)


async def test_letters_stay_if_the_session_is_nowhere(shard: Shard) -> None:
    at, _, jobs, calls = shard
    calls.is_there = False
    await prepare(at, letter(11, of=1))
    planned = await jobs.plan(ALL, TO, "operator")
    assert planned.skipped == {"receiver": 1}
    job = await jobs.start(ALL, TO, "operator")
    assert await ended(job) is JobState.DONE
    assert (at.dead(), calls.got, job.skipped) == ([11], [], {"receiver": 1})


async def test_a_letter_that_died_elsewhere_than_its_session_lives_goes_there(shard: Shard) -> None:
    at, hall, jobs, calls = shard
    far, near = letter(11, of=1, receiver="far/1"), letter(12, of=2)
    await prepare(at, far, near)
    job = await jobs.start(ALL, ReplayOptions(rate=10_000, canary=0), "operator")
    assert await ended(job) is JobState.DONE
    assert (calls.got, hall.delivered) == ([[far._replace(job=job.id)]], [("joe/1", 2)])
    assert (job.total, job.sent) == (1, 1)


async def test_a_letter_is_here_until_the_other_shard_has_it(shard: Shard) -> None:
    at, hall, jobs, calls = shard
    calls.answers = False
    died = letter(11, of=1)
    await prepare(at, died)
    job = await jobs.start(ALL, TO, "operator")
    await until(lambda: len(calls.got) > 1)
    assert at.dead() == [11]
    # No other replay sends it meanwhile.
    other = await jobs.start(ALL, ReplayOptions(rate=10_000, canary=0), "operator")
    assert await ended(other) is JobState.DONE
    assert (hall.delivered, other.skipped) == ([], {"replayed": 1})
    calls.answers = True
    assert await ended(job) is JobState.DONE
    assert at.dead() == []
    assert calls.got == [[died._replace(job=job.id)]] * len(calls.got)


async def test_the_next_process_moves_what_a_killed_one_has_taken(shard: Shard) -> None:
    at, hall, jobs, calls = shard
    calls.answers = False
    died = letter(11, of=1)
    await prepare(at, died)
    job = await jobs.start(ALL, TO, "operator")
    await until(lambda: len(calls.got) > 1)
    await jobs.close()
    calls.answers = True
    later = among(at, hall, calls)
    assert await later.resume() == 1
    again = await later.get(job.id)
    assert again is not None
    assert await ended(again) is JobState.DONE
    assert (at.dead(), again.sent) == ([], 0)
    assert calls.got[-1] == [died._replace(job=job.id)]


async def test_a_letter_that_comes_twice_is_there_once(shard: Shard) -> None:
    at, _, _, calls = shard
    record = pack_letter(letter(11, of=1), {}).decode()
    for _ in range(2):
        calls.call(LETTERS, {"job": "7", "letters": [record]})
    await until(lambda: len(calls.answered) == 2)
    assert calls.answered == [{"stored": True}] * 2
    assert at.dead() == [11]


async def test_a_brought_letter_is_sent_although_it_died_later_by_the_clock_of_its_shard(
    shard: Shard,
) -> None:
    at, hall, _, calls = shard
    jobs = among(at, hall, calls, given_id=lambda: "77")
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
    at, hall, jobs, calls = shard
    await prepare(at, letter(11, of=1))
    job = await jobs.start(ALL, TO, "operator")
    assert await ended(job) is JobState.DONE
    # As in the next process, which does not remember it.
    among(at, hall, calls)
    calls.call(ALL_MOVED, {"job": job.id if is_known else "8"})
    await until(lambda: bool(calls.answered))
    assert calls.answered == [{"are_all": is_known}]
