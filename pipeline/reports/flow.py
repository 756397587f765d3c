"""How many messages pass, and what becomes of them."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.journal.schema import Kind
from holdfast.pipeline.copies import ENDS, LOST, is_kind
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.reach import with_age
from holdfast.pipeline.reports.tables import Tables, share

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_STATES = (Kind.DEAD, Kind.EXPIRED, Kind.DISCARDED)
_ACKED = (Kind.ACKED, Kind.WRITTEN)


def funnel(tables: Tables) -> "DataFrame":
    """By channel: publishes, copies, and the number of each end.

    `lost` copies were in the memory of a process that ended. Messages from before the journal are
    left out, because their ends may be known but not their copies.
    """
    published = (
        _whole(tables.events.where(is_kind(Kind.PUBLISHED)), tables)
        .groupBy("channel")
        .agg(_count(_is_first()).alias("published"), F.sum("copies").alias("copies"))
    )
    state = F.col("state")
    lived = (
        _whole(tables.life, tables)
        .groupBy("channel")
        .agg(
            _count(F.col("generation") > 0).alias("replayed"),
            _count(F.col("handed_ts").isNotNull()).alias("handed"),
            _count(state.isin(*_ACKED)).alias("acked"),
            *(_count(state == end).alias(end) for end in _STATES),
            _count(~state.isin(OPEN, LOST)).alias("ended"),
            _count(state == OPEN).alias("in_hands"),
        )
    )
    lost = tables.lost.groupBy("channel").agg(F.sum("n").alias("lost"))
    whole = published.join(lived, on="channel", how="full").join(lost, on="channel", how="full")
    # If frames are missing, there may be more ends than copies.
    rest = F.greatest(
        F.col("copies") + F.col("replayed") - F.col("ended") - F.col("lost"), F.col("in_hands")
    )
    return (
        whole.na.fill(0)
        .withColumn("open", rest)
        .withColumn("share", share(F.col("acked"), F.col("copies") + F.col("replayed")))
        .drop("ended", "in_hands")
        .orderBy(F.desc("copies"), "channel")
    )


def _whole(rows: "DataFrame", tables: Tables) -> "DataFrame":
    return with_age(rows, tables.events).where(~F.col("is_old"))


def throughput(tables: Tables) -> "DataFrame":
    """By minute and node, the newest first."""
    handed = is_kind(Kind.HANDED, Kind.REDELIVERED, Kind.WRITTEN)
    return (
        tables.events.where(F.col("msg").isNotNull())
        .groupBy(F.date_trunc("minute", "ts").alias("minute"), "node")
        .agg(
            _count(_is_first()).alias("published"),
            F.coalesce(F.sum("copies"), F.lit(0)).alias("copies"),
            F.coalesce(F.sum("size"), F.lit(0)).alias("bytes"),
            _count(handed).alias("handed"),
            _count(is_kind(*ENDS)).alias("ended"),
            _count(is_kind(Kind.DEAD)).alias("dead"),
        )
        .orderBy(F.desc("minute"), "node")
    )


def _is_first() -> "Column":
    """Return whether the event is the first publish of a message; others add receivers."""
    return is_kind(Kind.PUBLISHED) & (F.col("size") > 0)


def _count(condition: "Column") -> "Column":
    return F.count(F.when(condition, 1))
