"""Runs all work of the pipeline on tiny data, so that its classes are archived."""

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.journal.schema import Event, Kind
from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.audit.findings import COUNTS, find
from holdfast.pipeline.audit.memory import remembering
from holdfast.pipeline.census import Group
from holdfast.pipeline.ingest import write_batch
from holdfast.pipeline.lake import EVENTS, Lake
from holdfast.pipeline.on_spark import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.scope import EVERYTHING
from holdfast.pipeline.session import Engine, open_session
from holdfast.pipeline.source.event_files import RECEIPT, write_events
from holdfast.pipeline.tasks import SparkTasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_US = 1_000_000_000_000_000


def main() -> None:
    """Do the work, then wait until Java has ended and written its archive."""
    spark = open_session(Engine(master="local[2]"))
    # There is no public access to the process.
    gateway: Any = spark.sparkContext._gateway
    with tempfile.TemporaryDirectory(prefix="holdfast-spark-") as place:
        _work(spark, Path(place))
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    sys.exit(gateway.proc.wait())


def _work(spark: "SparkSession", place: Path) -> None:
    """Turn a few events into tables and reports."""
    lake = Lake(place / "lake")
    lake.sign()
    tasks = SparkTasks(spark)
    receipts = tasks.run(partial(_write, lake.root / EVENTS), [None], RECEIPT)
    groups = [Group(*row[1:]) for row in receipts]
    write_batch(tasks, {row[0] for row in receipts}, groups, lake, {})
    tables = of_lake(lake, spark)
    for question in REPORTS.values():
        tables.ask(question, 1)
    with remembering(lake) as memory:
        find(tables, memory, EVERYTHING, {}, {}, 0, lambda done, total: None)
    tables.ask(COUNTS)


def _write(into: Path, _: None) -> "Iterator[pa.Table]":
    rows = [dict(zip(ARROW.names, row, strict=True)) for row in _events()]
    for receipt in write_events(iter([pa.RecordBatch.from_pylist(rows, ARROW)]), into):
        yield pa.Table.from_batches([receipt])


def _events() -> "Iterator[tuple[Any, ...]]":
    about: dict[str, Any] = {"msg": _US * 1000, "origin": "n1", "channel": "/a"}
    one = {**about, "receiver": "joe/1"}
    events = (
        Event("n1", _US, Kind.NODE, what="start"),
        Event("n1", _US, Kind.PUBLISHED, **about, copies=1, kept=1, size=1, priority=5),
        Event("n1", _US, Kind.HANDED, **one, attempt=1),
        Event("n1", _US, Kind.DEAD, **one, attempt=1, code="no", letter=1, fingerprint="f"),
        Event("n1", _US, Kind.REPLAYED, **one, letter=1, generation=1),
        Event("n1", _US, Kind.ACKED, **one),
        Event("n1", _US, Kind.BOOKS, what="accepted", number=2),
    )
    for seq, event in enumerate(events, 1):
        yield (*event, "made-up-1", seq, 0)


if __name__ == "__main__":
    main()
