"""How far back the journals reach: of what came before, only a part may be in the tables.

Journals are cut off before they are read for the first time, and days are removed from tables.
"""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_age(rows: "DataFrame", events: "DataFrame") -> "DataFrame":
    """Rows about messages, and of each whether it `is_old`: came before the journal of its node.

    Of a node without a journal nothing came before.
    """
    told = events.where(F.col("seq").isNotNull())
    begins = told.groupBy(F.col("node").alias("origin")).agg(F.min("ts").alias("begin"))
    is_old = F.floor(F.col("msg") / 1000) < F.unix_micros("begin")
    joined = rows.join(F.broadcast(begins), on="origin", how="left")
    return joined.withColumn("is_old", F.coalesce(is_old, F.lit(False))).drop("begin")
