"""How far back the journals reach; of older messages, the tables may have only a part.

Journals may be trimmed before they are first read, and old days are removed from tables.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_age(rows: "DataFrame", events: "DataFrame") -> "DataFrame":
    """Add `is_old` to rows about messages: the message is older than the journal of its node.

    Without a journal of the node, no message is old.
    """
    told = events.where(F.col("seq").isNotNull())
    begins = told.groupBy(F.col("node").alias("origin")).agg(F.min("ts").alias("begin"))
    is_old = F.floor(F.col("msg") / 1000) < F.unix_micros("begin")
    joined = rows.join(F.broadcast(begins), on="origin", how="left")
    return joined.withColumn("is_old", F.coalesce(is_old, F.lit(False))).drop("begin")
