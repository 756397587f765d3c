"""The tables that reports read, wherever they come from."""

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from holdfast.pipeline.lake import OPEN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from holdfast.pipeline.lake import Lake


class Tables(NamedTuple):
    """The tables of a lake that reports read."""

    events: "DataFrame"
    # Closed and open lives.
    life: "DataFrame"
    latency: "DataFrame"
    dead: "DataFrame"
    # Copies that were lost with their process.
    lost: "DataFrame"


def tables_of(lake: "Lake", spark: "SparkSession") -> Tables:
    """Return the present tables."""
    closed = lake.table(spark, "life").drop("batch")
    still_open = lake.table(spark, "open").withColumn("state", F.lit(OPEN))
    return Tables(
        events=lake.table(spark, "events"),
        life=closed.unionByName(still_open),
        latency=lake.table(spark, "latency"),
        dead=lake.table(spark, "dead"),
        lost=lake.table(spark, "lost"),
    )


def share(part: "Column", whole: "Column") -> "Column":
    """Return a part of a whole, from 0 to 1; null if the whole is zero."""
    return F.round(F.try_divide(part, whole), 4)


def ms(us: "Column") -> "Column":
    """Convert microseconds to milliseconds."""
    return F.round(us / 1000, 3)
