"""What the page says of each report, and how it draws it."""

from collections.abc import Callable
from typing import NamedTuple, cast

from pipeline.html.charts import bars, lines, ranges, stacked
from pipeline.reports.catalogue import Result

_UNKNOWN = "(unknown)"
# A line of more of them is not smoother to look at.
_POINTS = 240


class Section(NamedTuple):
    """A report on the page; `empty` is said where it has no rows."""

    title: str
    text: str
    empty: str
    picture: Callable[[Result], str]


def _words(result: Result, name: str) -> list[str]:
    place = result.columns.index(name)
    return [_UNKNOWN if row[place] is None else str(row[place]) for row in result.rows]


def _numbers(result: Result, name: str) -> list[float]:
    place = result.columns.index(name)
    return [cast("float", row[place] or 0) for row in result.rows]


def _bars(label: str, value: str, unit: str = "") -> Callable[[Result], str]:
    def draw(result: Result) -> str:
        pairs = zip(_words(result, label), _numbers(result, value), strict=True)
        return bars([*pairs], unit=unit)

    return draw


def _latency(result: Result) -> str:
    parts = (_numbers(result, f"delivery_{part}") for part in ("p50", "p95", "p99"))
    return ranges(
        [*zip(_words(result, "channel"), map(list, zip(*parts, strict=True)), strict=True)],
        unit=" ms",
    )


def _funnel(result: Result) -> str:
    names = ("acked", "open", "dead", "expired", "discarded", "lost")
    return stacked(_words(result, "channel"), {name: _numbers(result, name) for name in names})


def _throughput(result: Result) -> str:
    names = ("handed", "published", "dead")
    totals: dict[str, list[float]] = {}
    columns = (_numbers(result, name) for name in names)
    # Nodes are told apart in the table.
    for time, *values in zip(_words(result, "minute"), *columns, strict=True):
        before = totals.get(time, [0.0] * len(names))
        totals[time] = [a + b for a, b in zip(before, values, strict=True)]
    times = sorted(totals)
    size = -(-len(times) // _POINTS)
    parts = [times[begin : begin + size] for begin in range(0, len(times), size)]
    series = {
        name: [sum(totals[time][place] for time in part) / len(part) for part in parts]
        for place, name in enumerate(names)
    }
    return lines([part[0][:16].replace("T", " ") for part in parts], series)


def _dead(result: Result) -> str:
    labels = map(" on ".join, zip(_words(result, "code"), _words(result, "channel"), strict=True))
    return bars([*zip(labels, _numbers(result, "dead"), strict=True)])


SECTIONS = {
    "throughput": Section(
        "Throughput", "Messages a minute.", "Nothing was published.", _throughput
    ),
    "funnel": Section(
        "Where messages stayed",
        "Copies for receivers by channel, and what became of them.",
        "Nothing was published.",
        _funnel,
    ),
    "latency": Section(
        "Latency",
        "From publish to the first hand-over, on a logarithmic scale: the first mark is half of "
        "all, the second 95 of 100, the end 99 of 100.",
        "Nothing was handed over.",
        _latency,
    ),
    "dead": Section("Dead letters", "Deaths that are alike.", "Nothing died.", _dead),
    "poison": Section(
        "Poison",
        "Messages that nearly all of their receivers died of.",
        "No message is poison.",
        _bars("msg", "dead"),
    ),
    "redelivery": Section(
        "Redelivery",
        "Receivers to whom things were handed more than once.",
        "Nothing was handed over.",
        _bars("receiver", "redeliveries"),
    ),
    "flapping": Section(
        "Coming and going",
        "Receivers whose contact was lost again and again.",
        "Nobody's contact was lost again and again.",
        _bars("receiver", "losses"),
    ),
    "holdback-advice": Section(
        "How long to wait",
        "By channel, a time between attempts that would have been enough for nine of ten of those "
        "that got through at last.",
        "Nothing was tried twice.",
        _bars("channel", "backoff", " ms"),
    ),
}
