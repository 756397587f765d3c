"""Answers questions with Spark: on many machines, and for tables of any size."""

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.reports.tables import Answer
from holdfast.pipeline.reports.views import PARTS, narrow
from holdfast.pipeline.scope import EVERYTHING, Scope

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkTables:
    """Tables of a session, as of a state of their lake."""

    def __init__(self, spark: "SparkSession", state: int) -> None:
        self.state = state
        self._spark = spark
        self._frames: dict[str, DataFrame] = {}

    def ask(self, question: str, most: int | None = None) -> Answer:
        frame = self._frame(question)
        found = (frame if most is None else frame.limit(most)).toArrow()
        columns = (column.to_pylist() for column in found.columns)
        return Answer(found.column_names, [*zip(*columns, strict=True)])

    def define(self, name: str, question: str) -> None:
        self._frames[name] = self._frame(question)

    def materialize(self, name: str, question: str) -> None:
        self._frames[name] = self._frame(question).cache()

    def add(self, name: str, schema: str, rows: Sequence[tuple[Any, ...]]) -> None:
        columns = arrow_of(schema)
        named = [dict(zip(columns.names, row, strict=True)) for row in rows]
        self._frames[name] = self._spark.createDataFrame(pa.Table.from_pylist(named, columns))

    def add_files(self, name: str, files: Sequence[Path], schema: str) -> None:
        if files:
            urls = [f"file://{file}" for file in files]
            self._frames[name] = self._spark.read.schema(schema).parquet(*urls)
        else:
            self.add(name, schema, [])

    def add_frame(self, name: str, frame: "DataFrame") -> None:
        """Give these rows a name for later questions."""
        self._frames[name] = frame

    def keep(self, question: str, place: Path) -> None:
        self._frame(question).write.mode("error").parquet(f"file://{place.resolve()}")

    def _frame(self, question: str) -> "DataFrame":
        named: dict[str, Any] = {**self._frames}
        return self._spark.sql(question, **named)


def of_lake(lake: Lake, spark: "SparkSession", scope: Scope = EVERYTHING) -> SparkTables:
    """Open the tables of a lake that reports read, with the events of the scope's days only."""
    tables = SparkTables(spark, lake.newest())
    for name, parts in PARTS.items():
        frames = [lake.table(spark, part, scope.first_day, at=tables.state) for part in parts]
        tables.add_frame(name, reduce(lambda one, other: one.unionByName(other), frames))
    narrow(tables, scope)
    return tables
