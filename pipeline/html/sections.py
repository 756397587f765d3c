"""What the page says of each report, and how it draws it."""

from collections.abc import Callable
from typing import NamedTuple

from pipeline.html import throughput
from pipeline.html.charts import bars, counted, number, ranges, stacked, told
from pipeline.html.columns import numbers, words
from pipeline.html.throughput import BAD
from pipeline.reports.catalogue import Result

_ENDS = ("acked", "open", "dead", "expired", "discarded", "lost")


class Section(NamedTuple):
    """A report on the page; `finding` is what its rows come to, `empty` what is said without."""

    title: str
    text: str
    empty: str
    finding: Callable[[Result], str]
    picture: Callable[[Result], str]


def _bars(value: str, *labels: str, unit: str = "", colour: int = 0) -> Callable[[Result], str]:
    """Bars of what is more than nothing."""

    def draw(result: Result) -> str:
        columns = [words(result, label) for label in labels]
        named = map(" · ".join, zip(*columns, strict=True))
        pairs = zip(named, numbers(result, value), strict=True)
        return bars(
            [(label, found) for label, found in pairs if found > 0], unit=unit, colour=colour
        )

    return draw


def _latency(result: Result) -> str:
    parts = (numbers(result, f"delivery_{part}") for part in ("p50", "p95", "p99"))
    return ranges(
        [*zip(words(result, "channel"), map(list, zip(*parts, strict=True)), strict=True)]
    )


def _latency_found(result: Result) -> str:
    channel = words(result, "channel")[0]
    half, most = (told(numbers(result, f"delivery_{part}")[0], " ms") for part in ("p50", "p99"))
    return f"Busiest is {channel}: half came within {half}, 99 of 100 within {most}."


def _funnel(result: Result) -> str:
    return stacked(words(result, "channel"), {name: numbers(result, name) for name in _ENDS})


def _funnel_found(result: Result) -> str:
    sums = {name: sum(numbers(result, name)) for name in _ENDS}
    others = ", ".join(f"{number(sums[name])} {name}" for name in _ENDS[1:] if sums[name])
    return f"{number(sums['acked'])} copies were acked; {others or 'nothing else became of any'}."


def _dead_found(result: Result) -> str:
    dead = numbers(result, "dead")
    code, channel = words(result, "code")[0], words(result, "channel")[0]
    return f"{number(dead[0])} of {number(sum(dead))} deaths are alike: {code} on {channel}."


def _poison_found(result: Result) -> str:
    most = counted(numbers(result, "dead")[0], "receiver")
    return f"{counted(len(result.rows), 'message')}; {most} died of the worst."


def _flapping_found(result: Result) -> str:
    receiver, losses = words(result, "receiver")[0], numbers(result, "losses")[0]
    return f"{receiver} was lost {counted(losses, 'time')}."


def _redelivery_found(result: Result) -> str:
    counts = numbers(result, "redeliveries")
    pairs = zip(words(result, "receiver"), counts, strict=True)
    who = {receiver for receiver, count in pairs if count}
    if not who:
        return "Nobody got anything twice."
    again = counted(sum(counts), "time")
    return f"{counted(len(who), 'receiver')} got something again, {again} in all."


def _advice_found(result: Result) -> str:
    waits = [wait for wait in numbers(result, "backoff") if wait]
    if not waits:
        return "Nothing that failed got through later."
    return f"Between {told(min(waits), ' ms')} and {told(max(waits), ' ms')}, by channel."


SECTIONS = {
    "throughput": Section(
        "Throughput",
        "Messages a minute, all nodes together.",
        "Nothing was published.",
        throughput.finding,
        throughput.picture,
    ),
    "funnel": Section(
        "Where messages stayed",
        "Copies for receivers by channel, and what became of them.",
        "Nothing was published.",
        _funnel_found,
        _funnel,
    ),
    "latency": Section(
        "Latency",
        "From publish to the first hand-over. The first mark is half of all, the second 95 of "
        "100, the last 99 of 100; each step of the scale is ten times the one before.",
        "Nothing was handed over.",
        _latency_found,
        _latency,
    ),
    "dead": Section(
        "Dead letters",
        "Deaths that are alike.",
        "Nothing died.",
        _dead_found,
        _bars("dead", "channel", "code", colour=BAD),
    ),
    "poison": Section(
        "Poison",
        "Messages that nearly all of their receivers died of.",
        "No message is poison.",
        _poison_found,
        _bars("dead", "channel", "msg", colour=BAD),
    ),
    "redelivery": Section(
        "Redelivery",
        "Receivers to whom things were handed more than once.",
        "Nobody got anything twice, and nobody refused anything.",
        _redelivery_found,
        _bars("redeliveries", "receiver", "channel"),
    ),
    "flapping": Section(
        "Coming and going",
        "Receivers whose contact was lost again and again.",
        "Nobody's contact was lost again and again.",
        _flapping_found,
        _bars("losses", "receiver"),
    ),
    "holdback-advice": Section(
        "How long to wait",
        "By channel, a time between attempts that would have been enough for nine of ten of those "
        "that got through at last.",
        "Nothing was tried twice.",
        _advice_found,
        _bars("backoff", "channel", unit=" ms"),
    ),
}
