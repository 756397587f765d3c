"""Runs of a node: what only its process had is gone when it starts again."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Later than anything.
NEVER = 2**62


def starts(events: "DataFrame") -> "DataFrame":
    """By node, the starts of its process."""
    told = events.where((F.col("kind") == Kind.NODE) & (F.col("what") == "start"))
    start = F.struct(F.unix_micros("ts").alias("us"), _seed().alias("seed"), "seq")
    return told.groupBy(F.col("node").alias("origin")).agg(F.collect_list(start).alias("starts"))


def with_runs(events: "DataFrame", starts: "DataFrame | None") -> "DataFrame":
    """Each event with the time at which the run that it is of was found to be over: `over_us`.

    Frames are numbered anew in a store that was emptied; then time has to tell.
    """
    if starts is None:
        return events.withColumn("over_us", F.lit(NEVER))
    seed, seq, us = _seed(), F.col("seq"), F.unix_micros("ts")

    def is_later(start: "Column") -> "Column":
        same = start["seed"] == seed
        return F.when(same, start["seq"] > seq).otherwise(start["us"] > us)

    later = F.filter("starts", is_later)
    return _joined(events, starts).withColumn("over_us", _first(later)).drop("starts")


def carried_with_runs(carried: "DataFrame", starts: "DataFrame | None") -> "DataFrame":
    """What was carried from earlier batches is of the run before the first start."""
    if starts is None:
        return carried.withColumn("over_us", F.lit(NEVER))
    return _joined(carried, starts).withColumn("over_us", _first(F.col("starts"))).drop("starts")


def _joined(rows: "DataFrame", starts: "DataFrame") -> "DataFrame":
    return rows.join(F.broadcast(starts), on="origin", how="left")


def _first(starts: "Column") -> "Column":
    """Of starts in the order of time."""
    times = F.transform(starts, lambda start: start["us"])
    return F.coalesce(F.array_min(times), F.lit(NEVER))


def _seed() -> "Column":
    # For every event: a regular expression would take longer than all else.
    return F.expr("left(epoch, length(epoch) - length(substring_index(epoch, '-', -1)))")
