"""Token buckets by key: a limit for bursts and a long-term rate.

A bucket is stored as one number, the moment at which it will be full again (GCRA). Taking tokens
moves that moment into the future, at most by the time that an empty bucket needs to fill. A bucket
unused for that long is full, and need not be stored.
"""

from dataclasses import dataclass
from math import ceil

# Fractions of a token. Moments are whole numbers of these, so sums are exact.
_GRAIN = 1024
# How many keys one generation holds.
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Rate:
    """The size of a bucket, and how fast it fills."""

    burst: int
    per_s: float

    def part(self, parts: int) -> "Rate":
        """Return one of so many equal parts. It admits something, however many there are."""
        return Rate(max(1, ceil(self.burst / parts)), self.per_s / parts)


class Buckets:
    """One bucket for each key, in bounded memory.

    The young generation holds recently used buckets, the old one all others. The old generation is
    dropped when its buckets are full. If too many keys arrive before that, it is dropped at once,
    and some of the least recently used buckets are full too early.
    """

    def __init__(self, rate: Rate, *, most: int = _MOST) -> None:
        self._per_s = rate.per_s * _GRAIN
        self._burst = rate.burst
        self._most = most
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        # When the old generation is dropped.
        self._ages_at = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def wait_s(self, key: str, now: float, count: int = 1, parts: int = 1) -> float:
        """Return zero if `take` would take something, otherwise the seconds until it does."""
        moment = int(now * self._per_s)
        size, cost = self._shares(count, parts)
        excess = self._full_at(key, moment) + cost - moment - size
        return excess / self._per_s if excess > 0 else 0.0

    def take(self, key: str, now: float, count: int = 1, parts: int = 1) -> float:
        """Take `count` tokens; or take none and return the seconds until they are available.

        A request for more than the bucket's size is served from a full bucket.

        Args:
            parts: Into how many equal parts the bucket is divided, of which this is one. It may be
                another number each time. A part admits something, however many there are.
        """
        moment = int(now * self._per_s)
        size, cost = self._shares(count, parts)
        before = self._full_at(key, moment)
        full_at = before + cost
        excess = full_at - moment - size
        if moment >= self._ages_at or len(self._young) >= self._most:
            self._young, self._old = {}, self._young
            self._ages_at = moment + size
        if excess > 0:
            # A key that keeps asking is not dropped.
            self._young[key] = before
            return excess / self._per_s
        self._young[key] = full_at
        return 0.0

    def _shares(self, count: int, parts: int) -> tuple[int, int]:
        """Return the size of a part, and what so many tokens of it cost, in tokens of the whole."""
        burst = -(-self._burst // parts)
        grain = _GRAIN * parts
        return burst * grain, min(count, burst) * grain

    def _full_at(self, key: str, moment: int) -> int:
        """Return when the bucket is full, now or later."""
        full_at = self._young.get(key, -1)
        if full_at < 0:
            full_at = self._old.get(key, moment)
        return max(full_at, moment)
