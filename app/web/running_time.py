"""The server's clock: seconds during which the process ran."""

from collections.abc import Callable
from typing import Final

# The clock is read at least ten times a second. After a longer gap the process or its event loop
# was frozen and could not hear clients, so the gap does not count as their silence.
LONGEST_GAP_S: Final = 0.5


class RunningTime:
    """A monotonic clock that stops while the process does not run.

    Args:
            monotonic: The underlying clock, which does not stop.
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
