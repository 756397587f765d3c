"""The throughput chart of the page."""

from datetime import UTC, datetime, timedelta

from holdfast.pipeline.html.charts import lines
from holdfast.pipeline.html.columns import numbers, words
from holdfast.pipeline.reports.catalogue import Result
from holdfast.pipeline.reports.forms import number

_FLOWS = ("handed", "published", "dead")
# The number of points; more do not make a line look smoother.
_POINTS = 240
# The colour of failures.
BAD = 2
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)

# The totals of all nodes in each minute since 1970 with events.
Minutes = dict[int, list[float]]


def picture(result: Result) -> str:
    """Draw lines of hand-overs and publishes; below them one of deaths, if there are any."""
    totals = _by_minute(result)
    first, last = min(totals), max(totals)
    size = -(-(last - first + 1) // _POINTS)
    times = [_shown(minute) for minute in range(first, last + 1, size)]
    # A point shows the busiest of its minutes; minutes without events count as zero.
    series = {name: [0.0] * len(times) for name in _FLOWS}
    for minute, counts in totals.items():
        point = (minute - first) // size
        for name, count in zip(_FLOWS, counts, strict=True):
            series[name][point] = max(series[name][point], count)
    drawn = lines(times, {name: series[name] for name in ("handed", "published")})
    if any(series["dead"]):
        died = lines(times, {"dead": series["dead"]}, colour=BAD)
        drawn += f'<div class="small">{died}</div>'
    return drawn


def finding(result: Result) -> str:
    """Return a sentence about the busiest minute."""
    totals = _by_minute(result)
    minute = max(totals, key=lambda each: totals[each][0])
    most = number(totals[minute][0])
    return (
        f"The busiest minute had {most} hand-overs, on {_shown(minute).replace(' ', ' at ')} UTC."
    )


def _by_minute(result: Result) -> Minutes:
    totals: Minutes = {}
    columns = (numbers(result, name) for name in _FLOWS)
    for time, *counts in zip(words(result, "minute"), *columns, strict=True):
        minute = (datetime.fromisoformat(time) - _BEGIN) // _MINUTE
        before = totals.get(minute, [0.0] * len(_FLOWS))
        totals[minute] = [a + b for a, b in zip(before, counts, strict=True)]
    return totals


def _shown(minute: int) -> str:
    return (_BEGIN + minute * _MINUTE).strftime("%Y-%m-%d %H:%M")
