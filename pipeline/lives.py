"""What became of copies, from events and from what was open before."""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from app.journal.schema import SETTLED, Kind
from pipeline import schemas
from pipeline.lake import OPEN
from pipeline.runs import NEVER, seed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What tells most comes first: by it rows are put in order.
MESSAGE = ("msg", "origin")
COPY = (*MESSAGE, "receiver")
ENDS = sorted(SETTLED)
# Each part of these fits into memory: who joins them need sort nothing.
FEW = "shuffle_hash"
# It was in a process alone, and that has ended.
LOST = "lost_with_process"
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
_WHY = ("code", "letter", "fingerprint", "replay_of")


def is_kind(*kinds: str) -> "Column":
    """Whether an event is one of these."""
    return F.col("kind").isin(*kinds)


def together(rows: "DataFrame") -> "DataFrame":
    """All that is about a message in one place: whatever is asked of it, it need not move again."""
    return rows.repartition(*MESSAGE)


def rank() -> "Column":
    """The place of an event among those of the same microsecond."""
    return F.coalesce(*(F.when(is_kind(kind), rank) for kind, rank in _RANK.items()), F.lit(99))


def lives(
    events: "DataFrame", carried: "DataFrame", known: "DataFrame", *, some_replayed: bool = True
) -> "DataFrame":
    """The life of every copy that something happened to, or that was open: LIFE and its state.

    Few copies are replayed, so only the events of those are put in order.

    Args:
        events: With their runs, as `carried` is: see `pipeline.runs`.
        known: What is known of messages.
        some_replayed: Whether any of the events is a replay.
    """
    happened = events.where(F.col("msg").isNotNull() & F.col("receiver").isNotNull())
    life = _once(_told(happened).unionByName(_told_of_open(carried)))
    if some_replayed:
        replayed = F.broadcast(happened.where(is_kind(Kind.REPLAYED)).select(*COPY).distinct())
        few, open_few = (
            rows.join(replayed, on=[*COPY], how="left_semi") for rows in (happened, carried)
        )
        often = _in_turn(together(_told(few).unionByName(_told_of_open(open_few))))
        life = life.unionByName(_lives_of(often))
    whole = life.join(known.hint(FEW), on=[*MESSAGE], how="left")
    end, over = F.col("end"), F.col("over_us")
    is_lost = end.isNull() & (over < NEVER) & _is_passing()
    ended_us = F.when(is_lost, over).otherwise(F.floor(end / _KINDS).cast("bigint"))
    told = whole.withColumns(
        {
            "handed_ts": F.timestamp_micros("handed_us"),
            "ended_ts": F.timestamp_micros(ended_us),
            "state": F.coalesce(
                F.get(_texts(ENDS), (end % _KINDS).cast("int")), F.when(is_lost, LOST), F.lit(OPEN)
            ),
        }
    )
    return told.select(*schemas.names(schemas.LIFE), "state")


def _is_passing() -> "Column":
    """Whether the store does not have it; of a message that was cut off nobody knows."""
    return is_unnamed() | F.coalesce(F.col("kept") == 0, F.lit(False))


def is_unnamed() -> "Column":
    """The server gives numbers below zero to those who have no name of their own."""
    # Found at a glance in those that may be, and looked at closely in these alone.
    return F.contains("receiver", F.lit("/-")) & F.substring_index("receiver", "/", -1).startswith(
        "-"
    )


def _told(events: "DataFrame") -> "DataFrame":
    """What each event adds to the life that it is part of."""
    us, is_replay = F.unix_micros("ts"), is_kind(Kind.REPLAYED)
    # The latest end, and which it was, in one number.
    places = (F.when(is_kind(kind), us * _KINDS + place) for place, kind in enumerate(ENDS))
    return events.select(
        *COPY,
        F.when(is_replay, F.col("generation")).alias("generation"),
        is_replay.cast("bigint").alias("replayed"),
        F.when(is_kind(*_HANDED), us).alias("handed_us"),
        F.coalesce(*places).alias("end"),
        F.col("attempt").alias("attempts"),
        is_kind(Kind.REDELIVERED).cast("bigint").alias("redelivered"),
        is_kind(Kind.REFUSED).cast("bigint").alias("refused"),
        "over_us",
        us.alias("us"),
        rank().alias("rank"),
        F.concat("node", F.lit("/"), seed()).alias("journal"),
        "seq",
        "pos",
        "code",
        F.when(~is_replay, F.col("letter")).alias("letter"),
        "fingerprint",
        F.when(is_replay, F.array("letter")).alias("replay_of"),
    )


def _told_of_open(carried: "DataFrame") -> "DataFrame":
    """What is known of a life from earlier batches; it comes before everything else."""
    nothing = F.lit(0).cast("bigint")
    return carried.select(
        *COPY,
        "generation",
        nothing.alias("replayed"),
        F.unix_micros("handed_ts").alias("handed_us"),
        F.lit(None).cast("bigint").alias("end"),
        "attempts",
        "redelivered",
        "refused",
        "over_us",
        nothing.alias("us"),
        F.lit(0).alias("rank"),
        F.lit(None).cast("string").alias("journal"),
        nothing.alias("seq"),
        F.lit(0).alias("pos"),
        *_WHY,
    )


def _once(told: "DataFrame") -> "DataFrame":
    """The lives of copies that were not replayed, one of each.

    Numbers are put together in one pass, for which Spark need not sort; words, of which there are
    few, are added.
    """
    numbers = (
        together(told)
        .groupBy(*COPY)
        .agg(*_numbers(), F.max("generation").alias("told"), F.sum("replayed").alias("replayed"))
        .where("replayed = 0")
        .withColumn("generation", F.coalesce("told", F.lit(0)))
        .drop("told", "replayed")
    )
    words = together(told.where(_is_explained())).groupBy(*COPY).agg(*_words())
    return numbers.join(words.hint(FEW), on=[*COPY], how="left")


def _in_turn(told: "DataFrame") -> "DataFrame":
    """Each with its generation: of the replay before it, else the open one, else the first."""
    copy = Window.partitionBy(*COPY)
    # One journal tells in the order in which things happened, even if its clock was put back.
    is_one = F.min("journal").over(copy) == F.max("journal").over(copy)
    frame = F.when(is_one, F.col("seq")).otherwise(0)
    order = copy.orderBy(frame, "us", "rank", "seq", "pos")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    latest = F.last("generation", ignorenulls=True).over(so_far)
    return told.withColumn("generation", F.coalesce(latest, F.lit(0)))


def _lives_of(told: "DataFrame") -> "DataFrame":
    return told.groupBy(*COPY, "generation").agg(*_numbers(), *_words())


def _numbers() -> list["Column"]:
    return [
        F.min("handed_us").alias("handed_us"),
        F.max("end").alias("end"),
        F.max("attempts").alias("attempts"),
        F.sum("redelivered").alias("redelivered"),
        F.sum("refused").alias("refused"),
        # Only if nothing was told of it since.
        F.max("over_us").alias("over_us"),
    ]


def _words() -> list["Column"]:
    """The latest code, and what else is told of failures."""
    coded = F.when(F.col("code").isNotNull(), F.struct("us", "code"))
    return [
        F.max(coded).getField("code").alias("code"),
        F.max("letter").alias("letter"),
        F.max("fingerprint").alias("fingerprint"),
        F.flatten(F.collect_set("replay_of")).alias("replay_of"),
    ]


def _is_explained() -> "Column":
    return reduce(or_, (F.col(name).isNotNull() for name in _WHY))


def _texts(words: Sequence[str]) -> "Column":
    return F.array(*(F.lit(word) for word in words))
