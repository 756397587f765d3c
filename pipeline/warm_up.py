"""Runs everything that the pipeline does on tiny data, so that its classes are archived."""

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.journal.schema import Event, Kind
from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.audit.findings import COUNTS, find
from holdfast.pipeline.audit.memory import remembering
from holdfast.pipeline.ingest import Taken, write_batch
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_spark import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.scope import EVERYTHING
from holdfast.pipeline.session import Engine, open_session
from holdfast.pipeline.source.keeping import RECEIPT, keep

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

_US = 1_000_000_000_000_000


def main() -> None:
    """Run, and wait until Java has ended and written its archive."""
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
    """Turn a few events into tables and reports, then stream them again."""
    lake = Lake(place / "lake")
    lake.sign()
    write_batch(_receipts(spark, lake), 0, lake, Taken())
    commits = lake.checkpoint / "commits"
    commits.mkdir(parents=True)
    (commits / "0").touch()
    tables = of_lake(lake, spark)
    for question in REPORTS.values():
        tables.ask(question, 1)
    events = lake.table(spark, "events")
    with remembering(lake) as memory:
        find(tables, memory, EVERYTHING, {}, 0, lambda done, total: None)
    tables.ask(COUNTS)
    stream = spark.readStream.schema(events.schema).parquet(str(lake.folder("events", 0)))
    query = (
        stream.writeStream.foreachBatch(_into(lake))
        .option("checkpointLocation", f"{place}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def _receipts(spark: "SparkSession", lake: Lake) -> "DataFrame":
    rows = [dict(zip(ARROW.names, row, strict=True)) for row in _events()]
    table = pa.RecordBatch.from_pylist(rows, ARROW)
    told = [row for receipt in keep(iter([table]), lake.coming) for row in receipt.to_pylist()]
    receipts = spark.createDataFrame([tuple(row.values()) for row in told], RECEIPT)
    return receipts.mapInArrow(_same, receipts.schema)


def _events() -> "Iterator[tuple[Any, ...]]":
    about: dict[str, Any] = {"msg": _US * 1000, "origin": "n1", "channel": "/a"}
    one = {**about, "receiver": "joe/1"}
    told = (
        Event("n1", _US, Kind.NODE, what="start"),
        Event("n1", _US, Kind.PUBLISHED, **about, copies=1, kept=1, size=1, priority=5),
        Event("n1", _US, Kind.HANDED, **one, attempt=1),
        Event("n1", _US, Kind.DEAD, **one, attempt=1, code="no", letter=1, fingerprint="f"),
        Event("n1", _US, Kind.REPLAYED, **one, letter=1, generation=1),
        Event("n1", _US, Kind.ACKED, **one),
        Event("n1", _US, Kind.BOOKS, what="accepted", number=2),
    )
    for seq, event in enumerate(told, 1):
        yield (*event, "made-up-1", seq, 0)


def _same(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    return batches


def _into(lake: Lake) -> Any:  # noqa: ANN401 - what Spark calls
    def take(rows: "DataFrame", _: int) -> None:
        write_batch(_receipts(rows.sparkSession, lake), 1, lake, Taken())

    return take


if __name__ == "__main__":
    main()
