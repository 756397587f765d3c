"""Token buckets by key: so many at once, and so many per second in the long run.

A bucket is one number, the moment at which it will be full again (GCRA): what is taken moves that
into the future, and no further than a whole bucket takes to fill. So a bucket that nobody has used
for this long is full, and need not be remembered.
"""

from dataclasses import dataclass

# Parts of a token. Moments are whole numbers of them, as the bucket fills: sums are exact.
_GRAIN = 1024
# Keys of one generation.
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Rate:
    """What a bucket holds, and how quickly it fills."""

    burst: int
    per_s: float


class Buckets:
    """One bucket for each key, of which a bounded number is remembered.

    Those that were used lately are in the young generation, the others in the old one, which goes
    when its buckets are full. If too many keys come before that, it goes at once: of the buckets
    that were not used for the longest time, some are full too early.
    """

    def __init__(self, rate: Rate, *, most: int = _MOST) -> None:
        self._per_s = rate.per_s * _GRAIN
        self._burst = rate.burst
        self._size = rate.burst * _GRAIN
        self._most = most
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        # When the old generation goes.
        self._ages_at = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def wait_s(self, key: str, now: float, count: int = 1) -> float:
        """Zero if so many can be taken; otherwise in how many seconds they can."""
        moment = int(now * self._per_s)
        excess = self._full_at(key, moment) + self._cost(count) - moment - self._size
        return excess / self._per_s if excess > 0 else 0.0

    def take(self, key: str, now: float, count: int = 1) -> float:
        """Take so many, or nothing: then in how many seconds they can be taken.

        More than a bucket holds is taken from a full one.
        """
        moment = int(now * self._per_s)
        before = self._full_at(key, moment)
        full_at = before + self._cost(count)
        excess = full_at - moment - self._size
        if moment >= self._ages_at or len(self._young) >= self._most:
            self._young, self._old = {}, self._young
            self._ages_at = moment + self._size
        if excess > 0:
            # Whoever goes on asking is not forgotten.
            self._young[key] = before
            return excess / self._per_s
        self._young[key] = full_at
        return 0.0

    def _cost(self, count: int) -> int:
        return min(count, self._burst) * _GRAIN

    def _full_at(self, key: str, moment: int) -> int:
        """When the bucket is full, now or later."""
        full_at = self._young.get(key, -1)
        if full_at < 0:
            full_at = self._old.get(key, moment)
        return max(full_at, moment)
