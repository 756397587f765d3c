"""Reads the journal into the tables: every event once, whenever a process is killed."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from socket import gethostname
from threading import Event
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException

from holdfast.pipeline.census import Group
from holdfast.pipeline.failures import PipelineFailed, in_words
from holdfast.pipeline.incidents import INCIDENTS
from holdfast.pipeline.lake import CARRIED, Lake
from holdfast.pipeline.making import make
from holdfast.pipeline.runs import Runs, runs_of
from holdfast.pipeline.source.journal import FORMAT, JournalSource
from holdfast.pipeline.source.outline import seed_of
from holdfast.pipeline.source.readers import Readers
from holdfast.pipeline.source.streams import Journals, answering
from holdfast.pipeline.swap import steady, unread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Limits a batch, and so the memory.
MOST_EVENTS = 5_000_000
PAUSE = "5 seconds"
_LOOK_S = 0.5


@dataclass(slots=True)
class Taken:
    """The progress of an ingest."""

    batches: int = 0
    events: int = 0
    incidents: dict[str, int] = field(default_factory=dict)
    # By node: frames that were written after the last one read, but are missing.
    lacking: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """The journal to read, and how to read it."""

    url: str
    namespace: str = "holdfast"
    most: int = MOST_EVENTS
    accepts_loss: bool = False
    # Seconds between small batches of an ingest that goes on.
    every_s: float = 0.0

    def journals(self) -> Journals:
        return Journals(self.url, self.namespace)

    def options(self, cores: int, into: Path) -> Mapping[str, str]:
        return {
            "url": self.url,
            "namespace": self.namespace,
            "cores": str(cores),
            "maxEvents": str(self.most),
            "acceptLoss": str(self.accepts_loss).lower(),
            "into": str(into),
            "every": str(self.every_s),
        }


def take_what_is_there(
    spark: "SparkSession", source: Source, lake: Lake, report: Callable[[Taken], None]
) -> Taken:
    """Ingest everything that is in the journal now; `report` is called for each batch.

    Raises:
        PipelineFailed: The journal lacks something, or cannot be read; what is in the tables stays.
    """
    with answering(source.url):
        numbered = source.journals().numbered()
    with lake.alone("ingest"):
        taken, query = _start(spark, source, lake, report, once=True)
        _wait(query)
        _report_committed(source, lake)
    taken.lacking = _lacking(numbered, lake)
    return taken


def _lacking(numbered: Mapping[str, int], lake: Lake) -> dict[str, int]:
    positions = lake.positions()
    read = {node: positions[node].seq if node in positions else 0 for node in numbered}
    return {node: last - read[node] for node, last in numbered.items() if last > read[node]}


def go_on(
    spark: "SparkSession",
    source: Source,
    lake: Lake,
    report: Callable[[Taken], None],
    is_over: Event,
) -> None:
    """Ingest everything that is there and arrives, until told to stop.

    Raises:
        PipelineFailed: The journal lacks something, or cannot be read; what is in the tables stays.
    """
    with lake.alone("ingest"):
        _, query = _start(spark, source, lake, report, once=False)
        try:
            while query.isActive and not is_over.wait(_LOOK_S):
                pass
            if not is_over.is_set():
                _wait(query)
        finally:
            query.stop()
            _report_committed(source, lake)


def _start(
    spark: "SparkSession",
    source: Source,
    lake: Lake,
    report: Callable[[Taken], None],
    *,
    once: bool,
) -> tuple[Taken, "StreamingQuery"]:
    with steady(lake):
        lake.check()
    with answering(source.url):
        _check_store(source, lake)
    lake.sign()
    # From now on the server keeps what comes.
    _report_committed(source, lake)
    # No other process is at work here.
    lake.sweep()
    taken = Taken()

    def take(receipts: "DataFrame", batch: int) -> None:
        # The present batch is not committed before the next begins.
        _report_committed(source, lake)
        write_batch(receipts, batch, lake, taken)
        report(taken)

    spark.dataSource.register(JournalSource)
    options = source.options(spark.sparkContext.defaultParallelism, lake.coming)
    stream = spark.readStream.format(FORMAT).options(**options).load()
    writer = stream.writeStream.foreachBatch(take).option(
        "checkpointLocation", f"file://{lake.checkpoint}"
    )
    if once:
        return taken, writer.trigger(availableNow=True).start()
    return taken, writer.trigger(processingTime=PAUSE).start()


def _check_store(source: Source, lake: Lake) -> None:
    """Refuse to put the events of two stores into the same tables.

    Raises:
        PipelineFailed: These are of another store, or of this one before it was emptied.
    """
    seed = seed_of(source.journals().epoch())
    known = {at.seed for at in lake.positions().values()}
    if seed and known and seed not in known and not source.accepts_loss:
        raise PipelineFailed(
            f"{lake.root} has the events of another store: name another --lake. If this store is "
            "the same, but was emptied, use --accept-loss; the audit keeps reporting it"
        )


def _report_committed(source: Source, lake: Lake) -> None:
    """Report committed frames to the server, which may then trim them."""
    with answering(source.url):
        readers = Readers(source.journals())
        readers.report(lake.id, f"{gethostname()}:{lake.root}", lake.positions())


def _wait(query: "StreamingQuery") -> None:
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise PipelineFailed(in_words(error)) from error


def write_batch(receipts: "DataFrame", batch: int, lake: Lake, taken: Taken) -> None:
    """Write all tables of a batch from its receipts; repeatable after a failure."""
    # Runs the tasks, which read the journal and write events.
    told = receipts.collect()
    lake.take_in("events", {row.file: f"d={row.day}" for row in told}, batch)
    groups = [Group(*row[2:]) for row in told]
    for group in groups:
        if group.kind in INCIDENTS:
            taken.incidents[group.kind] = taken.incidents.get(group.kind, 0) + group.number
        else:
            taken.events += group.n
    with unread(lake) as nobody_reads:
        if nobody_reads:
            lake.forget_carried(batch)
    with steady(lake):
        events = lake.folder("events", batch).rglob("*.parquet")
        write_lives(receipts.sparkSession, events, batch, lake, runs_of(groups))
    taken.batches += 1


def write_lives(
    spark: "SparkSession", events: Iterable[Path], batch: int, lake: Lake, runs: Runs
) -> None:
    """Write the tables that derive from a batch's events and from what the last one carried."""
    carried = {table: lake.folder(table, batch - 1).rglob("*.parquet") for table in CARRIED}
    made = make(spark, {"events": events, **carried}, runs, lake.coming)
    tables = ["life", "messages", "latency"] + ["lost"] * bool(runs.last_us)
    for table in tables:
        lake.take_in(table, {each.file: each.place for each in made if each.table == table}, batch)
    lake.sweep()
