"""What reports are made of, from wherever it comes."""

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from pipeline.lake import OPEN

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from pipeline.lake import Lake


class Tables(NamedTuple):
    """The tables of a lake that reports read."""

    events: "DataFrame"
    # Closed lives and open ones.
    life: "DataFrame"
    latency: "DataFrame"
    dead: "DataFrame"
    # Copies that went with the process that had them.
    lost: "DataFrame"


def tables_of(lake: "Lake", spark: "SparkSession") -> Tables:
    """The tables as they are now."""
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
    """A part of a whole, from 0 to 1; of nothing it is nothing."""
    return F.round(F.try_divide(part, whole), 4)


def ms(us: "Column") -> "Column":
    """Microseconds as milliseconds."""
    return F.round(us / 1000, 3)
