"""Reports on receivers: redelivery, lost contact, and advice on delays."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.journal.schema import Kind
from holdfast.pipeline.copies import is_kind
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.reports.tables import Tables, ms, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Receivers that lost contact this often, with pauses no longer than this.
_FLAPS = 3
_REST = "10 minutes"
_LOSSES = ("polling", "dead", "left", "expired", "taken_over", "given_up")
_ACKED = (Kind.ACKED, Kind.WRITTEN)


def redelivery(tables: Tables) -> "DataFrame":
    """By channel and receiver with redeliveries or refusals, the most first."""
    again = F.col("redelivered") > 0
    return (
        tables.life.where(F.col("handed_ts").isNotNull())
        .groupBy("channel", "receiver")
        .agg(
            F.count("*").alias("copies"),
            F.count(F.when(again, 1)).alias("repeated"),
            F.sum("redelivered").alias("redeliveries"),
            F.sum("refused").alias("refusals"),
            F.max("attempts").alias("attempts"),
        )
        .where((F.col("redeliveries") > 0) | (F.col("refusals") > 0))
        .withColumn("share", share(F.col("repeated"), F.col("copies")))
        .orderBy(F.desc("redeliveries"), F.desc("refusals"), "receiver", "channel")
    )


def flapping(tables: Tables) -> "DataFrame":
    """Return receivers that lost contact repeatedly, and when."""
    lost = tables.events.where(
        is_kind(Kind.SESSION, Kind.DISPATCHER) & F.col("what").isin(*_LOSSES)
    )
    return (
        lost.groupBy("receiver", F.session_window("ts", _REST).alias("span"))
        .agg(
            F.count("*").alias("losses"),
            F.max("ts").alias("last"),
            F.concat_ws(" ", F.sort_array(F.collect_set("what"))).alias("how"),
        )
        .where(F.col("losses") >= _FLAPS)
        .select("receiver", F.col("span.start").alias("first"), "last", "losses", "how")
        .orderBy(F.desc("losses"), "receiver", "first")
    )


def holdback_advice(tables: Tables) -> "DataFrame":
    """By channel: the success of later hand-overs, and advice on the delay and the retries.

    The delay is the time in which nine of ten successful messages got through, divided by their
    attempts; the retries are the attempts that sufficed for 99 of 100.
    """
    through = F.col("state").isin(*_ACKED)
    took = F.unix_micros("ended_ts") - F.unix_micros("handed_ts")
    extra = F.greatest(F.col("attempts") - 1, F.lit(1))
    # A message that is held back after a refusal may be handed over again without a new attempt.
    again = (F.col("attempts") > 1) | (through & (F.col("refused") > 0))
    tried = tables.life.where((F.col("state") != OPEN) & again)
    return (
        tried.groupBy("channel")
        .agg(
            F.count("*").alias("retried"),
            F.count(F.when(through, 1)).alias("succeeded"),
            ms(F.percentile(F.when(through, took), 0.5)).alias("success_p50"),
            ms(F.percentile(F.when(through, took / extra), 0.9)).alias("backoff"),
            F.ceil(F.percentile(F.when(through, F.col("attempts")), 0.99)).alias("max_attempts"),
        )
        .withColumn("share", share(F.col("succeeded"), F.col("retried")))
        .orderBy(F.desc("retried"), "channel")
    )
