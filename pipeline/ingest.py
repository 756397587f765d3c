"""From the journal into the tables: every event once, whatever is killed when."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.errors import PySparkAttributeError, StreamingQueryException
from pyspark.sql import functions as F

from pipeline import summaries
from pipeline.failures import PipelineFailed
from pipeline.incidents import INCIDENTS
from pipeline.lake import Lake
from pipeline.lives import OPEN, channels, lives, messages, unsettled
from pipeline.source.journal import FORMAT, JournalSource
from pipeline.source.streams import Journals, answering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# A batch is bounded, so that memory is.
MOST_EVENTS = 5_000_000
PAUSE = "5 seconds"
_CONSUMER = "ingest"
_FAR_CORES = 8


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

    def options(self, cores: int) -> Mapping[str, str]:
        return {
            "url": self.url,
            "namespace": self.namespace,
            "cores": str(cores),
            "maxEvents": str(self.most),
            "consumer": _CONSUMER,
            "acceptLoss": str(self.accepts_loss).lower(),
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
    taken, query = _start(spark, source, lake, tell, once=True)
    _wait(query)
    taken.lacking = _lacking(numbered, lake)
    return taken


def _lacking(numbered: Mapping[str, int], lake: Lake) -> dict[str, int]:
    positions = lake.positions()
    read = {node: positions[node].seq if node in positions else 0 for node in numbered}
    return {node: last - read[node] for node, last in numbered.items() if last > read[node]}


def go_on(spark: "SparkSession", source: Source, lake: Lake, tell: Callable[[Taken], None]) -> None:
    """Everything that is there and comes, until this is interrupted."""
    _, query = _start(spark, source, lake, tell, once=False)
    try:
        _wait(query)
    finally:
        query.stop()


def _start(
    spark: "SparkSession",
    source: Source,
    lake: Lake,
    tell: Callable[[Taken], None],
    *,
    once: bool,
) -> tuple[Taken, "StreamingQuery"]:
    lake.check()
    taken = Taken()

    def take(events: "DataFrame", batch: int) -> None:
        write_batch(events, batch, lake, taken)
        tell(taken)

    spark.dataSource.register(JournalSource)
    options = source.options(_cores(spark))
    stream = spark.readStream.format(FORMAT).options(**options).load()
    writer = stream.writeStream.foreachBatch(take).option(
        "checkpointLocation", f"file://{lake.checkpoint}"
    )
    if once:
        return taken, writer.trigger(availableNow=True).start()
    return taken, writer.trigger(processingTime=PAUSE).start()


def _cores(spark: "SparkSession") -> int:
    """How many tasks run at once; far away nobody knows."""
    try:
        return spark.sparkContext.defaultParallelism
    except PySparkAttributeError:
        return _FAR_CORES


def _wait(query: "StreamingQuery") -> None:
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        raise PipelineFailed(_reason(str(error))) from error


def _reason(text: str) -> str:
    """What we ourselves said, out of all that Spark says about it."""
    for line in text.splitlines():
        _, ours, reason = line.partition("PipelineFailed: ")
        if ours:
            return reason
    return text


def write_batch(rows: "DataFrame", batch: int, lake: Lake, taken: Taken) -> None:
    """All tables of a batch; once more, if it was tried before."""
    spark = rows.sparkSession
    lake.forget_carried(batch)
    lake.write(rows.withColumn("d", F.to_date("ts")), "events", batch, by="d")
    events = lake.batch(spark, "events", batch)
    write_lives(events, batch, lake)
    counted = events.groupBy("kind").agg(F.count("*").alias("n"), F.sum("number").alias("frames"))
    for row in counted.collect():
        if row.kind in INCIDENTS:
            taken.incidents[row.kind] = taken.incidents.get(row.kind, 0) + row.frames
        else:
            taken.events += row.n
    taken.batches += 1


def write_lives(events: "DataFrame", batch: int, lake: Lake) -> None:
    """What is made from the events of a batch, and from what the one before has carried."""
    spark = events.sparkSession
    before = lake.batch(spark, "messages", batch - 1)
    named = channels(events, before)
    told = lives(events, lake.batch(spark, "open", batch - 1), named)
    lake.write(told, "life", batch, by="state")
    known = messages(events, before, named)
    lake.write(unsettled(known).coalesce(1), "messages", batch)
    life = lake.batch(spark, "life", batch)
    lake.write(life.where(F.col("state") == OPEN).drop("state").coalesce(1), "open", batch)
    closed = life.where(F.col("state") != OPEN)
    lake.write(summaries.latency(closed).coalesce(1), "latency", batch)
    lake.write(summaries.dead(closed).coalesce(1), "dead", batch)
