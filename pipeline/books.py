"""A node's own books, against what its events add up to."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Kind
from pipeline.lives import is_kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_KINDS = {
    "acked": (Kind.ACKED, Kind.WRITTEN),
    "dead": (Kind.DEAD,),
    "expired": (Kind.EXPIRED,),
    "discarded": (Kind.DISCARDED,),
}


def unbalanced(events: "DataFrame") -> "DataFrame":
    """Where the last books of a run of a node differ from its events of that run.

    A run begins with the start of the process; one whose start was cut off cannot be compared.
    Events that a node counted as dropped may be missing.
    """
    own = events.withColumn("seed", F.regexp_replace("epoch", "-[^-]*$", ""))
    runs = _runs(own)
    sums = _sums(own, runs)
    # A map has a value for each of the books.
    names = F.map_from_arrays(
        F.array(*(F.lit(name) for name in ("accepted", *_KINDS))),
        F.array(*(F.col(f"sum_{name}") for name in ("accepted", *_KINDS))),
    )
    books = _last_books(own, runs)
    compared = books.join(sums, on=["node", "seed", "begin"], how="inner").withColumn(
        "told", F.try_element_at(names, F.col("what"))
    )
    differs = F.abs(F.col("told") - F.col("number")) > F.col("dropped")
    return compared.where(differs).select(
        F.concat(F.lit("books_"), "what").alias("kind"),
        "node",
        F.lit(None).cast("bigint").alias("msg"),
        F.lit(None).cast("string").alias("receiver"),
        (F.col("told") - F.col("number")).alias("number"),
        F.format_string("the events are %d, the node counted %d", "told", "number").alias("what"),
    )


def _runs(events: "DataFrame") -> "DataFrame":
    """Each run of a node: the frames of its start and of its last books."""
    is_start = is_kind(Kind.NODE) & (F.col("what") == "start")
    starts = events.where(is_start).select("node", "seed", F.col("seq").alias("begin"))
    books = events.where(is_kind(Kind.BOOKS)).select("node", "seed", F.col("seq").alias("end"))
    of_run = (
        books.distinct()
        .join(starts, on=["node", "seed"], how="inner")
        .where("begin <= end")
        .groupBy("node", "seed", "end")
        .agg(F.max("begin").alias("begin"))
    )
    return of_run.groupBy("node", "seed", "begin").agg(F.max("end").alias("end"))


def _last_books(events: "DataFrame", runs: "DataFrame") -> "DataFrame":
    books = events.where(is_kind(Kind.BOOKS)).withColumn("end", F.col("seq"))
    return (
        books.join(F.broadcast(runs), on=["node", "seed", "end"], how="inner")
        .groupBy("node", "seed", "begin", "what")
        .agg(F.max_by("number", "pos").alias("number"))
    )


def _sums(events: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """What the events of each run are, up to its last books."""
    is_inside = (F.col("seq") >= F.col("begin")) & (F.col("seq") < F.col("end"))
    inside = events.join(F.broadcast(runs), on=["node", "seed"], how="inner").where(is_inside)
    accepted = F.coalesce(F.sum("copies"), F.lit(0)) + _count(Kind.REPLAYED)
    dropped = F.sum(F.when(is_kind(Kind.DROPPED), F.col("number")))
    return inside.groupBy("node", "seed", "begin").agg(
        accepted.alias("sum_accepted"),
        *(_count(*kinds).alias(f"sum_{name}") for name, kinds in _KINDS.items()),
        F.coalesce(dropped, F.lit(0)).alias("dropped"),
    )


def _count(*kinds: str) -> "Column":
    return F.count(F.when(is_kind(*kinds), 1))
