"""What became of copies and messages, from events and from what was open before."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from app.journal.schema import SETTLED, Kind
from pipeline import schemas

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COPY = ("origin", "msg", "receiver")
MESSAGE = ("origin", "msg")
ENDS = sorted(SETTLED)
OPEN = "open"
# Room for the place of an end among all ends.
_KINDS = 8
_HANDED = (Kind.HANDED, Kind.REDELIVERED, Kind.WRITTEN)
# What happens in the same microsecond happened in this order.
_RANK = {
    kind: rank
    for rank, kind in enumerate(
        (Kind.PUBLISHED, Kind.REPLAYED, Kind.HANDED, Kind.REDELIVERED, Kind.REFUSED, Kind.RETURNED)
    )
}


def is_kind(*kinds: str) -> "Column":
    """Whether an event is one of these."""
    return F.col("kind").isin(*kinds)


def in_order() -> list["Column"]:
    """The order of events of one copy."""
    rank = F.coalesce(*(F.when(is_kind(kind), rank) for kind, rank in _RANK.items()), F.lit(99))
    return [F.col("ts"), rank, F.col("seq"), F.col("pos")]


def lives(events: "DataFrame", carried: "DataFrame", channels: "DataFrame") -> "DataFrame":
    """The life of every copy that something happened to, or that was open: LIFE and its state.

    Numbers are put together in one pass, for which Spark need not sort; words, of which there are
    few, are added.
    """
    happened = events.where(F.col("msg").isNotNull() & F.col("receiver").isNotNull())
    numbers = _numbers_of(_with_generation(happened, carried))
    explained = happened.where(_is_explained() | is_kind(Kind.REPLAYED))
    numbers = numbers.unionByName(_numbers_of_open(carried))
    life = numbers.groupBy(*COPY, "generation").agg(
        F.min("handed_us").alias("handed_us"),
        F.max("end").alias("end"),
        F.max("attempts").alias("attempts"),
        F.sum("redelivered").alias("redelivered"),
        F.sum("refused").alias("refused"),
    )
    place = F.col("end") % _KINDS
    told = life.withColumns(
        {
            "handed_ts": F.timestamp_micros("handed_us"),
            "ended_ts": F.timestamp_micros(F.floor(F.col("end") / _KINDS).cast("bigint")),
            "state": F.coalesce(F.get(_texts(ENDS), place.cast("int")), F.lit(OPEN)),
        }
    )
    words = _words(_with_generation(explained, carried), carried)
    whole = told.join(words, on=[*COPY, "generation"], how="left").join(
        channels, on=[*MESSAGE], how="left"
    )
    return whole.select(*_names(schemas.LIFE), "state")


def _with_generation(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """Each event with its life: of the replay before it, else the open one, else the first.

    Few copies are replayed, so only those are put in order.
    """
    replayed = events.where(is_kind(Kind.REPLAYED)).select(*COPY).distinct()
    others = events.join(replayed, on=[*COPY], how="left_anti")
    told = F.when(is_kind(Kind.REPLAYED), F.col("generation"))
    order = Window.partitionBy(*COPY).orderBy(*in_order())
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    again = events.join(replayed, on=[*COPY], how="left_semi").withColumn(
        "generation", F.last(told, ignorenulls=True).over(so_far)
    )
    nothing = F.lit(None).cast("int")
    both = others.withColumn("generation", nothing).unionByName(again)
    before = carried.select(*COPY, F.col("generation").alias("open_generation"))
    known = both.join(before, on=[*COPY], how="left")
    generation = F.coalesce("generation", "open_generation", F.lit(0))
    return known.withColumn("generation", generation).drop("open_generation")


def _numbers_of(events: "DataFrame") -> "DataFrame":
    us = F.unix_micros("ts")
    # The latest end, and which it was, in one number.
    places = (F.when(is_kind(kind), us * _KINDS + place) for place, kind in enumerate(ENDS))
    return events.select(
        *COPY,
        "generation",
        F.when(is_kind(*_HANDED), us).alias("handed_us"),
        F.coalesce(*places).alias("end"),
        F.col("attempt").alias("attempts"),
        is_kind(Kind.REDELIVERED).cast("bigint").alias("redelivered"),
        is_kind(Kind.REFUSED).cast("bigint").alias("refused"),
    )


def _numbers_of_open(carried: "DataFrame") -> "DataFrame":
    return carried.select(
        *COPY,
        "generation",
        F.unix_micros("handed_ts").alias("handed_us"),
        F.lit(None).cast("bigint").alias("end"),
        "attempts",
        "redelivered",
        "refused",
    )


def _words(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """The latest code of each life that has one, and what else is told of failures."""
    why = ("code", "letter", "fingerprint")
    before = carried.withColumn("ts", F.col("handed_ts"))
    columns = (*COPY, "generation", "ts", *why)
    told = events.select(*columns).unionByName(before.select(*columns)).where(_is_explained())
    coded = F.when(F.col("code").isNotNull(), F.struct("ts", "code"))
    return told.groupBy(*COPY, "generation").agg(
        F.max(coded).getField("code").alias("code"),
        F.max("letter").alias("letter"),
        F.max("fingerprint").alias("fingerprint"),
    )


def _is_explained() -> "Column":
    return F.coalesce("code", "fingerprint").isNotNull() | F.col("letter").isNotNull()


def channels(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """The channel of each message that is known: acks do not tell it."""
    told = events.where(is_kind(Kind.PUBLISHED)).select(*MESSAGE, "channel")
    both = told.unionByName(carried.select(*MESSAGE, "channel"))
    return both.groupBy(*MESSAGE).agg(F.max("channel").alias("channel"))


def messages(events: "DataFrame", carried: "DataFrame", channels: "DataFrame") -> "DataFrame":
    """Every message that something happened to, or that was unsettled: MESSAGE."""
    published, zero = is_kind(Kind.PUBLISHED), F.lit(0)
    told = events.where(F.col("msg").isNotNull()).select(
        *MESSAGE,
        published.cast("bigint").alias("published"),
        F.coalesce("copies", zero).cast("bigint").alias("copies"),
        F.coalesce("kept", zero).cast("bigint").alias("kept"),
        is_kind(Kind.REPLAYED).cast("bigint").alias("replayed"),
        is_kind(*ENDS).cast("bigint").alias("ended"),
    )
    numbers = ("published", "copies", "kept", "replayed", "ended")
    whole = (
        told.unionByName(carried.drop("channel"))
        .groupBy(*MESSAGE)
        .agg(*(F.sum(name).alias(name) for name in numbers))
        .join(channels, on=[*MESSAGE], how="left")
    )
    return whole.select(*_names(schemas.MESSAGE))


def unsettled(messages: "DataFrame") -> "DataFrame":
    """Those of which copies are still on their way."""
    return messages.where(F.col("copies") + F.col("replayed") > F.col("ended"))


def _texts(words: Sequence[str]) -> "Column":
    return F.array(*(F.lit(word) for word in words))


def _names(schema: str) -> list[str]:
    return [column.split()[0] for column in schema.split(", ")]
