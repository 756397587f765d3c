"""Compares a node's own counters with the sums of its events."""

from functools import reduce
from itertools import chain
from operator import add
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.journal.schema import Kind
from holdfast.pipeline.copies import is_kind

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ENDS = {
    "acked": (Kind.ACKED, Kind.WRITTEN),
    "dead": (Kind.DEAD,),
    "expired": (Kind.EXPIRED,),
    "discarded": (Kind.DISCARDED,),
    "moved": (Kind.MOVED,),
}
_DROPPED, _RESTORED = "dropped", "restored"
_KINDS = {"accepted": (Kind.PUBLISHED, Kind.REPLAYED), **_ENDS, _DROPPED: (Kind.DROPPED,)}
_COUNTED = (*chain.from_iterable(_KINDS.values()), Kind.BOOKS)


def unbalanced(events: "DataFrame") -> "DataFrame":
    """Return where the last counters of a run differ from the events of that run.

    A run begins with the start of the process; a run whose start was trimmed cannot be compared.
    Events that a node counted as dropped may be missing.
    """
    own = events.withColumn("seed", _seed())
    runs = _runs(own)
    sums = _sums(own, runs)
    books = _last_books(own, runs)
    compared = books.join(sums, on=["node", "seed", "begin"], how="left").withColumns(
        {"told": _told("before"), "timely": _told("timely")}
    )
    number = F.col("number")
    differs = F.least(F.abs(F.col("told") - number), F.abs(F.col("timely") - number))
    dropped = F.coalesce(f"{_DROPPED}_all", F.lit(0))
    return compared.where(differs > dropped).select(
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
    """Sum the events of each run in frames before its last counters.

    Frames may overtake each other and clocks may jump, but not both at once.
    """
    seq, is_earlier = F.col("seq"), F.col("ts") <= F.col("taken_ts")
    before = (seq < F.col("end")) | ((seq == F.col("end")) & is_earlier)
    timely = is_earlier & ((seq <= F.col("end")) | (F.col("epoch") == F.col("last_epoch")))
    # Messages stored at the moment of the start may be in an earlier frame.
    after = (seq >= F.col("begin")) | (
        (F.col("ts") >= F.col("begin_ts")) & (F.col("epoch") == F.col("first_epoch"))
    )
    told = events.where(is_kind(*_COUNTED)).withColumns({"entry": _entry(), "amount": _amount()})
    amount = F.col("amount")
    return (
        told.join(F.broadcast(runs), on=["node", "seed"], how="inner")
        .where(after)
        .groupBy("node", "seed", "begin")
        .pivot("entry", [*_KINDS, _RESTORED])
        .agg(
            F.sum(F.when(before, amount)).alias("before"),
            F.sum(F.when(timely, amount)).alias("timely"),
            F.sum(amount).alias("all"),
        )
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


def _told(which: str) -> "Column":
    """Return the sum that belongs to a row of the counters."""
    sums = {name: F.coalesce(f"{name}_{which}", F.lit(0)) for name in ("accepted", *_ENDS)}
    # Without events about the store, nothing can be compared.
    restored = F.col(f"{_RESTORED}_{which}")
    sums["open"] = restored + sums["accepted"] - reduce(add, (sums[name] for name in _ENDS))
    return F.coalesce(*(F.when(F.col("what") == name, sum) for name, sum in sums.items()))
