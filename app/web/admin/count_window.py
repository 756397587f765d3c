"""How much counters have risen recently."""

from collections import deque
from typing import NamedTuple

from holdfast.delivery.basics.counters import Counters

# The family of the codes with which receivers refuse.
_REFUSED = "user"
# Enough for five minutes, noted every ten seconds.
_MOST = 40


class Counts(NamedTuple):
    """The counters at one moment, or by how much they rose within some seconds."""

    time: float
    dead: int
    refused: int
    acked: int


class CountWindow:
    """Records the counters from time to time."""

    def __init__(self, counters: Counters, now: float) -> None:
        self._counters = counters
        self._noted: deque[Counts] = deque([self._read(now)], _MOST)

    def note(self, now: float) -> None:
        self._noted.append(self._read(now))

    def risen(self, seconds: float) -> Counts:
        """Return by how much they rose within this time or slightly longer, and in how long."""
        last = self._noted[-1]
        first = next(
            (each for each in reversed(self._noted) if last.time - each.time >= seconds),
            self._noted[0],
        )
        return Counts(
            last.time - first.time,
            last.dead - first.dead,
            last.refused - first.refused,
            last.acked - first.acked,
        )

    def _read(self, now: float) -> Counts:
        counters = self._counters
        return Counts(now, counters.dead, counters.refused[_REFUSED], counters.acked)
