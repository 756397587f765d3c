"""When the turns end in which a shard has something for others."""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from holdfast.sharding.pace import MANY, PAUSE_S, Pace

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


def test_the_first_turn_ends_at_once_and_only_once() -> None:
    loop, pace, ends = paced()
    pace.wake()
    pace.wake()
    loop.pass_time(0.0)
    assert ends == [1.0]


def test_turns_that_follow_soon_end_together_after_a_pause() -> None:
    loop, pace, ends = paced()
    pace.wake()
    loop.pass_time(0.0)
    pace.wake()
    loop.pass_time(PAUSE_S / 2)
    pace.wake()
    assert ends == [1.0]
    loop.pass_time(PAUSE_S / 2)
    assert ends == [1.0, 1.0 + PAUSE_S]


def test_a_turn_after_a_pause_ends_at_once() -> None:
    loop, pace, ends = paced()
    pace.wake()
    loop.pass_time(0.0)
    loop.pass_time(2 * PAUSE_S)
    pace.wake()
    loop.pass_time(0.0)
    assert ends == [1.0, 1.0 + 2 * PAUSE_S]


def test_a_turn_with_much_for_others_does_not_wait() -> None:
    loop, pace, ends = paced()
    pace.wake()
    loop.pass_time(0.0)
    for _ in range(MANY + 1):
        pace.wake()
    loop.pass_time(0.0)
    assert ends == [1.0, 1.0]
    loop.pass_time(2 * PAUSE_S)
    assert len(ends) == 2
    pace.wake()
    loop.pass_time(0.0)
    assert len(ends) == 3
