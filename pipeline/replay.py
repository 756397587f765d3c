"""Which dead letters are to be delivered once more: a plan, for the server to carry out.

The server finds letters by what they have in common, as long as it has them at hand; here they are
found over any span, and by what became of others: what most of its receivers died of is left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Kind
from pipeline.copies import MESSAGE
from pipeline.lake import OPEN
from pipeline.reports.dead import poison
from pipeline.reports.tables import Tables
from pipeline.summaries import published_ts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PLAN = (
    "letter bigint, origin string, msg bigint, receiver string, channel string, code string, "
    "fingerprint string, generation int, published timestamp, died timestamp"
)
_NAMES = [column.split()[0] for column in PLAN.split(", ")]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which letters; all conditions hold together. Times in ms since 1970."""

    channel: str | None = None
    receiver: str | None = None
    subject: str | None = None
    code: str | None = None
    fingerprint: str | None = None
    since: int | None = None
    until: int | None = None
    without_poison: bool = False
    # Who is to get all of them; None: each letter's own receiver.
    to: str | None = None


def plan(tables: Tables, wanted: Wanted) -> "DataFrame":
    """The letters that are wanted and were not replayed yet, to whomever, in the order of
    publication: PLAN. Who is to get all of them gets no message that it has, or died of, for
    another letter.
    """
    dead = tables.life.where((F.col("state") == Kind.DEAD) & F.col("letter").isNotNull())
    meant = dead.where(_is_meant(wanted))
    replayed = tables.life.select(F.explode("replay_of").alias("letter"))
    fresh = meant.join(replayed, on="letter", how="left_anti")
    if wanted.to is not None:
        fresh = _without_repeats(fresh, tables.life, wanted.to)
    if wanted.without_poison:
        poisonous = poison(tables).select(*MESSAGE)
        fresh = fresh.join(poisonous, on=[*MESSAGE], how="left_anti")
    told = fresh.withColumns({"published": published_ts(), "died": F.col("ended_ts")})
    return told.select(*_NAMES).orderBy("msg", "letter")


def _without_repeats(letters: "DataFrame", life: "DataFrame", to: str) -> "DataFrame":
    """Those of messages that no replay has brought to this receiver; and what died of one."""
    is_replay = (F.col("receiver") == to) & (F.size("replay_of") > 0)
    has_died = F.col("state") == Kind.DEAD
    # Others were expired or discarded, or lost with a process: they are to be had still.
    had = life.where(is_replay & (has_died | F.col("state").isin(OPEN, Kind.ACKED, Kind.WRITTEN)))
    only_died = had.groupBy(*MESSAGE).agg(F.bool_and(has_died).alias("only_died"))
    told = letters.join(only_died, on=[*MESSAGE], how="left")
    return told.where(F.col("only_died").isNull() | (F.col("only_died") & is_replay))


def _is_meant(wanted: Wanted) -> "Column":
    """Whether a letter is wanted; nothing said means all."""
    subject = F.regexp_replace("receiver", "/-?[0-9]+$", "")
    pairs = (
        (F.col("channel"), wanted.channel),
        (F.col("receiver"), wanted.receiver),
        (subject, wanted.subject),
        (F.col("code"), wanted.code),
        (F.col("fingerprint"), wanted.fingerprint),
    )
    is_meant = F.lit(True)
    for found, given in pairs:
        if given is not None:
            is_meant = is_meant & (found == given)
    if wanted.since is not None:
        is_meant = is_meant & (F.col("ended_ts") >= _time(wanted.since))
    if wanted.until is not None:
        is_meant = is_meant & (F.col("ended_ts") < _time(wanted.until))
    return is_meant


def _time(ms: int) -> "Column":
    return F.timestamp_millis(F.lit(ms))


def summary(plan: "DataFrame") -> "DataFrame":
    """What a plan is about, the largest part first."""
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
    """The ids of its letters in their order, as the server has them, at most so many at once.

    Letters of one message stay together if they can: to one receiver it goes for one of them.
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
