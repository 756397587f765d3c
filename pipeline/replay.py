"""Plans replays of dead letters, which the server then carries out.

The server finds letters by common properties while it has them. Here they are found over any time
span, and by the fate of others: a message that killed most of its receivers can be left out.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from itertools import groupby
from operator import and_, attrgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from holdfast.journal.schema import Kind
from holdfast.pipeline.copies import MESSAGE
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.reports.dead import poison
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.summaries import published_ts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PLAN = (
    "letter bigint, origin string, msg bigint, receiver string, channel string, code string, "
    "fingerprint string, generation int, published timestamp, died timestamp"
)
_NAMES = [column.split()[0] for column in PLAN.split(", ")]


def plan(
    tables: Tables,
    conditions: Mapping[str, Any],
    *,
    without_poison: bool = False,
    to: str | None = None,
) -> "DataFrame":
    """Return the matching letters that were not replayed yet, in the order of publication: PLAN.

    Args:
        conditions: Fields of the server's filter, each with its value: those of CONDITIONS.
        without_poison: Leave out messages that are dead letters of most of their receivers.
        to: The name of a session that gets all letters, but no message that it already has or
            that already became a dead letter for it.
    """
    dead = tables.life.where((F.col("state") == Kind.DEAD) & F.col("letter").isNotNull())
    meant = dead.where(_is_meant(conditions))
    replayed = tables.life.select(F.explode("replay_of").alias("letter"))
    fresh = meant.join(replayed, on="letter", how="left_anti")
    if to is not None:
        fresh = _without_repeats(fresh, tables.life, to)
    if without_poison:
        poisonous = poison(tables).select(*MESSAGE)
        fresh = fresh.join(poisonous, on=[*MESSAGE], how="left_anti")
    told = fresh.withColumns({"published": published_ts(), "died": F.col("ended_ts")})
    return told.select(*_NAMES).orderBy("msg", "letter")


def _without_repeats(letters: "DataFrame", life: "DataFrame", to: str) -> "DataFrame":
    """Leave out messages that a replay brought to this receiver, and repeats of a message."""
    is_replay = (F.col("receiver") == to) & (F.size("replay_of") > 0)
    has_died = F.col("state") == Kind.DEAD
    # Other copies were expired, discarded or lost: this receiver may still get the message.
    had = life.where(is_replay & (has_died | F.col("state").isin(OPEN, Kind.ACKED, Kind.WRITTEN)))
    only_died = had.groupBy(*MESSAGE).agg(F.bool_and(has_died).alias("only_died"))
    told = letters.join(only_died, on=[*MESSAGE], how="left")
    return told.where(F.col("only_died").isNull() | (F.col("only_died") & is_replay))


def _is_meant(conditions: Mapping[str, Any]) -> "Column":
    """Return whether a letter meets all conditions; without conditions every letter does."""
    found = (CONDITIONS[name](value) for name, value in conditions.items())
    return reduce(and_, found, F.lit(True))


# The check of each condition of the server's filter, for deaths in the tables.
CONDITIONS: Mapping[str, Callable[[Any], "Column"]] = {
    "channel": lambda name: F.col("channel") == name,
    "receiver": lambda key: F.col("receiver") == key,
    "subject": lambda name: F.regexp_replace("receiver", "/-?[0-9]+$", "") == name,
    "code": lambda code: F.col("code") == code,
    "fingerprint": lambda fingerprint: F.col("fingerprint") == fingerprint,
    "since": lambda ms: F.col("ended_ts") >= F.timestamp_millis(F.lit(ms)),
    "until": lambda ms: F.col("ended_ts") < F.timestamp_millis(F.lit(ms)),
}


def summary(plan: "DataFrame") -> "DataFrame":
    """Return a summary of a plan, the largest groups first."""
    return (
        plan.groupBy("channel", "code")
        .agg(
            F.count("*").alias("letters"),
            F.countDistinct("receiver").alias("receivers"),
            F.min("died").alias("first"),
            F.max("died").alias("last"),
        )
        .orderBy(F.desc("letters"), "channel", "code")
    )


def parts(plan: "DataFrame", most: int) -> Iterator[list[str]]:
    """Yield the ids of the letters in order, as the server has them, at most `most` at once.

    Letters of one message stay together if possible: one receiver gets the message only once.
    """
    rows = plan.select("msg", "letter").toLocalIterator()
    part: list[str] = []
    for _, of_message in groupby(rows, key=attrgetter("msg")):
        ids = [f"{row.letter:019d}" for row in of_message]
        if part and len(part) + len(ids) > most:
            yield part
            part = []
        part += ids
        while len(part) > most:
            yield part[:most]
            part = part[most:]
    if part:
        yield part
