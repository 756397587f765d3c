"""Runs work in tasks, on files and Arrow columns; Spark only gets the results."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Share = TypeVar("Share")


def in_tasks(
    spark: "SparkSession",
    work: Callable[[Share], Iterator[pa.Table]],
    shares: Sequence[Share],
    schema: str,
) -> "DataFrame":
    """Run the work on each share in a task of its own; return the results."""
    numbers = spark.range(0, len(shares), 1, max(1, len(shares)))
    return numbers.mapInArrow(partial(_work, work, shares), schema)


def _work(
    work: Callable[[Share], Iterator[pa.Table]],
    shares: Sequence[Share],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            for table in work(shares[number]):
                yield from table.to_batches()
