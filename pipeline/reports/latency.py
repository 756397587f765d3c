"""Latencies of messages to their receivers, and of receivers to their acks."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.pipeline.reports.tables import Tables, ms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PARTS = "array(0.5D, 0.95D, 0.99D, 1D)"
_NAMES = ("p50", "p95", "p99", "max")


def latency(tables: Tables) -> "DataFrame":
    """By channel, the busiest first; times in ms, from sketches with about one percent of error."""
    return _merged(tables, "channel").orderBy(F.desc("n"), "channel")


def by_hour(tables: Tables) -> "DataFrame":
    """By hour of publish, the newest first, and channel."""
    return _merged(tables, "hour", "channel").orderBy(F.desc("hour"), F.desc("n"), "channel")


def _merged(tables: Tables, *by: str) -> "DataFrame":
    merged = tables.latency.groupBy(*by).agg(
        F.sum("n").alias("n"),
        F.sum("acked").alias("acked"),
        F.expr(f"kll_sketch_get_quantile_bigint(kll_merge_agg_bigint(delivery), {_PARTS})").alias(
            "delivery"
        ),
        F.expr(
            "case when sum(acked) > 0 then "
            f"kll_sketch_get_quantile_bigint(kll_merge_agg_bigint(answer), {_PARTS}) end"
        ).alias("answer"),
    )
    return merged.select(*by, "n", *_parts("delivery"), "acked", *_parts("answer"))


def _parts(name: str) -> list["Column"]:
    return [
        ms(F.get(name, F.lit(place))).alias(f"{name}_{part}") for place, part in enumerate(_NAMES)
    ]
