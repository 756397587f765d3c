"""What each column of a report means, and how people write its values; times are UTC.

The command, the report page and the console show tables by these definitions alone.
"""

from typing import NamedTuple

from holdfast.units import Form


class Column(NamedTuple):
    """One column of a table."""

    name: str
    form: Form
    meaning: str


def _times(name: str, what: str) -> dict[str, tuple[Form, str]]:
    """Return the percentiles of a time."""
    parts = {
        "p50": "in half of the cases at most",
        "p95": "in 95 of 100 cases at most",
        "p99": "in 99 of 100 cases at most",
        "max": "at most",
    }
    return {f"{name}_{part}": (Form.MS, f"{what}, {words}.") for part, words in parts.items()}


# What a column means in every report that has it, unless the report says something else.
_USUAL: dict[str, tuple[Form, str]] = {
    "channel": (Form.CHANNEL, "The channel; all channels for replies are /ret/*."),
    "receiver": (Form.SESSION, "The receiving session."),
    "sender": (Form.SESSION, "The publishing session; the server itself has none."),
    "message": (Form.MESSAGE, "The message; holdfast message shows every step of it."),
    "node": (Form.TEXT, "The server that wrote the events."),
    "code": (Form.CODE, "The error code."),
    "wording": (Form.TEXT, "The text of the refusal, with a star for all but plain words."),
    "fingerprint": (Form.FINGERPRINT, "The group of similar dead letters."),
    "minute": (Form.MINUTE, "The minute."),
    "hour": (Form.HOUR, "The hour."),
    "day": (Form.DAY, "The day of publish; the newest may not be over."),
    "first": (Form.TIME, "When the first one happened."),
    "last": (Form.TIME, "When the last one happened."),
    "published": (Form.COUNT, "Messages published."),
    "copies": (Form.COUNT, "Copies of messages: one for each receiver, or for a work queue."),
    "bytes": (Form.BYTES, "The size of the messages."),
    "handed": (Form.COUNT, "Copies handed over at least once."),
    "acked": (Form.COUNT, "Copies acknowledged, or written where no ack follows."),
    "dead": (Form.COUNT, "Copies that became dead letters."),
    "expired": (Form.COUNT, "Copies whose lifetime ended first."),
    "discarded": (Form.COUNT, "Copies removed without a dead letter."),
    "receivers": (Form.COUNT, "Different receivers."),
    "channels": (Form.COUNT, "Different channels."),
    "attempts": (Form.COUNT, "The most hand-overs of one copy."),
    "came": (Form.COUNT, "Copies that began."),
    "went": (Form.COUNT, "Copies that ended."),
    "share": (Form.SHARE, "ACKED as a part of all copies, replays included."),
    **_times("delivery", "Time from publish to the first hand-over"),
    **_times("answer", "Time from the hand-over to the ack"),
    **_times("critical", "Critical time, from publish to ack"),
    **_times("ack", "Time from a hand-over to the ack"),
    **_times("lag", "Time from publish to ack"),
}

_LATENCY = (
    "channel", "n", "delivery_p50", "delivery_p95", "delivery_p99", "delivery_max", "acked",
    "answer_p50", "answer_p95", "answer_p99", "answer_max", "critical_p50", "critical_p95",
    "critical_p99", "critical_max",
)  # fmt: skip
_OF_LATENCY = {
    "n": (Form.COUNT, "Copies handed over."),
    "acked": (Form.COUNT, "Copies acknowledged; those written without an ack do not count."),
}
_RATIOS = {
    f"{name}_to_{before}_before": (Form.SHARE, f"{what} as a part of those of the {day} before.")
    for before, day in (("day", "day"), ("week", "same day of the week"))
    for name, what in (("copies", "Copies"), ("dead", "Dead letters"), ("p95", "DELIVERY_P95"))
}


def _columns(names: tuple[str, ...], **own: tuple[Form, str]) -> tuple[Column, ...]:
    known = {**_USUAL, **own}
    return tuple(Column(name, *known[name]) for name in names)


# The titles of tables.
TITLES = {
    "throughput": "Throughput",
    "days": "Days",
    "unusual": "Unusual hours",
    "publishers": "Publishers",
    "funnel": "Outcomes",
    "backlog": "Backlog",
    "trend": "Trend of the backlog",
    "lag": "Lag",
    "refused-publishes": "Refused publishes",
    "latency": "Latency",
    "slow-receivers": "Slow receivers",
    "causes": "Causes",
    "dead": "Dead letters",
    "poison": "Poison messages",
    "redelivery": "Redelivery",
    "flapping": "Unstable receivers",
    "holdback-advice": "Delay between attempts",
    "requests": "Requests",
    "latency-by-hour": "Latency by channel and hour of publish",
    "audit": "Findings of the audit",
}

COLUMNS: dict[str, tuple[Column, ...]] = {
    "throughput": _columns(
        ("minute", "node", "published", "copies", "bytes", "handed", "ended", "dead"),
        handed=(Form.COUNT, "Hand-overs, repeated ones included."),
        ended=(Form.COUNT, "Copies that ended, whatever their end."),
    ),
    "days": _columns(
        ("day", "published", "copies", "acked", "dead", "delivery_p95", *_RATIOS), **_RATIOS
    ),
    "unusual": _columns(
        ("hour", "channel", "measure", "found", "usual", "spread", "spreads"),
        measure=(Form.TEXT, "What is unusual: messages, dead letters, or DELIVERY_P95 in ms."),
        found=(Form.NUMBER, "Its value in this hour."),
        usual=(Form.NUMBER, "The median of its values in the same hour of all days."),
        spread=(Form.NUMBER, "How far a value is from the usual one on an ordinary day."),
        spreads=(Form.NUMBER, "How far this value is from the usual one, in spreads."),
    ),
    "publishers": _columns(
        ("sender", "published", "copies", "bytes", "most_per_minute", "busiest"),
        most_per_minute=(Form.COUNT, "Messages in the busiest minute."),
        busiest=(Form.MINUTE, "The busiest minute."),
    ),
    "funnel": _columns(
        (
            *("channel", "published", "copies", "replayed", "moves", "handed", "acked", "dead"),
            *("expired", "discarded", "lost", "open", "share"),
        ),
        replayed=(Form.COUNT, "Dead letters that became copies again."),
        moves=(
            Form.COUNT,
            "How often copies left a session, or the queue of a subject, for another queue.",
        ),
        lost=(Form.COUNT, "Copies that were in the memory of a process when it ended."),
        open=(Form.COUNT, "Copies that have not ended."),
    ),
    "backlog": _columns(
        ("hour", "came", "went", "most", "waiting"),
        most=(Form.COUNT, "The most copies that were open at the end of a minute."),
        waiting=(Form.COUNT, "Copies open at the end of the hour."),
    ),
    "trend": _columns(
        ("channel", "waiting", "hour_before", "day_before", "came", "went", "empty"),
        waiting=(Form.COUNT, "Copies open at the time of the newest event."),
        hour_before=(Form.COUNT, "Copies open an hour before that."),
        day_before=(Form.COUNT, "Copies open a day before that."),
        came=(Form.COUNT, "Copies that began in the last hour."),
        went=(Form.COUNT, "Copies that ended in the last hour."),
        empty=(Form.TIME, "When none will be left, if the last hour goes on."),
    ),
    "latency": _columns(_LATENCY, **_OF_LATENCY),
    "latency-by-hour": _columns(
        ("hour", *_LATENCY), **_OF_LATENCY, hour=(Form.HOUR, "The hour of publish.")
    ),
    "lag": _columns(
        ("hour", "receiver", "acked", "lag_p50", "lag_p95", "lag_max"),
        hour=(Form.HOUR, "The hour of the acks."),
    ),
    "slow-receivers": _columns(
        ("receiver", "acked", "channels", "ack_p50", "ack_p95", "ack_max"),
        acked=(Form.COUNT, "Copies acknowledged."),
    ),
    "causes": _columns(
        (
            *("code", "wording", "refusals", "dead", "receivers", "channels", "example"),
            *("first", "last"),
        ),
        refusals=(Form.COUNT, "Refusals, repeated ones included."),
        example=(Form.CHANNEL, "One of the channels, with a star for words with a digit."),
    ),
    "dead": _columns(("code", "channel", "fingerprint", "dead", "receivers", "first", "last")),
    "poison": _columns(
        ("message", "channel", "receivers", "dead", "code", "share"),
        dead=(Form.COUNT, "Receivers for which it became a dead letter."),
        code=(Form.CODE, "One of the error codes."),
        share=(Form.SHARE, "DEAD as a part of all receivers."),
    ),
    "redelivery": _columns(
        (
            *("channel", "receiver", "copies", "repeated", "redeliveries", "refusals"),
            *("attempts", "share"),
        ),
        copies=(Form.COUNT, "Copies handed over."),
        repeated=(Form.COUNT, "Copies handed over again."),
        redeliveries=(Form.COUNT, "How often that happened."),
        refusals=(Form.COUNT, "Deliveries that were refused or failed."),
        share=(Form.SHARE, "REPEATED as a part of the copies."),
    ),
    "flapping": _columns(
        ("receiver", "first", "last", "losses", "how"),
        losses=(Form.COUNT, "How often it lost contact."),
        how=(Form.TEXT, "What the losses were."),
    ),
    "holdback-advice": _columns(
        (
            *("channel", "retried", "succeeded", "success_p50", "backoff", "max_attempts"),
            "share",
        ),
        retried=(Form.COUNT, "Copies handed over again after a failure."),
        succeeded=(Form.COUNT, "Of these, those that were acknowledged in the end."),
        success_p50=(Form.MS, "Time from the first hand-over to the ack, in half of the cases."),
        backoff=(Form.MS, "How long to wait between two attempts: enough for nine of ten."),
        max_attempts=(Form.COUNT, "How many attempts were enough for 99 of 100."),
        share=(Form.SHARE, "SUCCEEDED as a part of those retried."),
    ),
    "requests": _columns(
        (
            *("channel", "asked", "answered", "no_responders", "timeout", "refused", "abandoned"),
            *("unsent", "answer_p50", "answer_p95", "answer_p99", "late", "duplicate"),
            *("denied", "share"),
        ),
        asked=(Form.COUNT, "Requests."),
        answered=(Form.COUNT, "Requests with a reply in time."),
        no_responders=(Form.COUNT, "Requests that nobody could answer."),
        timeout=(Form.COUNT, "Requests without a reply in time."),
        refused=(Form.COUNT, "Requests that the last receiver refused."),
        abandoned=(Form.COUNT, "Requests whose requester ended."),
        unsent=(Form.COUNT, "Requests that were not published."),
        answer_p50=(Form.MS, "Time from the request to its reply, in half of the cases at most."),
        answer_p95=(Form.MS, "Time to the reply, in 95 of 100 cases at most."),
        answer_p99=(Form.MS, "Time to the reply, in 99 of 100 cases at most."),
        late=(Form.COUNT, "Replies after the end of their request."),
        duplicate=(Form.COUNT, "Replies to requests that had one."),
        denied=(Form.COUNT, "Replies of sessions that were not asked."),
        share=(Form.SHARE, "ANSWERED as a part of those asked."),
    ),
    "refused-publishes": _columns(
        ("reason", "channel", "refused", "first", "last"),
        reason=(Form.TEXT, "The name of the error in the reply."),
        refused=(Form.COUNT, "Publishes that were refused."),
        first=(Form.TIME, "The first of them, up to a minute late."),
        last=(Form.TIME, "The last of them, up to a minute late."),
    ),
    "audit": _columns(
        ("kind", "node", "message", "receiver", "since", "until", "number", "what"),
        kind=(Form.TEXT, "The kind of violation, or of time of which not everything is known."),
        node=(Form.TEXT, "The server that received the message, or wrote the events."),
        since=(Form.TIME, "Begin of the time."),
        until=(Form.TIME, "End of the time."),
        number=(Form.NUMBER, "The excess, the shortage, or the length of the time in ms."),
        what=(Form.TEXT, "More about it."),
    ),
}
