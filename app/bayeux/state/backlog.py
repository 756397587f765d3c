"""Work that does not fit into one turn of the event loop and continues in later turns."""

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final

log = logging.getLogger(__name__)

# Work that fails this many times in a row is dropped.
_MOST_FAILURES: Final = 1000

# Does a piece of work at the given time. Returns whether any is left. It advances to the next piece
# before it does this one, so that a piece that fails is not done again.
Work = Callable[[float], bool]
# Runs later with the time, for example once the store has answered.
Step = Callable[[float], None]


class SerialWork:
    """A queue of works. Each starts when the previous one has ended."""

    def __init__(self, works: Iterable[Work], done: Callable[[], None]) -> None:
        self._works = iter(works)
        self._done = done
        self._current: Work | None = None

    def go_on(self, now: float) -> bool:
        """Do one piece of the current work, or start the next work."""
        work = self._current or next(self._works, None)
        if work is None:
            self._done()
            return False
        self._current = None
        if work(now):
            self._current = work
        return True


class Backlog:
    """Does one piece of each work in rotation until the turn is over.

    Args:
        wake: Requests another turn.
        is_turn_over: Returns whether the turn is over.
    """

    def __init__(self, wake: Callable[[], None], is_turn_over: Callable[[], bool]) -> None:
        self._wake = wake
        self._is_turn_over = is_turn_over
        self._works: deque[Work] = deque()
        self._steps: deque[Step] = deque()
        # How often each work has failed since its last success.
        self._failing: Counter[Work] = Counter()
        # How many pieces of work, and steps, have failed.
        self.failures = 0

    def __bool__(self) -> bool:
        """Whether any work is left."""
        return bool(self._works) or bool(self._steps)

    def begin(self, work: Work, now: float) -> None:
        """Start new work, which must not be in the backlog already."""
        self._works.append(work)
        self.go_on(now)

    def add(self, work: Work) -> None:
        """Do the work at the end of the turn, and in later turns."""
        self._works.append(work)
        self._wake()

    def at_turn_end(self, step: Step) -> None:
        """Run the step at the end of the turn, before other work: a client waits for it."""
        self._steps.append(step)
        self._wake()

    def end_turn(self, now: float) -> None:
        """Run steps at the end of the turn until it is over, at least one."""
        steps = self._steps
        while steps:
            step = steps.popleft()
            try:
                step(now)
            except BaseException:
                self.failures += 1
                log.exception("a step at the end of a turn failed")
            if steps and self._is_turn_over():
                return

    def go_on(self, now: float) -> None:
        """Do work until the turn is over, at least one piece.

        Requests another turn if work or steps are left.
        """
        works = self._works
        while works:
            work = works.popleft()
            if self._do_piece(work, now):
                works.append(work)
            if self._is_turn_over():
                break
        if self:
            self._wake()

    def _do_piece(self, work: Work, now: float) -> bool:
        """Do one piece. Returns whether any is left. A failure must not affect other work."""
        try:
            is_left = work(now)
        except BaseException:
            return self._goes_on_failing(work)
        if self._failing:
            del self._failing[work]
        return is_left

    def _goes_on_failing(self, work: Work) -> bool:
        """Log the first failure in a row. Returns whether the work goes on."""
        self.failures += 1
        self._failing[work] += 1
        if self._failing[work] == 1:
            log.exception("a piece of work over several turns failed; the next follows")
        if self._failing[work] < _MOST_FAILURES:
            return True
        log.error("work over several turns is given up: it has failed too often")
        del self._failing[work]
        return False
