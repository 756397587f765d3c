"""Sums that can be added up over batches: latency as sketches, and dead letters."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Of the sketches: larger ones are more exact. The default's p99 is off by a tenth now and then.
_K = 800


def published_ts() -> "Column":
    """When a message was received: its id says so."""
    return F.timestamp_micros(F.floor(F.col("msg") / 1000).cast("bigint"))


def latency(life: "DataFrame") -> "DataFrame":
    """From publish to the first hand-over, and from there to the ack, by hour and channel: LATENCY.

    Those that had come to their ends before are in earlier batches, those that are open in later
    ones.
    """
    delivery = _us_between(published_ts(), F.col("handed_ts"))
    answered = F.col("state") == Kind.ACKED
    answer = F.when(answered, _us_between(F.col("handed_ts"), F.col("ended_ts")))
    handed = life.where(F.col("handed_ts").isNotNull() & (F.col("generation") == 0))
    return (
        handed.withColumn("us", delivery)
        .withColumn("answer_us", answer)
        .groupBy(F.date_trunc("hour", published_ts()).alias("hour"), "channel")
        .agg(
            F.count("*").alias("n"),
            F.expr(f"kll_sketch_agg_bigint(us, {_K})").alias("delivery"),
            F.count("answer_us").alias("acked"),
            F.expr(f"kll_sketch_agg_bigint(answer_us, {_K})").alias("answer"),
        )
    )


def dead(life: "DataFrame") -> "DataFrame":
    """Deaths by hour, code, channel and what failed alike: DEAD."""
    hour = F.date_trunc("hour", "ended_ts").alias("hour")
    return (
        life.where(F.col("state") == Kind.DEAD)
        .groupBy(hour, "code", "channel", "fingerprint")
        .agg(
            F.count("*").alias("n"),
            F.min("ended_ts").alias("first"),
            F.max("ended_ts").alias("last"),
            F.hll_sketch_agg("receiver").alias("receivers"),
        )
    )


def _us_between(begin: "Column", end: "Column") -> "Column":
    """Clocks of two nodes may disagree, but nothing comes before it was sent."""
    return F.greatest(F.lit(0), F.unix_micros(end) - F.unix_micros(begin))
