"""The text and the chart of each report on the page."""

from collections.abc import Callable
from typing import NamedTuple

from holdfast.pipeline.html import throughput
from holdfast.pipeline.html.charts import bars, lines, ranges, stacked
from holdfast.pipeline.html.columns import numbers, words
from holdfast.pipeline.html.throughput import BAD
from holdfast.pipeline.reports.catalogue import Result
from holdfast.pipeline.reports.forms import number, with_unit
from holdfast.units import counted

_ANSWERS = ("answered", "no_responders", "timeout", "refused", "abandoned", "unsent")
_MEASURES = {"published": "messages", "dead": "dead letters", "delivery_p95": "p95"}
_ENDS = ("acked", "open", "dead", "expired", "discarded", "lost")


class Section(NamedTuple):
    """A report on the page; `finding` summarises its rows, `empty` replaces it without rows."""

    text: str
    empty: str
    finding: Callable[[Result], str]
    picture: Callable[[Result], str]


def _bars(value: str, *labels: str, unit: str = "", colour: int = 0) -> Callable[[Result], str]:
    """Return a function that draws bars of the values above zero."""

    def draw(result: Result) -> str:
        columns = [_labels(result, label) for label in labels]
        named = map(" · ".join, zip(*columns, strict=True))
        pairs = zip(named, numbers(result, value), strict=True)
        return bars(
            [(label, found) for label, found in pairs if found > 0], unit=unit, colour=colour
        )

    return draw


def _labels(result: Result, name: str) -> list[str]:
    found = words(result, name)
    return [each[:10] for each in found] if name == "day" else found


def _backlog(result: Result) -> str:
    """Draw the largest backlog of each hour, the oldest first."""
    hours, most = words(result, "hour"), numbers(result, "most")
    return lines([hour[:16].replace("T", " ") for hour in reversed(hours)], {"waiting": most[::-1]})


def _backlog_found(result: Result) -> str:
    most, hours = numbers(result, "most"), words(result, "hour")
    hour = hours[most.index(max(most))][:16].replace("T", " at ")
    left = number(numbers(result, "waiting")[0])
    return f"At most {number(max(most))} waited, in the hour of {hour} UTC, and {left} at the end."


def _trend_found(result: Result) -> str:
    waiting, channel = numbers(result, "waiting"), words(result, "channel")[0]
    if not waiting[0]:
        return "Nothing waits."
    came, went = (numbers(result, name)[0] for name in ("came", "went"))
    how = "grew" if came > went else "shrank" if went > came else "did not change"
    return f"{number(waiting[0])} wait on {channel}; in the last hour they {how}."


def _lag(result: Result) -> str:
    """Draw the largest lag of each receiver."""
    most: dict[str, float] = {}
    for receiver, lag in zip(words(result, "receiver"), numbers(result, "lag_p95"), strict=True):
        most[receiver] = max(most.get(receiver, 0), lag)
    worst = sorted(most.items(), key=lambda pair: -pair[1])
    return bars([pair for pair in worst if pair[1] > 0], unit=" ms")


def _lag_found(result: Result) -> str:
    lags, receivers, hours = (
        numbers(result, "lag_p95"),
        words(result, "receiver"),
        words(result, "hour"),
    )
    place = lags.index(max(lags))
    hour = hours[place][:16].replace("T", " at ")
    lag = with_unit(lags[place], " ms")
    return f"{receivers[place]} was furthest behind, in the hour of {hour} UTC: p95 was {lag}."


def _refused_publishes_found(result: Result) -> str:
    refused, reason = numbers(result, "refused"), words(result, "reason")[0]
    channel = words(result, "channel", missing="(none)")[0]
    return f"{number(refused[0])} of {number(sum(refused))} are {reason} on {channel}."


def _days_found(result: Result) -> str:
    copies, days = numbers(result, "copies"), words(result, "day")
    busiest = days[copies.index(max(copies))][:10]
    most = number(max(copies))
    return f"{counted(len(days), 'day')}; the busiest was {busiest}, with {most} copies."


def _unusual(result: Result) -> str:
    """Draw the distances, whether the count was too high or too low."""
    hours = [hour[:16].replace("T", " ") for hour in words(result, "hour")]
    measures = [_MEASURES[measure] for measure in words(result, "measure")]
    named = map(" · ".join, zip(hours, words(result, "channel"), measures, strict=True))
    return bars([*zip(named, map(abs, numbers(result, "spreads")), strict=True)], colour=BAD)


def _unusual_found(result: Result) -> str:
    hour, channel = words(result, "hour")[0][:16].replace("T", " at "), words(result, "channel")[0]
    measure = words(result, "measure")[0]
    unit = " ms" if measure == "delivery_p95" else ""
    found, usual = (with_unit(numbers(result, name)[0], unit) for name in ("found", "usual"))
    return f"On {hour} UTC, {_MEASURES[measure]} of {channel}: {found} instead of {usual}."


def _causes(result: Result) -> list[str]:
    wordings = words(result, "wording", missing="(no text)")
    return [*map(" · ".join, zip(words(result, "code"), wordings, strict=True))]


def _causes_picture(result: Result) -> str:
    return bars([*zip(_causes(result), numbers(result, "refusals"), strict=True)], colour=BAD)


def _causes_found(result: Result) -> str:
    refusals, cause = numbers(result, "refusals"), _causes(result)[0]
    return f"{number(refusals[0])} of {number(sum(refusals))} refusals are {cause}."


def _requests(result: Result) -> str:
    return stacked(words(result, "channel"), {name: numbers(result, name) for name in _ANSWERS})


def _requests_found(result: Result) -> str:
    asked, answered = (sum(numbers(result, name)) for name in ("asked", "answered"))
    return f"{number(answered)} of {number(asked)} requests were answered."


def _latency(result: Result) -> str:
    parts = (numbers(result, f"delivery_{part}") for part in ("p50", "p95", "p99"))
    return ranges(
        [*zip(words(result, "channel"), map(list, zip(*parts, strict=True)), strict=True)]
    )


def _latency_found(result: Result) -> str:
    channel = words(result, "channel")[0]
    half, most = (
        with_unit(numbers(result, f"delivery_{part}")[0], " ms") for part in ("p50", "p99")
    )
    return f"On the busiest channel, {channel}, p50 is {half} and p99 is {most}."


def _funnel(result: Result) -> str:
    return stacked(words(result, "channel"), {name: numbers(result, name) for name in _ENDS})


def _funnel_found(result: Result) -> str:
    sums = {name: sum(numbers(result, name)) for name in _ENDS}
    others = ", ".join(f"{number(sums[name])} {name}" for name in _ENDS[1:] if sums[name])
    return f"{number(sums['acked'])} copies acked, {others or 'no others'}."


def _dead_found(result: Result) -> str:
    dead = numbers(result, "dead")
    code, channel = words(result, "code")[0], words(result, "channel")[0]
    return f"{number(dead[0])} of {number(sum(dead))} dead letters are {code} on {channel}."


def _poison_found(result: Result) -> str:
    most = counted(round(numbers(result, "dead")[0]), "receiver")
    return f"{counted(len(result.rows), 'message')}; the worst became a dead letter for {most}."


def _flapping_found(result: Result) -> str:
    receiver, losses = words(result, "receiver")[0], numbers(result, "losses")[0]
    return f"{receiver} lost contact {counted(round(losses), 'time')}."


def _publishers_found(result: Result) -> str:
    sent, most = numbers(result, "bytes"), words(result, "sender")[0]
    return f"{with_unit(sent[0], ' B')} of {with_unit(sum(sent), ' B')} are from {most}."


def _slow_found(result: Result) -> str:
    slowest, took = words(result, "receiver")[0], numbers(result, "ack_p95")[0]
    return f"{slowest} is the slowest: p95 is {with_unit(took, ' ms')}."


def _redelivery_found(result: Result) -> str:
    counts = numbers(result, "redeliveries")
    pairs = zip(words(result, "receiver"), counts, strict=True)
    who = {receiver for receiver, count in pairs if count}
    if not who:
        return "No redeliveries."
    again = counted(round(sum(counts)), "time")
    return f"{counted(len(who), 'receiver')} had redeliveries, {again} in total."


def _advice_found(result: Result) -> str:
    waits = [wait for wait in numbers(result, "backoff") if wait]
    if not waits:
        return "No failed delivery succeeded later."
    return f"Between {with_unit(min(waits), ' ms')} and {with_unit(max(waits), ' ms')}, by channel."


SECTIONS = {
    "throughput": Section(
        "Messages per minute, all nodes together.",
        "No message was published.",
        throughput.finding,
        throughput.picture,
    ),
    "days": Section(
        "Copies by day of publish. The newest day may not be over.",
        "No message was published.",
        _days_found,
        _bars("copies", "day"),
    ),
    "unusual": Section(
        "Hours that are unlike the same hour of other days, with their distance in usual spreads.",
        "No unusual hours, or fewer than five days of events.",
        _unusual_found,
        _unusual,
    ),
    "publishers": Section(
        "Bytes of messages by publishing session; the server itself has no session.",
        "No message was published.",
        _publishers_found,
        _bars("bytes", "sender", unit=" B"),
    ),
    "funnel": Section(
        "Copies of messages for receivers, by channel and outcome.",
        "No message was published.",
        _funnel_found,
        _funnel,
    ),
    "backlog": Section(
        "Copies that waited or were in flight: the maximum of each hour.",
        "No message was published.",
        _backlog_found,
        _backlog,
    ),
    "trend": Section(
        "Copies by channel that are open at the time of the newest event. The table has those an "
        "hour and a day before, and when none will be left if the last hour goes on.",
        "No message was published.",
        _trend_found,
        _bars("waiting", "channel"),
    ),
    "lag": Section(
        "Time from publish to the ack, by receiver: the largest p95 of all hours.",
        "No receiver acked anything.",
        _lag_found,
        _lag,
    ),
    "refused-publishes": Section(
        "Publishes that the server refused, by reason and channel.",
        "No publish was refused.",
        _refused_publishes_found,
        _bars("refused", "reason", "channel", colour=BAD),
    ),
    "latency": Section(
        "Time from publish to the first hand-over. The marks are p50, p95 and p99; the scale is "
        "logarithmic.",
        "No message was handed over.",
        _latency_found,
        _latency,
    ),
    "slow-receivers": Section(
        "Time from a hand-over to the ack, by receiver with ten acks or more: p95.",
        "No receiver acked ten times.",
        _slow_found,
        _bars("ack_p95", "receiver", unit=" ms"),
    ),
    "causes": Section(
        "Refusals by code and wording: their texts, with a star for all but plain words.",
        "No refusals and no dead letters.",
        _causes_found,
        _causes_picture,
    ),
    "dead": Section(
        "Dead letters by code and channel.",
        "No dead letters.",
        _dead_found,
        _bars("dead", "channel", "code", colour=BAD),
    ),
    "poison": Section(
        "Messages that became dead letters for nearly all of their receivers.",
        "No poison messages.",
        _poison_found,
        _bars("dead", "channel", "message", colour=BAD),
    ),
    "redelivery": Section(
        "Receivers with repeated hand-overs.",
        "No redeliveries and no refusals.",
        _redelivery_found,
        _bars("redeliveries", "receiver", "channel"),
    ),
    "flapping": Section(
        "Receivers that lost contact repeatedly.",
        "No receiver lost contact repeatedly.",
        _flapping_found,
        _bars("losses", "receiver"),
    ),
    "holdback-advice": Section(
        "By channel, the delay that would have been enough for nine of ten deliveries that "
        "succeeded after a failure.",
        "No delivery was retried.",
        _advice_found,
        _bars("backoff", "channel", unit=" ms"),
    ),
    "requests": Section(
        "Requests by channel and how they ended.",
        "No requests.",
        _requests_found,
        _requests,
    ),
}
