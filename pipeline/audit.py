"""Checks that every accepted copy has exactly one end, and that no receiver got a copy twice.

Each violation is a row: its kind, its subject, the excess or shortage, and a text. Copies without
an end so far are no violation. See `holdfast.pipeline.coverage` for what cannot be checked.
"""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from holdfast.journal.schema import Kind
from holdfast.pipeline.books import unbalanced
from holdfast.pipeline.copies import COPY, ENDS, MESSAGE, is_kind, together
from holdfast.pipeline.coverage import unknowns
from holdfast.pipeline.incidents import LOSSES
from holdfast.pipeline.reach import with_age

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

FINDING = ("kind", "node", "msg", "receiver", "since", "until", "number", "what")
VIOLATION = "kind string, node string, msg bigint, receiver string, number bigint, what string"
_NAMES = [column.split()[0] for column in VIOLATION.split(", ")]


def findings(events: "DataFrame", lacking: Mapping[str, int], now_us: int) -> "DataFrame":
    """Return the times of which not everything is known now, and all violations: FINDING."""
    found = unknowns(events, now_us).unionByName(
        violations(events, lacking), allowMissingColumns=True
    )
    return found.select(*FINDING)


def violations(events: "DataFrame", lacking: Mapping[str, int] | None = None) -> "DataFrame":
    """Return all violations in these events: VIOLATION.

    Args:
        lacking: By node, frames that should have come behind the last one.
    """
    parts = (
        _of_the_journal(events),
        _of_its_end(events, lacking or {}),
        _of_messages(events),
        unbalanced(events),
    )
    return reduce(_both, (part.select(*_NAMES) for part in parts)).orderBy(*_NAMES)


def _both(one: "DataFrame", other: "DataFrame") -> "DataFrame":
    return one.unionByName(other)


def _of_the_journal(events: "DataFrame") -> "DataFrame":
    """Find events that are missing from the journal, or that it must not contain."""
    is_dropped = is_kind(Kind.DROPPED) & (F.col("number") > 0)
    told = events.where(is_kind(*LOSSES) | is_dropped)
    text = F.when(is_dropped, F.lit("events found no room while the store was away"))
    return told.select(
        "kind",
        "node",
        F.lit(None).cast("bigint").alias("msg"),
        F.lit(None).cast("string").alias("receiver"),
        "number",
        F.coalesce(text, "what").alias("what"),
    )


def _of_its_end(events: "DataFrame", lacking: Mapping[str, int]) -> "DataFrame":
    text = "the last frames that were written are not there"
    rows = [("frame.lacking", node, None, None, frames, text) for node, frames in lacking.items()]
    return events.sparkSession.createDataFrame(rows, VIOLATION)


def _of_messages(events: "DataFrame") -> "DataFrame":
    """Find the faults of messages and of single copies.

    Faults are rare: all messages are checked by numbers alone, and only the faulty ones get texts.
    """
    told = events.where(F.col("msg").isNotNull())
    few = told.join(F.broadcast(_suspects(told)), on="msg", how="left_semi")
    judged = with_age(_copies(few), events)
    of_copies = F.flatten(F.collect_list(_in_words(_faults_of_copies())))
    messages = _messages(judged, of_copies.alias("of_copies"))
    faults = F.explode(F.concat("of_copies", _in_words(_faults_of_messages())))
    found = messages.select(F.col("origin").alias("node"), "msg", faults.alias("fault"))
    return found.select("fault.kind", "node", "msg", "fault.receiver", "fault.number", "fault.what")


def _suspects(told: "DataFrame") -> "DataFrame":
    """Return the messages with faults, if they were all published after the journals began."""
    copies = _copies(together(told)).withColumn("is_old", F.lit(False))
    messages = _messages(copies, F.bool_or(_any(_faults_of_copies())).alias("of_copies"))
    return messages.where(F.col("of_copies") | _any(_faults_of_messages())).select("msg")


def _messages(copies: "DataFrame", of_copies: "Column") -> "DataFrame":
    sums = [F.sum(name).alias(name) for name in _SUMS]
    receivers = F.count("receiver").alias("receivers")
    return copies.groupBy(*MESSAGE, "is_old").agg(*sums, receivers, of_copies)


_SUMS = ("published", "copies", "replayed", "ends", "others")


def _copies(told: "DataFrame") -> "DataFrame":
    """Summarise the events of each copy; the message itself counts as a copy for nobody."""
    ended, handed = is_kind(*ENDS), is_kind(Kind.HANDED, Kind.REDELIVERED)
    ts, seq = F.col("ts"), F.col("seq")
    is_other, begun = ~is_kind(Kind.PUBLISHED), F.min(F.when(is_kind(Kind.REPLAYED), ts))
    return told.groupBy(*COPY).agg(
        _count(is_kind(Kind.PUBLISHED)).alias("published"),
        F.coalesce(F.sum("copies"), F.lit(0)).alias("copies"),
        # A message made from an imported or edited letter begins with its replay.
        F.when(F.coalesce(begun <= F.min(F.when(is_other, ts)), F.lit(False)), 0)
        .otherwise(_count(is_other))
        .alias("others"),
        _count(is_kind(Kind.REPLAYED)).alias("replayed"),
        _count(is_kind(Kind.MOVED)).alias("moves"),
        _count(is_kind(Kind.HANDED)).alias("firsts"),
        _count(is_kind(Kind.ACKED)).alias("acks"),
        _count(ended).alias("ends"),
        # Clocks may jump and frames may overtake each other, but not both at once.
        F.max(F.when(handed, ts)).alias("handed_ts"),
        F.max(F.when(ended, ts)).alias("ended_ts"),
        F.max(F.when(handed, seq)).alias("handed_seq"),
        F.max(F.when(ended, seq)).alias("ended_seq"),
    )


class _Fault(NamedTuple):
    is_so: "Column"
    kind: str
    # The size of the excess.
    number: "Column"
    text: str
    receiver: "Column"


def _faults_of_copies() -> list[_Fault]:
    """A copy ends once, and its first hand-over happens once, before its ack and its end."""
    ends, firsts, acks = F.col("ends"), F.col("firsts"), F.col("acks")
    # What has moved to another queue of its subject may come back.
    lives = 1 + F.col("replayed") + F.col("moves")
    is_later = (F.col("handed_ts") > F.col("ended_ts")) & (F.col("handed_seq") > F.col("ended_seq"))
    is_late = (ends >= lives) & is_later
    is_unseen = ~F.col("is_old") & (acks > firsts)
    whose = F.col("receiver")
    return [
        _Fault(ends > lives, "settled_twice", ends - lives, "more ends than lives", whose),
        _Fault(firsts > lives, "handed_twice", firsts - lives, "handed over first, again", whose),
        _Fault(is_late, "handed_after_end", F.lit(1), "handed over after its end", whose),
        _Fault(is_unseen, "never_handed", acks - firsts, "acked, and never handed over", whose),
    ]


def _faults_of_messages() -> list[_Fault]:
    """A message has no more ends and receivers than copies, and its events need a publish."""
    is_known = ~F.col("is_old") & (F.col("published") > 0)
    is_unknown = ~F.col("is_old") & (F.col("published") == 0)
    room = F.col("copies") + F.col("replayed")
    others = F.col("others")
    ends, receivers = F.col("ends") - room, F.col("receivers") - room
    nobody = F.lit(None)
    return [
        _Fault(is_known & (ends > 0), "too_many_ends", ends, "more ends than copies", nobody),
        _Fault(
            is_known & (receivers > 0), "too_many_receivers", receivers, "more than copies", nobody
        ),
        _Fault(is_unknown & (others > 0), "not_published", others, "nobody published it", nobody),
    ]


def _any(faults: list[_Fault]) -> "Column":
    """Return whether there is any fault; unknown counts as none."""
    return reduce(or_, (F.coalesce(fault.is_so, F.lit(False)) for fault in faults))


def _in_words(faults: list[_Fault]) -> "Column":
    told = (
        F.when(
            fault.is_so,
            F.struct(
                F.lit(fault.kind).alias("kind"),
                fault.receiver.cast("string").alias("receiver"),
                fault.number.cast("bigint").alias("number"),
                F.lit(fault.text).alias("what"),
            ),
        )
        for fault in faults
    )
    return F.array_compact(F.array(*told))


def _count(condition: "Column") -> "Column":
    return F.count(F.when(condition, 1))
