"""What is known of messages, and how many of their copies are still on their way."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Kind
from pipeline import schemas
from pipeline.lives import ENDS, FEW, MESSAGE, is_kind, is_unnamed, together
from pipeline.runs import NEVER

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SUMS = schemas.names(schemas.MESSAGE)[len(MESSAGE) + 1 :]
_THEN = "_then"


def known(events: "DataFrame", carried: "DataFrame") -> "DataFrame":
    """The channel of each message, which acks do not tell, and how many copies the store has."""
    told = events.where(is_kind(Kind.PUBLISHED, Kind.REPLAYED)).select(*MESSAGE, "channel", "kept")
    both = told.unionByName(carried.select(*MESSAGE, "channel", "kept"))
    return (
        together(both)
        .groupBy(*MESSAGE)
        .agg(F.max("channel").alias("channel"), F.sum("kept").alias("kept"))
    )


def messages(
    events: "DataFrame", carried: "DataFrame", known: "DataFrame", *, some_over: bool = True
) -> "DataFrame":
    """Every message that something happened to, or that was unsettled: MESSAGE, and `gone`.

    These are the copies of it that went with a process which had ended by now; they count as lost.

    Args:
        events: With their runs, as `carried` is: see `pipeline.runs`.
        known: What is known of messages.
        some_over: Whether any of the runs is over.
    """
    both = _told(events).unionByName(carried.select(*MESSAGE, *_SUMS, "over_us"))
    sums = [F.sum(name).alias(name) for name in _SUMS]
    if some_over:
        # What a process had at its end is what was told until then.
        is_over = F.col("over_us") < NEVER
        sums += [F.sum(F.when(is_over, F.col(name))).alias(name + _THEN) for name in _SUMS]
    whole = (
        both.groupBy(*MESSAGE)
        .agg(*sums)
        .join(known.drop("kept").hint(FEW), on=[*MESSAGE], how="left")
    )
    whole = whole.withColumn("gone", _gone() if some_over else F.lit(0))
    return whole.withColumn("lost", F.col("lost") + F.col("gone")).select(
        *schemas.names(schemas.MESSAGE), "gone"
    )


def _told(events: "DataFrame") -> "DataFrame":
    """What each event adds to the sums of its message."""
    zero, replayed, ended = F.lit(0), is_kind(Kind.REPLAYED), is_kind(*ENDS)
    return events.where(F.col("msg").isNotNull()).select(
        *MESSAGE,
        _number(is_kind(Kind.PUBLISHED)).alias("published"),
        F.coalesce("copies", zero).cast("bigint").alias("copies"),
        F.coalesce("kept", zero).cast("bigint").alias("kept"),
        _number(replayed).alias("replayed"),
        _number(ended).alias("ended"),
        _number(replayed & is_unnamed()).alias("unnamed_replayed"),
        _number(ended & is_unnamed()).alias("unnamed_ended"),
        zero.cast("bigint").alias("lost"),
        "over_us",
    )


def _gone() -> "Column":
    """Of the copies that were on their way then, those that the store did not have."""
    then = {name: F.coalesce(F.col(name + _THEN), F.lit(0)) for name in _SUMS}
    unnamed = then["unnamed_replayed"] - then["unnamed_ended"]
    some = then["copies"] - then["kept"] + unnamed
    on_their_way = then["copies"] + then["replayed"] - then["ended"]
    left = F.when(then["kept"] == 0, on_their_way).otherwise(some) - then["lost"]
    return F.greatest(left, F.lit(0))


def is_unsettled() -> "Column":
    """Copies of it are still on their way."""
    return F.col("copies") + F.col("replayed") > F.col("ended") + F.col("lost")


def _number(condition: "Column") -> "Column":
    return F.coalesce(condition.cast("bigint"), F.lit(0))
