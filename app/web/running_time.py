"""The clock of the server: seconds in which the process ran."""

from collections.abc import Callable

# The clock is read ten times a second at least. After a longer gap the process was frozen, or its
# event loop was: nobody could be heard in that time, so it counts as nobody's silence.
LONGEST_GAP_S = 0.5


class RunningTime:
    """A monotonic clock that stands still while the process does not run.

    Args:
        monotonic: The clock that goes on meanwhile.
    """

    __slots__ = ("_lost", "_monotonic", "_read_at")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._read_at = monotonic()
        self._lost = 0.0

    def __call__(self) -> float:
        read_at = self._monotonic()
        gap = read_at - self._read_at
        if gap > LONGEST_GAP_S:
            self._lost += gap
        self._read_at = read_at
        return read_at - self._lost
