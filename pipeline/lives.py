"""What became of copies and messages, from events and from what was open before."""

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


def lives(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """The life of every copy that something happened to, or that was open: LIFE and its state."""
    happened = events.where(F.col("msg").isNotNull() & F.col("receiver").isNotNull())
    begun = _with_generation(happened)
    before = carried.select(*COPY, F.col("generation").alias("open_generation"))
    numbered = _partly(begun).join(before, on=[*COPY], how="left")
    told = numbered.withColumn(
        "generation", F.coalesce("generation", "open_generation", F.lit(0))
    ).drop("open_generation")
    return _joined(told.unionByName(_of_open(carried)))


def _with_generation(events: "DataFrame") -> "DataFrame":
    """Each event with the generation that a replay in this batch began; null: as it was before.

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
    return others.withColumn("generation", nothing).unionByName(again)


def _partly(events: "DataFrame") -> "DataFrame":
    """What the events alone tell of each life."""
    ts, code = F.col("ts"), F.col("code")
    ended = is_kind(*ENDS)
    return events.groupBy(*COPY, "generation").agg(
        F.max("channel").alias("channel"),
        F.min(F.when(is_kind(*_HANDED), ts)).alias("handed_ts"),
        F.max(F.when(ended, ts)).alias("ended_ts"),
        F.max("attempt").alias("attempts"),
        F.count(F.when(is_kind(Kind.REDELIVERED), 1)).alias("redelivered"),
        F.count(F.when(is_kind(Kind.REFUSED), 1)).alias("refused"),
        F.max(F.when(code.isNotNull(), F.struct(ts, code))).alias("why"),
        F.max("letter").alias("letter"),
        F.max("fingerprint").alias("fingerprint"),
        F.max(F.when(ended, F.struct(ts, F.col("kind")))).alias("end"),
    )


def _of_open(carried: "DataFrame") -> "DataFrame":
    """Open lives in the words of `_partly`."""
    why = F.struct(F.col("handed_ts").alias("ts"), F.col("code"))
    end = F.struct(F.col("ended_ts").alias("ts"), F.lit("").alias("kind"))
    return (
        carried.withColumn("why", F.when(F.col("code").isNotNull(), why))
        .withColumn("end", F.when(F.lit(False), end))
        .drop("code")
    )


def _joined(told: "DataFrame") -> "DataFrame":
    life = told.groupBy(*COPY, "generation").agg(
        F.max("channel").alias("channel"),
        F.min("handed_ts").alias("handed_ts"),
        F.max("ended_ts").alias("ended_ts"),
        F.max("attempts").alias("attempts"),
        F.sum("redelivered").alias("redelivered"),
        F.sum("refused").alias("refused"),
        F.max("why").getField("code").alias("code"),
        F.max("letter").alias("letter"),
        F.max("fingerprint").alias("fingerprint"),
        F.coalesce(F.max("end").getField("kind"), F.lit(OPEN)).alias("state"),
    )
    return life.select(*_names(schemas.LIFE), "state")


def messages(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """Every message that something happened to, or that was unsettled: MESSAGE."""
    known = events.where(F.col("msg").isNotNull())
    published = is_kind(Kind.PUBLISHED)
    told = known.groupBy(*MESSAGE).agg(
        F.max("channel").alias("channel"),
        F.count(F.when(published, 1)).alias("published"),
        _sum("copies").alias("copies"),
        _sum("kept").alias("kept"),
        F.count(F.when(is_kind(Kind.REPLAYED), 1)).alias("replayed"),
        F.count(F.when(is_kind(*ENDS), 1)).alias("ended"),
    )
    numbers = ("published", "copies", "kept", "replayed", "ended")
    whole = (
        told.unionByName(carried)
        .groupBy(*MESSAGE)
        .agg(F.max("channel").alias("channel"), *(_sum(name).alias(name) for name in numbers))
    )
    return whole.select(*_names(schemas.MESSAGE))


def unsettled(messages: "DataFrame") -> "DataFrame":
    """Those of which copies are still on their way."""
    return messages.where(F.col("copies") + F.col("replayed") > F.col("ended"))


def with_channels(life: "DataFrame", messages: "DataFrame") -> "DataFrame":
    """Lives with the channels that only the publishes told."""
    told = messages.select(*MESSAGE, F.col("channel").alias("told"))
    whole = life.join(told, on=[*MESSAGE], how="left").withColumn(
        "channel", F.coalesce("channel", "told")
    )
    return whole.select(*_names(schemas.LIFE), "state")


def _sum(name: str) -> "Column":
    return F.coalesce(F.sum(name), F.lit(0))


def _names(schema: str) -> list[str]:
    return [column.split()[0] for column in schema.split(", ")]
