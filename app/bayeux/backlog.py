"""What one turn of the event loop has no time for goes on in later ones."""

from collections import deque
from collections.abc import Callable

# Does a piece of the work; whether any is left.
Work = Callable[[], bool]


class Backlog:
    """Works that take turns, a piece of each, until the time of the turn is over.

    Args:
        wake: Asks for another turn.
        is_turn_over: Whether the time of this one is over.
    """

    def __init__(self, wake: Callable[[], None], is_turn_over: Callable[[], bool]) -> None:
        self._wake = wake
        self._is_turn_over = is_turn_over
        self._works: deque[Work] = deque()

    def __bool__(self) -> bool:
        """Whether anything is left."""
        return bool(self._works)

    def begin(self, work: Work) -> None:
        """Do this, which is not under way yet."""
        self._works.append(work)
        self.go_on()

    def add(self, work: Work) -> None:
        """Do this when the turn ends, and in later ones."""
        self._works.append(work)
        self._wake()

    def go_on(self) -> None:
        """Do what there is time for, and at least one piece."""
        works = self._works
        while works:
            work = works.popleft()
            if work():
                works.append(work)
            if works and self._is_turn_over():
                self._wake()
                return
