"""Answers questions with Spark: on many machines, and for tables of any size."""

from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.lake import Lake, check
from holdfast.pipeline.reports.tables import Answer, names_in
from holdfast.pipeline.reports.views import PARTS, narrow
from holdfast.pipeline.scope import EVERYTHING, Scope
from holdfast.pipeline.storage.place import for_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkTables:
    """Tables of a session, as of a state of their lake."""

    def __init__(self, spark: "SparkSession", state: int) -> None:
        self.state = state
        self._spark = spark
        self._frames: dict[str, DataFrame] = {}
        # The files that each of them reads.
        self._files: dict[str, frozenset[Path]] = {}

    def ask(self, question: str, most: int | None = None) -> Answer:
        frame = self._checked(question)
        found = (frame if most is None else frame.limit(most)).toArrow()
        columns = (column.to_pylist() for column in found.columns)
        return Answer(found.column_names, [*zip(*columns, strict=True)])

    def define(self, name: str, question: str) -> None:
        self.add_frame(name, self._frame(question), self._files_of(question))

    def materialize(self, name: str, question: str) -> None:
        self.add_frame(name, self._checked(question).cache(), ())

    def add(self, name: str, schema: str, rows: Sequence[tuple[Any, ...]]) -> None:
        columns = arrow_of(schema)
        named = [dict(zip(columns.names, row, strict=True)) for row in rows]
        table = pa.Table.from_pylist(named, columns)
        self.add_frame(name, self._spark.createDataFrame(table), ())

    def add_files(self, name: str, files: Sequence[Path], schema: str) -> None:
        if files:
            urls = [*map(for_spark, files)]
            # The names of folders of days are a column.
            base = next((file.parent.parent for file in files if "=" in file.parent.name), None)
            reader = self._spark.read.schema(schema)
            if base is not None:
                reader = reader.option("basePath", for_spark(base))
            self.add_frame(name, reader.parquet(*urls), files)
        else:
            self.add(name, schema, [])

    def add_frame(self, name: str, frame: "DataFrame", files: Iterable[Path]) -> None:
        """Give these rows, which come from these files, a name for later questions."""
        self._frames[name] = frame
        self._files[name] = frozenset(files)

    def keep(self, question: str, place: Path) -> None:
        self._checked(question).write.mode("error").parquet(for_spark(place.resolve()))

    def keep_by(self, column: str, question: str, place: Path) -> None:
        writer = self._checked(question).write.mode("error").partitionBy(column)
        writer.parquet(for_spark(place.resolve()))

    def _checked(self, question: str) -> "DataFrame":
        """Return the answer; its files are as they were written."""
        check(self._files_of(question))
        return self._frame(question)

    def _files_of(self, question: str) -> frozenset[Path]:
        return frozenset().union(*(self._files[name] for name in names_in(question)))

    def _frame(self, question: str) -> "DataFrame":
        named: dict[str, Any] = {**self._frames}
        return self._spark.sql(question, **named)


def of_lake(lake: Lake, spark: "SparkSession", scope: Scope = EVERYTHING) -> SparkTables:
    """Open the tables of a lake that reports read, with the events of the scope's days only."""
    number = lake.newest()
    tables = SparkTables(spark, number)
    for name, parts in PARTS.items():
        frames = [lake.table(spark, part, scope.first_day, at=number) for part in parts]
        files = [file for part in parts for file in lake.listed(part, scope.first_day, at=number)]
        tables.add_frame(name, reduce(lambda one, other: one.unionByName(other), frames), files)
    narrow(tables, scope)
    return tables
