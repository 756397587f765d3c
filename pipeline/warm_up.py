"""A little of everything that the pipeline does, so that its classes are in the archive."""

import sys
import tempfile
from typing import TYPE_CHECKING, Any

from pipeline.session import Engine, open_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def main() -> None:
    """Work, and wait until Java has ended and written its archive."""
    spark = open_session(Engine(master="local[2]"))
    # Nothing else knows the process.
    gateway: Any = spark.sparkContext._gateway
    with tempfile.TemporaryDirectory(prefix="holdfast-spark-") as place:
        _work(spark, place)
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    sys.exit(gateway.proc.wait())


def _work(spark: "SparkSession", place: str) -> None:
    from pyspark.sql import functions as F

    numbers = spark.range(1000).withColumn("key", F.col("id") % 7)
    numbers.mapInArrow(_same, numbers.schema).write.partitionBy("key").parquet(f"{place}/numbers")
    read = spark.read.parquet(f"{place}/numbers")
    sums = read.groupBy("key").agg(
        F.count("*").alias("n"),
        F.expr("kll_sketch_agg_bigint(id)").alias("sketch"),
        F.expr("percentile_approx(id, array(0.5, 0.99))").alias("part"),
    )
    joined = read.join(sums, "key", how="left").orderBy("id").limit(10)
    joined.toPandas()
    stream = spark.readStream.schema(read.schema).parquet(f"{place}/numbers")
    query = (
        stream.writeStream.foreachBatch(_write_to(f"{place}/out"))
        .option("checkpointLocation", f"{place}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _same(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    return batches


def _write_to(place: str) -> "Callable[[DataFrame, int], None]":
    def write(batch: "DataFrame", number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{place}/batch={number}")

    return write


if __name__ == "__main__":
    main()
