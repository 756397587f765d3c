"""Why messages died, and which messages no receiver can process."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.journal.schema import Kind
from holdfast.pipeline.copies import MESSAGE
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.reports.tables import Tables, share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A poison message has at least this many deaths, and at least this share of all copies.
_POISON_DEAD = 3
_POISON_SHARE = 0.8


def dead(tables: Tables) -> "DataFrame":
    """Group similar deaths, the most frequent first."""
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
    """Return the messages that became dead letters for most of their receivers."""
    is_dead = F.col("state") == Kind.DEAD
    # Few messages die often; only their receivers are all examined.
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
