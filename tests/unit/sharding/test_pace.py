"""When the turns end in which a shard has something for others."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from holdfast.sharding.pace import MANY, Pace
from holdfast.store.framing.spacing import AFTER_USELESS, AT_ONCE, PAUSE_S, USELESS

if TYPE_CHECKING:
    import asyncio


class Timer:
    """A call that is due at some time, unless it is cancelled."""

    def __init__(self, at: float, then: Callable[[], None]) -> None:
        self.at, self.then = at, then
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Loop:
    """An event loop whose time passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1.0
        self._due: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, then: Callable[[], None]) -> None:
        self.call_at(self.now, then)

    def call_at(self, at: float, then: Callable[[], None]) -> Timer:
        timer = Timer(at, then)
        self._due.append(timer)
        return timer

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due = [each for each in self._due if each.at <= self.now]
        self._due = [each for each in self._due if each.at > self.now]
        for each in due:
            if not each.is_cancelled:
                each.then()


def paced() -> tuple[Loop, Pace, list[float]]:
    loop, ends = Loop(), list[float]()
    pace = Pace(cast("asyncio.AbstractEventLoop", loop), lambda: ends.append(loop.now))
    return loop, pace, ends


def after_many() -> tuple[Loop, Pace, list[float]]:
    """Return the same after as many turns as may follow each other at once."""
    loop, pace, ends = paced()
    for _ in range(AT_ONCE):
        pace.wake()
        loop.pass_time(0.0)
    assert ends == [1.0] * AT_ONCE
    ends.clear()
    return loop, pace, ends


def test_the_first_turn_ends_at_once_and_only_once() -> None:
    loop, pace, ends = paced()
    pace.wake()
    pace.wake()
    loop.pass_time(0.0)
    assert ends == [1.0]


def test_turns_that_follow_many_others_end_together_after_a_pause() -> None:
    loop, pace, ends = after_many()
    pace.wake()
    loop.pass_time(PAUSE_S / 2)
    pace.wake()
    assert not ends
    loop.pass_time(PAUSE_S / 2)
    assert ends == [1.0 + PAUSE_S]


def test_turns_that_are_as_frequent_as_pauses_end_at_once() -> None:
    loop, pace, ends = paced()
    for _ in range(5 * AT_ONCE):
        pace.wake()
        loop.pass_time(0.0)
        assert ends.pop() == loop.now
        loop.pass_time(1.01 * PAUSE_S)


def test_some_turns_end_at_once_again_after_a_while_without_any() -> None:
    loop, pace, ends = after_many()
    loop.pass_time((AT_ONCE + 0.5) * PAUSE_S)
    for _ in range(AT_ONCE):
        pace.wake()
        loop.pass_time(0.0)
    assert ends == [loop.now] * AT_ONCE
    pace.wake()
    loop.pass_time(0.0)
    assert len(ends) == AT_ONCE


def test_a_turn_with_much_for_others_does_not_wait() -> None:
    loop, pace, ends = after_many()
    for _ in range(10):
        for _ in range(MANY):
            pace.wake()
        loop.pass_time(0.0)
    assert ends == [1.0] * 10
    pace.wake()
    loop.pass_time(PAUSE_S)
    assert ends.pop() == 1.0 + PAUSE_S


def sequential(loop: Loop, pace: Pace, ends: list[float]) -> bool:
    """End a turn that the next one waits for; returns whether it had to wait."""
    pace.wake()
    loop.pass_time(0.0)
    has_waited = not ends
    if has_waited:
        loop.pass_time(PAUSE_S)
    ends.clear()
    return has_waited


def test_turns_of_which_each_answers_the_one_before_seldom_wait() -> None:
    loop, pace, ends = after_many()
    waits = [sequential(loop, pace, ends) for _ in range(1000)]
    assert waits[:USELESS] == [True] * USELESS
    assert waits[USELESS : USELESS + AFTER_USELESS] == [False] * AFTER_USELESS
    assert sum(waits) < 15


def test_turns_wait_again_once_that_brings_some_together() -> None:
    loop, pace, ends = after_many()
    for _ in range(1000):
        sequential(loop, pace, ends)
    waits = []
    for _ in range(1500):
        pace.wake()
        loop.pass_time(0.0)
        waits.append(not ends)
        pace.wake()
        loop.pass_time(PAUSE_S)
        ends.clear()
    assert not all(waits)
    assert all(waits[-100:])
