"""How many events of each kind there are of each run: what must be known before work begins."""

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from app.journal.schema import Kind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Group(NamedTuple):
    """Events of one kind that a node has told of under one epoch."""

    node: str
    epoch: str
    kind: str
    n: int
    # The sum of theirs: of incidents, how many frames.
    number: int
    # The earliest of them, and the earliest start of the node's process: microseconds since 1970.
    since_us: int
    start_us: int | None


def census(events: "DataFrame") -> list[Group]:
    """All groups; who has receipts need not ask."""
    us = F.unix_micros("ts")
    is_start = (F.col("kind") == Kind.NODE) & (F.col("what") == "start")
    told = events.groupBy("node", "epoch", "kind").agg(
        F.count("*"),
        F.coalesce(F.sum("number"), F.lit(0)),
        F.min(us),
        F.min(F.when(is_start, us)),
    )
    return [Group(*row) for row in told.collect()]
