"""A node's own books, against what its events add up to."""

from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Kind
from pipeline.lives import is_kind
from pipeline.runs import seed

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
    own = events.withColumn("seed", seed())
    runs = _runs(own)
    sums = _sums(own, runs)
    books = _last_books(own, runs)
    compared = books.join(sums, on=["node", "seed", "begin"], how="inner").withColumns(
        {"told": _named("before"), "timely": _named("timely")}
    )
    number = F.col("number")
    differs = F.least(F.abs(F.col("told") - number), F.abs(F.col("timely") - number))
    return compared.where(differs > F.col("dropped")).select(
        F.concat(F.lit("books_"), "what").alias("kind"),
        "node",
        F.lit(None).cast("bigint").alias("msg"),
        F.lit(None).cast("string").alias("receiver"),
        (F.col("told") - number).alias("number"),
        F.format_string("the events are %d, the node counted %d", "told", "number").alias("what"),
    )


def _named(which: str) -> "Column":
    """The sum that belongs to what a row of the books is about."""
    names = ("accepted", *_KINDS, "open")
    sums = F.map_from_arrays(
        F.array(*(F.lit(name) for name in names)),
        F.array(*(F.col(f"{which}_{name}") for name in names)),
    )
    return F.try_element_at(sums, F.col("what"))


def _runs(events: "DataFrame") -> "DataFrame":
    """Each run of a node: the frames of its start and of its last books."""
    is_start = is_kind(Kind.NODE) & (F.col("what") == "start")
    starts = events.where(is_start).select(
        "node",
        "seed",
        F.col("seq").alias("begin"),
        F.col("ts").alias("begin_ts"),
        F.col("epoch").alias("first_epoch"),
    )
    books = events.where(is_kind(Kind.BOOKS))
    of_run = (
        books.groupBy("node", "seed", F.col("seq").alias("end"))
        .agg(F.max("ts").alias("taken_ts"), F.max("epoch").alias("last_epoch"))
        .join(starts, on=["node", "seed"], how="inner")
        .where("begin <= end")
        .groupBy("node", "seed", "end", "taken_ts", "last_epoch")
        .agg(*_latest("begin", "begin", "begin_ts", "first_epoch"))
    )
    return of_run.groupBy("node", "seed", "begin", "begin_ts", "first_epoch").agg(
        *_latest("end", "end", "taken_ts", "last_epoch")
    )


def _latest(by: str, *names: str) -> list["Column"]:
    return [F.max_by(name, by).alias(name) for name in names]


def _last_books(events: "DataFrame", runs: "DataFrame") -> "DataFrame":
    books = events.where(is_kind(Kind.BOOKS)).withColumn("end", F.col("seq"))
    return (
        books.join(F.broadcast(runs), on=["node", "seed", "end"], how="inner")
        .groupBy("node", "seed", "begin", "what")
        .agg(F.max_by("number", "pos").alias("number"))
    )


def _sums(events: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """What the events of each run are: those in frames before its last books, and those earlier.

    Frames may overtake each other, and clocks may jump; not both at once.
    """
    seq, is_earlier = F.col("seq"), F.col("ts") <= F.col("taken_ts")
    before = (seq < F.col("end")) | ((seq == F.col("end")) & is_earlier)
    timely = is_earlier & ((seq <= F.col("end")) | (F.col("epoch") == F.col("last_epoch")))
    # What was kept in the moment of the start may be in a frame before it.
    after = (seq >= F.col("begin")) | (
        (F.col("ts") >= F.col("begin_ts")) & (F.col("epoch") == F.col("first_epoch"))
    )
    of_runs = events.join(F.broadcast(runs), on=["node", "seed"], how="inner")
    dropped = F.sum(F.when(is_kind(Kind.DROPPED), F.col("number")))
    return (
        of_runs.where(after)
        .groupBy("node", "seed", "begin")
        .agg(
            *_sums_of("before", before),
            *_sums_of("timely", timely),
            F.coalesce(dropped, F.lit(0)).alias("dropped"),
        )
    )


def _sums_of(name: str, counts: "Column") -> list["Column"]:
    copies = F.coalesce(F.sum(F.when(counts, F.col("copies"))), F.lit(0))
    accepted = copies + _count(counts, Kind.REPLAYED)
    ends = {each: _count(counts, *kinds) for each, kinds in _KINDS.items()}
    # What the node found in the store when it began; if that is not there, nothing can be said.
    is_restored = counts & is_kind(Kind.BOOKS) & (F.col("what") == "restored")
    restored = F.sum(F.when(is_restored, F.col("number")))
    still_open = restored + accepted - reduce(add, ends.values())
    return [
        accepted.alias(f"{name}_accepted"),
        *(count.alias(f"{name}_{each}") for each, count in ends.items()),
        still_open.alias(f"{name}_open"),
    ]


def _count(counts: "Column", *kinds: str) -> "Column":
    return F.count(F.when(counts & is_kind(*kinds), 1))
