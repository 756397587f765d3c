"""From the journal into the tables: every event once, whatever is killed when."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

from pipeline import summaries
from pipeline.census import Group
from pipeline.failures import PipelineFailed, in_words
from pipeline.incidents import INCIDENTS
from pipeline.lake import CARRIED, OPEN, Lake
from pipeline.making import make
from pipeline.runs import Runs, runs_of
from pipeline.source.journal import FORMAT, JournalSource
from pipeline.source.streams import Journals, answering
from pipeline.swap import steady, unread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# A batch is bounded, so that memory is.
MOST_EVENTS = 5_000_000
PAUSE = "5 seconds"
_LOOK_S = 0.5
_CONSUMER = "ingest"


@dataclass(slots=True)
class Taken:
    """What an ingest has done so far."""

    batches: int = 0
    events: int = 0
    incidents: dict[str, int] = field(default_factory=dict)
    # By node, frames that were written and are not there, behind the last one that is.
    lacking: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Source:
    """Whose journal is read, and how."""

    url: str
    namespace: str = "holdfast"
    most: int = MOST_EVENTS
    accepts_loss: bool = False

    def options(self, cores: int, into: Path) -> Mapping[str, str]:
        return {
            "url": self.url,
            "namespace": self.namespace,
            "cores": str(cores),
            "maxEvents": str(self.most),
            "acceptLoss": str(self.accepts_loss).lower(),
            "into": str(into),
        }


def take_what_is_there(
    spark: "SparkSession", source: Source, lake: Lake, tell: Callable[[Taken], None]
) -> Taken:
    """Everything that is in the journal now; `tell` hears of each batch.

    Raises:
        PipelineFailed: The journal lacks something, or cannot be read; what is in the tables stays.
    """
    with answering(source.url):
        numbered = Journals(source.url, source.namespace).numbered()
    with lake.alone("ingest"):
        taken, query = _start(spark, source, lake, tell, once=True)
        _wait(query)
        _tell_committed(source, lake)
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
    tell: Callable[[Taken], None],
    is_over: Event,
) -> None:
    """Everything that is there and comes, until somebody says that it is over.

    Raises:
        PipelineFailed: The journal lacks something, or cannot be read; what is in the tables stays.
    """
    with lake.alone("ingest"):
        _, query = _start(spark, source, lake, tell, once=False)
        try:
            while query.isActive and not is_over.wait(_LOOK_S):
                pass
            if not is_over.is_set():
                _wait(query)
        finally:
            query.stop()
            _tell_committed(source, lake)


def _start(
    spark: "SparkSession",
    source: Source,
    lake: Lake,
    tell: Callable[[Taken], None],
    *,
    once: bool,
) -> tuple[Taken, "StreamingQuery"]:
    with steady(lake):
        lake.check()
    lake.sign()
    # Nobody else is at work here.
    lake.sweep()
    taken = Taken()

    def take(receipts: "DataFrame", batch: int) -> None:
        # This one is not for good before the next begins.
        _tell_committed(source, lake)
        write_batch(receipts, batch, lake, taken)
        tell(taken)

    spark.dataSource.register(JournalSource)
    options = source.options(spark.sparkContext.defaultParallelism, lake.coming)
    stream = spark.readStream.format(FORMAT).options(**options).load()
    writer = stream.writeStream.foreachBatch(take).option(
        "checkpointLocation", f"file://{lake.checkpoint}"
    )
    if once:
        return taken, writer.trigger(availableNow=True).start()
    return taken, writer.trigger(processingTime=PAUSE).start()


def _tell_committed(source: Source, lake: Lake) -> None:
    """The server may cut off what is in the tables for good."""
    with answering(source.url):
        journals = Journals(source.url, source.namespace)
        journals.tell_read(_CONSUMER, {node: at.id for node, at in lake.positions().items()})


def _wait(query: "StreamingQuery") -> None:
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise PipelineFailed(in_words(error)) from error


def write_batch(receipts: "DataFrame", batch: int, lake: Lake, taken: Taken) -> None:
    """All tables of a batch, whose events lie ready; once more, if it was tried before."""
    # Now tasks read, and write events.
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
    """What is made from the events of a batch, and from what the one before has carried."""
    carried = {table: lake.folder(table, batch - 1).rglob("*.parquet") for table in CARRIED}
    made = make(spark, {"events": events, **carried}, runs, lake.coming)
    tables = ["life", "messages"] + ["lost"] * bool(runs.last_us)
    for table in tables:
        lake.take_in(table, {each.file: each.place for each in made if each.table == table}, batch)
    lake.sweep()
    closed = lake.batch(spark, "life", batch).where(F.col("state") != OPEN)
    lake.write(summaries.latency(closed).coalesce(1), "latency", batch)
    lake.write(summaries.dead(closed).coalesce(1), "dead", batch)
