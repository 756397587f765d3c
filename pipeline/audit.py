"""Whether everything that was accepted came to one end, and nobody got anything twice.

Each violation is a row: what kind, whose, how much is too much or too little, and words. Copies
whose ends are still to come are no violation.
"""

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Kind
from pipeline.books import unbalanced
from pipeline.incidents import LOSSES
from pipeline.lives import COPY, ENDS, MESSAGE, is_kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

VIOLATION = "kind string, node string, msg bigint, receiver string, number bigint, what string"


def violations(events: "DataFrame") -> "DataFrame":
    """All violations in these events: VIOLATION."""
    parts = (
        _of_the_journal(events),
        _of_copies(events),
        _of_messages(events),
        unbalanced(events),
    )
    return reduce(_both, (part.select(*_NAMES) for part in parts)).orderBy(*_NAMES)


_NAMES = [column.split()[0] for column in VIOLATION.split(", ")]


def _both(one: "DataFrame", other: "DataFrame") -> "DataFrame":
    return one.unionByName(other, allowMissingColumns=True)


def _of_the_journal(events: "DataFrame") -> "DataFrame":
    """What is not in the journal, or may not be."""
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


def _of_copies(events: "DataFrame") -> "DataFrame":
    """A copy ends once, is handed over for the first time once, and not after its end."""
    told = events.where(F.col("msg").isNotNull() & F.col("receiver").isNotNull())
    ended, handed = is_kind(*ENDS), is_kind(Kind.HANDED, Kind.REDELIVERED)
    ts, seq = F.col("ts"), F.col("seq")
    copies = told.groupBy(*COPY).agg(
        (1 + _count(is_kind(Kind.REPLAYED))).alias("lives"),
        _count(ended).alias("ends"),
        _count(is_kind(Kind.HANDED)).alias("firsts"),
        # Clocks jump and frames may overtake each other; not both at once.
        F.max(F.when(handed, ts)).alias("handed_ts"),
        F.max(F.when(ended, ts)).alias("ended_ts"),
        F.max(F.when(handed, seq)).alias("handed_seq"),
        F.max(F.when(ended, seq)).alias("ended_seq"),
    )
    ends, lives, firsts = F.col("ends"), F.col("lives"), F.col("firsts")
    is_over = ends >= lives
    is_later = (F.col("handed_ts") > F.col("ended_ts")) & (F.col("handed_seq") > F.col("ended_seq"))
    faults = (
        _fault(ends > lives, "settled_twice", ends - lives, "more ends than lives"),
        _fault(firsts > lives, "handed_twice", firsts - lives, "first hand-overs, and no replay"),
        _fault(
            is_over & is_later,
            "handed_after_end",
            F.lit(1),
            "handed over after its end",
        ),
    )
    return _told(copies, faults)


def _of_messages(events: "DataFrame") -> "DataFrame":
    """A message has no more ends than copies, and was published if anything became of it."""
    begin = (
        events.where(F.col("seq").isNotNull())
        .groupBy(F.col("node").alias("origin"))
        .agg(F.min("ts").alias("begin"))
    )
    messages = (
        events.where(F.col("msg").isNotNull())
        .groupBy(*MESSAGE)
        .agg(
            _count(is_kind(Kind.PUBLISHED)).alias("published"),
            F.coalesce(F.sum("copies"), F.lit(0)).alias("copies"),
            _count(is_kind(Kind.REPLAYED)).alias("replayed"),
            _count(is_kind(*ENDS)).alias("ends"),
            F.count(F.when(~is_kind(Kind.PUBLISHED), 1)).alias("others"),
        )
        .join(F.broadcast(begin), on="origin", how="left")
    )
    room = F.col("copies") + F.col("replayed")
    is_known = F.col("published") > 0
    is_old = F.floor(F.col("msg") / 1000) < F.unix_micros("begin")
    surplus = F.col("ends") - room
    faults = (
        _fault(is_known & (surplus > 0), "too_many_ends", surplus, "more ends than copies"),
        _fault(
            ~is_known & ~is_old,
            "not_published",
            F.col("others"),
            "nobody published it",
        ),
    )
    return _told(messages.withColumn("receiver", F.lit(None).cast("string")), faults)


def _told(rows: "DataFrame", faults: tuple["Column", ...]) -> "DataFrame":
    found = rows.withColumn("fault", F.explode(F.array_compact(F.array(*faults))))
    return found.select(
        "fault.kind", F.col("origin").alias("node"), "msg", "receiver", "fault.number", "fault.what"
    )


def _fault(is_so: "Column", kind: str, number: "Column", text: str) -> "Column":
    told = F.struct(
        F.lit(kind).alias("kind"),
        number.cast("bigint").alias("number"),
        F.lit(text).alias("what"),
    )
    return F.when(is_so, told)


def _count(condition: "Column") -> "Column":
    return F.count(F.when(condition, 1))
