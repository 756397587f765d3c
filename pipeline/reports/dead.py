"""Why messages died, and which of them nobody can work with."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from app.journal.schema import Kind
from pipeline.copies import MESSAGE
from pipeline.lake import OPEN
from pipeline.reports.tables import Tables, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A message is poison if at least so many died of it, and at least this share of all.
_POISON_DEAD = 3
_POISON_SHARE = 0.8


def dead(tables: Tables) -> "DataFrame":
    """Deaths that are alike, the most frequent first."""
    return (
        tables.dead.groupBy("code", "channel", "fingerprint")
        .agg(
            F.sum("n").alias("dead"),
            F.hll_sketch_estimate(F.hll_union_agg("receivers")).alias("receivers"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
        )
        .orderBy(F.desc("dead"), "code", "channel")
    )


def poison(tables: Tables) -> "DataFrame":
    """Messages that most of their receivers died of."""
    is_dead = F.col("state") == Kind.DEAD
    # Few messages die often; only of those all receivers are looked at.
    suspects = (
        tables.life.where(is_dead)
        .groupBy(*MESSAGE)
        .agg(F.count("*").alias("deaths"))
        .where(F.col("deaths") >= _POISON_DEAD)
        .select(*MESSAGE)
    )
    ended = tables.life.where(F.col("state") != OPEN)
    return (
        ended.join(F.broadcast(suspects), on=[*MESSAGE], how="left_semi")
        .groupBy(*MESSAGE)
        .agg(
            F.max("channel").alias("channel"),
            F.countDistinct("receiver").alias("receivers"),
            F.countDistinct(F.when(is_dead, F.col("receiver"))).alias("dead"),
            F.max(F.when(is_dead, F.col("code"))).alias("code"),
        )
        .withColumn("share", share(F.col("dead"), F.col("receivers")))
        .where((F.col("dead") >= _POISON_DEAD) & (F.col("share") >= _POISON_SHARE))
        .orderBy(F.desc("dead"), F.desc("share"), *MESSAGE)
    )
