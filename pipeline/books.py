"""Compares a node's own counters with the sums of its events."""

from functools import reduce
from itertools import chain
from operator import add
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.journal.schema import BOOKS, Kind
from holdfast.pipeline.copies import is_kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ENDS = [name for name in BOOKS if name != "accepted"]
_DROPPED, _RESTORED = "dropped", "restored"
_KINDS = {**BOOKS, _DROPPED: (Kind.DROPPED,)}
_COUNTED = (*chain.from_iterable(_KINDS.values()), Kind.BOOKS)


def unbalanced(events: "DataFrame") -> "DataFrame":
    """Return where the last counters of a run differ from the events of that run.

    A run begins with the start of the process; a run whose start was trimmed cannot be compared.
    Events that a node counted as dropped may be missing. All events that counters include are in
    earlier frames.
    """
    own = events.withColumn("seed", _seed())
    runs = _runs(own)
    sums = _sums(own, runs)
    books = _last_books(own, runs)
    compared = books.join(sums, on=["node", "seed", "begin"], how="left")
    compared = compared.withColumn("told", _told())
    number = F.col("number")
    differs = F.abs(F.col("told") - number) > F.coalesce(_DROPPED, F.lit(0))
    return compared.where(differs).select(
        F.concat(F.lit("books_"), "what").alias("kind"),
        "node",
        F.lit(None).cast("bigint").alias("msg"),
        F.lit(None).cast("string").alias("receiver"),
        (F.col("told") - number).alias("number"),
        F.format_string("the events are %d, the node counted %d", "told", "number").alias("what"),
    )


def _seed() -> "Column":
    """Return the seed of each event's epoch."""
    # A regular expression would cost as much as all other counting.
    number = F.length(F.substring_index("epoch", "-", -1))
    return F.left(F.col("epoch"), F.length("epoch") - number - 1)


def _runs(events: "DataFrame") -> "DataFrame":
    """Return each run of a node: the frames of its start and of its last counters."""
    is_start = is_kind(Kind.NODE) & (F.col("what") == "start")
    starts = events.where(is_start).select("node", "seed", F.col("seq").alias("begin"))
    books = events.where(is_kind(Kind.BOOKS)).select("node", "seed", F.col("seq").alias("end"))
    return (
        books.distinct()
        .join(starts, on=["node", "seed"], how="inner")
        .where("begin <= end")
        .groupBy("node", "seed", "end")
        .agg(F.max("begin").alias("begin"))
        .groupBy("node", "seed", "begin")
        .agg(F.max("end").alias("end"))
    )


def _last_books(events: "DataFrame", runs: "DataFrame") -> "DataFrame":
    books = events.where(is_kind(Kind.BOOKS)).withColumn("end", F.col("seq"))
    return (
        books.join(F.broadcast(runs), on=["node", "seed", "end"], how="inner")
        .groupBy("node", "seed", "begin", "what")
        .agg(F.max_by("number", "pos").alias("number"))
    )


def _sums(events: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """Sum the events of each run in frames before its last counters."""
    told = events.where(is_kind(*_COUNTED)).withColumns({"entry": _entry(), "amount": _amount()})
    # Dropped events may be reported later.
    is_counted = (F.col("seq") < F.col("end")) | is_kind(Kind.DROPPED)
    return (
        told.join(F.broadcast(runs), on=["node", "seed"], how="inner")
        .where((F.col("seq") >= F.col("begin")) & is_counted)
        .groupBy("node", "seed", "begin")
        .pivot("entry", [*_KINDS, _RESTORED])
        .agg(F.sum("amount"))
    )


def _entry() -> "Column":
    """Return the counter that an event belongs to, if any."""
    names = (F.when(is_kind(*kinds), name) for name, kinds in _KINDS.items())
    # Entries that the node found in the store at its start.
    is_restored = is_kind(Kind.BOOKS) & (F.col("what") == _RESTORED)
    return F.coalesce(*names, F.when(is_restored, _RESTORED))


def _amount() -> "Column":
    """Return the number of copies that an event is about, or of events that it stands for."""
    told = F.when(is_kind(Kind.PUBLISHED), F.coalesce("copies", F.lit(0)))
    return told.when(is_kind(Kind.BOOKS, Kind.DROPPED), F.col("number")).otherwise(1)


def _told() -> "Column":
    """Return the sum that belongs to a row of the counters."""
    sums = {name: F.coalesce(name, F.lit(0)) for name in BOOKS}
    # Without events about the store, nothing can be compared.
    sums["open"] = F.col(_RESTORED) + sums["accepted"] - reduce(add, (sums[name] for name in _ENDS))
    return F.coalesce(*(F.when(F.col("what") == name, sum) for name, sum in sums.items()))
