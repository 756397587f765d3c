"""Sums that can be added over batches: latency sketches and dead letters."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.journal.schema import Kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The size of sketches: larger ones are more exact. The default's p99 is sometimes off by a tenth.
_K = 800


def published_ts() -> "Column":
    """Return the time of receipt, which is in the message's id."""
    return F.timestamp_micros(F.floor(F.col("msg") / 1000).cast("bigint"))


def latency(life: "DataFrame") -> "DataFrame":
    """Latencies from publish to hand-over, and from there to the ack, by hour and channel: LATENCY.

    Lives that ended before are in earlier batches, open ones in later batches.
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
    """Deaths by hour, code, channel and fingerprint: DEAD."""
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
    """Return the time between two events, at least zero: clocks of two nodes may disagree."""
    return F.greatest(F.lit(0), F.unix_micros(end) - F.unix_micros(begin))
