"""The server's clock: seconds during which the process ran."""

from collections.abc import Callable
from typing import Final

# The clock is read at least ten times a second. After a longer gap the process or its event loop
# was frozen and could not hear clients, so the gap does not count as their silence.
LONGEST_GAP_S: Final = 0.5


class RunningTime:
    """A monotonic clock that stops while the process does not run or is silent.

    Args:
            monotonic: The underlying clock, which does not stop.
    """

    __slots__ = ("_lost", "_monotonic", "_read_at", "_stopped_at")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._read_at = monotonic()
        self._lost = 0.0
        # What the clock shows while it is stopped.
        self._stopped_at: float | None = None

    def __call__(self) -> float:
        if self._stopped_at is not None:
            return self._stopped_at
        read_at = self._monotonic()
        gap = read_at - self._read_at
        if gap > LONGEST_GAP_S:
            self._lost += gap
        self._read_at = read_at
        return read_at - self._lost

    @property
    def is_stopped(self) -> bool:
        """Whether it stands still."""
        return self._stopped_at is not None

    def stop(self) -> None:
        """Show the same time until `go_on`: no input is read."""
        self._stopped_at = self()

    def go_on(self) -> None:
        """Run again."""
        if self._stopped_at is not None:
            self._read_at = self._monotonic()
            self._lost, self._stopped_at = self._read_at - self._stopped_at, None

    def skip(self, seconds: float) -> None:
        """Go ahead at once, as if the process had run for this long."""
        self._lost -= seconds
        if self._stopped_at is not None:
            self._stopped_at += seconds
