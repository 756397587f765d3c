"""Figures of reports, computed from exact times without tables: times are microseconds."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

_US_PER_MS = 1000
# Reports round to this many digits; sums of floats are a little off.
_HALF, _NOISE = Fraction(1, 2000), Fraction(1, 10**9)
# The ends of buckets, in which latencies are counted: each is two percent longer than the former.
_GROWTH = 1.02
_BUCKETS = [_GROWTH**n for n in range(1200)]


@dataclass(frozen=True, eq=False)
class Rounded:
    """A number that a report rounds to three digits: a half in either direction."""

    exact: Fraction

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | float):
            return False
        return abs(Fraction(other) - self.exact) <= _HALF + _NOISE

    __hash__ = None  # type: ignore[assignment]


def moment(us: int) -> datetime:
    return datetime.fromtimestamp(us // 1_000_000, UTC).replace(microsecond=us % 1_000_000)


def percentile(part: str, times: Iterable[int | Fraction]) -> Rounded | None:
    """Return the time in ms that this part of all does not exceed, between two if need be."""
    known = sorted(times)
    if not known:
        return None
    place = (len(known) - 1) * Fraction(part)
    below = int(place)
    above = min(below + 1, len(known) - 1)
    us = known[below] + (known[above] - known[below]) * (place - below)
    return Rounded(Fraction(us) / _US_PER_MS)


def longest(times: Sequence[int]) -> Rounded | None:
    return Rounded(Fraction(max(times), _US_PER_MS)) if times else None


def of_histogram(part: int, times: Sequence[int]) -> float | None:
    """Return the time in ms that this percentage of all does not exceed, as its bucket has it."""
    if not times:
        return None
    us = sorted(times)[-(-len(times) * part // 100) - 1]
    return bucketed(us) / _US_PER_MS


def bucketed(us: int) -> int:
    """Return the time of a bucket: it differs from both of its ends by the same percentage."""
    if us < 1:
        return 0
    return round(2 * _BUCKETS[bisect_left(_BUCKETS, us)] / (1 + _GROWTH))


def number(times: Iterable[int], since_us: int, until_us: int) -> int:
    """Return how many of these moments are in this time."""
    return sum(since_us <= us < until_us for us in times)
