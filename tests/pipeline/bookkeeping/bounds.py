"""What a client can say of a figure that only the server knows exactly."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.pipeline.bookkeeping.ledger import Span

_MS = 1000
# Histograms of latencies are within one percent; rounding, and a clock that is set meanwhile.
_WITHIN, _MARGIN_MS = 0.02, 3.0


@dataclass(frozen=True, eq=False)
class Between:
    """A number that is not known exactly; equal to any between these."""

    least: float
    most: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and self.least <= other <= self.most

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class When:
    """A moment in this span; equal to any in it."""

    span: Span

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, datetime):
            return False
        us = round(other.timestamp() * 1_000_000)
        return self.span.since_us <= us <= self.span.until_us

    __hash__ = None  # type: ignore[assignment]


class _Anything:
    """Equal to anything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


ANYTHING = _Anything()


def first(spans: Iterable[Span]) -> When:
    """The moment of the first of these."""
    known = list(spans)
    return When(Span(min(s.since_us for s in known), min(s.until_us for s in known)))


def last(spans: Iterable[Span]) -> When:
    """The moment of the last of these."""
    known = list(spans)
    return When(Span(max(s.since_us for s in known), max(s.until_us for s in known)))


def took(begin: Span, end: Span) -> Span:
    """The time between two moments."""
    return Span(max(end.since_us - begin.until_us, 0), max(end.until_us - begin.since_us, 0))


def percentile(part: float, times: Sequence[Span]) -> Between | None:
    """The time in ms that this part of all does not exceed."""
    if not times:
        return None
    least, most = sorted(t.since_us for t in times), sorted(t.until_us for t in times)
    place = (len(times) - 1) * part
    below, above = int(place), min(int(place) + 1, len(times) - 1)
    return Between(
        least[below] / _MS * (1 - _WITHIN) - _MARGIN_MS,
        most[above] / _MS * (1 + _WITHIN) + _MARGIN_MS,
    )


def number(spans: Iterable[Span], since_us: int, until_us: int) -> Between:
    """How many of these moments are in this time."""
    known = list(spans)
    sure = sum(since_us <= each.since_us and each.until_us < until_us for each in known)
    maybe = sum(each.until_us >= since_us and each.since_us < until_us for each in known)
    return Between(sure, maybe)


def moment(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1_000_000, UTC)
