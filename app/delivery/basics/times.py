"""Histograms of times: plain counts by bucket. They need neither a clock nor I/O."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

NS_PER_S: Final = 1_000_000_000
# Above all times: 146 years.
_ENDLESS: Final = (1 << 62) - 1
# The upper bounds of buckets for what ranges from milliseconds to an hour, and for what a server
# does itself, in seconds.
WAITS_S: Final[Sequence[float]] = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 60.0, 600.0, 3600.0),
)
STEPS_S: Final[Sequence[float]] = (
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    5.0,
)


class Example(NamedTuple):
    """A time that a bucket counts, and the message whose time it is."""

    id: int
    ns: int


class Histogram:
    """Counts times in nanoseconds by bucket.

    Most times fall into the same bucket as the one before, or into one beside it. So the search
    begins there, and the counts of a run of times in one bucket are added together. What takes
    part in it are plain integers.

    Args:
        bounds_s: The upper bounds of the buckets, which they include. One more has no bound.
    """

    __slots__ = (
        "_counts",
        "_has_one",
        "_ids",
        "_latest_ns",
        "_limits",
        "_ns",
        "_place",
        "_run",
        "bounds_s",
        "total_ns",
    )

    def __init__(self, bounds_s: Sequence[float]) -> None:
        self.bounds_s = bounds_s
        buckets = len(bounds_s) + 1
        self._limits = [*(round(each * NS_PER_S) for each in bounds_s), _ENDLESS]
        self._counts = [0] * buckets
        # For each bucket, the first message after a reading, and its time; zero if there is none. A
        # bit for each bucket says whether it has one since the last reading.
        self._ids, self._ns = [0] * buckets, [0] * buckets
        self._has_one = 0
        # The sum of all times.
        self.total_ns = 0
        # The bucket of the latest time, which has so many more than `_counts` says.
        self._place = self._run = self._latest_ns = 0

    def add(self, ns: int, id: int = 0) -> None:
        """Count a time, and remember the message if it is the bucket's first since a reading."""
        self.total_ns += ns
        limits, place = self._limits, self._place
        while place and ns <= limits[place - 1]:
            place -= 1
        while ns > limits[place]:
            place += 1
        if place != self._place or not self._run:
            self._end_run()
            self._place = place
            if id and not self._has_one >> place & 1:
                self._has_one |= 1 << place
                self._ids[place], self._ns[place] = id, ns
        self._run += 1
        self._latest_ns = ns

    def add_again(self, count: int) -> None:
        """Count the latest time so many times more."""
        self.total_ns += count * self._latest_ns
        self._run += count

    def _end_run(self) -> None:
        self._counts[self._place] += self._run
        self._run = 0

    def read(self) -> list[int]:
        """Return what `totals` does. From then on, examples of buckets are others."""
        self._has_one = 0
        return self.totals()

    def totals(self) -> list[int]:
        """Return how many times did not exceed each bound, and behind these how many there are."""
        self._end_run()
        return list(accumulate(self._counts))

    @property
    def examples(self) -> list[Example | None]:
        """For each bucket, a message whose time it counts, if one is known."""
        pairs = zip(self._ids, self._ns, strict=True)
        return [Example(id, ns) if id else None for id, ns in pairs]
