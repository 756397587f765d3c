"""The query of an ingest: Spark's Structured Streaming plans ranges, a function takes each batch.

The position belongs to the tables. So the query begins where they are, and its checkpoint is
created each time: whatever is in the folder, or not, says nothing about the tables.
"""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from holdfast.pipeline.failures import PipelineFailed, QueryStopped, in_words
from holdfast.pipeline.source.journal_source import REMEDIES, JournalSource
from holdfast.pipeline.source.options import NAME, Form

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# Spark gives Python ten seconds to start, which a busy machine may exceed.
_TOO_BUSY = "too busy to start Python"
_ATTEMPTS = 6
_IDLE = "spark.sql.streaming.noDataProgressEventInterval"


class IngestQuery:
    """A query that is run once; `take` gets the ranges of each batch.

    Args:
        options: Options of the data source.
        checkpoint: A folder for this query only.
        told: Called some time after each batch.
        idle: Called now and then while there is nothing to take.
    """

    def __init__(
        self,
        spark: "SparkSession",
        options: Mapping[str, str],
        checkpoint: Path,
        take: "Callable[[DataFrame], None]",
        *,
        told: Callable[[], None],
        idle: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._options = options
        self._checkpoint = checkpoint
        self._take = take
        self._listener = _Listener(told, idle)
        self._taking = Lock()
        self._is_over = self._has_taken = False
        self._failure: BaseException | None = None

    def finish(self) -> None:
        """Take what there is now; less if somebody stops the query, which Spark does not tell.

        Raises:
            PipelineFailed: The query failed.
        """

        def wait(query: "StreamingQuery") -> None:
            query.awaitTermination()

        self._run({"availableNow": True}, wait)

    def go_on(self, pause_s: float, is_over: Event) -> None:
        """Take what there is and what comes, until it is over and a batch is complete.

        Raises:
            PipelineFailed: The query failed, or somebody stopped it.
        """

        def wait(query: "StreamingQuery") -> None:
            while query.isActive and not is_over.wait(pause_s):
                pass
            if not query.isActive:
                query.awaitTermination()

        ms = max(1, int(pause_s * 1000))
        self._spark.conf.set(_IDLE, ms)
        self._run({"processingTime": f"{ms} milliseconds"}, wait)
        if not is_over.is_set():
            raise QueryStopped

    def _run(self, trigger: Mapping[str, Any], wait: "Callable[[StreamingQuery], None]") -> None:
        self._spark.dataSource.register(JournalSource)
        self._spark.streams.addListener(self._listener)
        try:
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    return self._run_once(self._writer().trigger(**trigger), wait)
                except PySparkException as error:
                    if self._failure is not None:
                        raise self._failure from None
                    words = in_words(error)
                    if self._has_taken or attempt == _ATTEMPTS or _TOO_BUSY not in words:
                        raise PipelineFailed(_for_users(words)) from error
        finally:
            self._spark.streams.removeListener(self._listener)

    def _writer(self) -> "DataStreamWriter":
        shutil.rmtree(self._checkpoint, ignore_errors=True)
        reader = self._spark.readStream.format(NAME).option("form", Form.RANGES.value)
        ranges = reader.options(**self._options).load()
        writer = ranges.writeStream.foreachBatch(self._take_one)
        return writer.option("checkpointLocation", f"file://{self._checkpoint}")

    def _run_once(
        self, writer: "DataStreamWriter", wait: "Callable[[StreamingQuery], None]"
    ) -> None:
        query = writer.start()
        self._listener.id = query.id
        wait(query)
        # Stopping the query now would abort a batch; only an interrupt may do that.
        with self._taking:
            self._is_over = True
        query.stop()

    def _take_one(self, ranges: "DataFrame", number: int) -> None:
        with self._taking:
            if self._is_over:
                return
            self._has_taken = True
            try:
                self._take(ranges)
            except BaseException as error:
                # Spark would only tell its text.
                self._failure = error
                raise


def _for_users(words: str) -> str:
    """Replace the remedies for users of the data source by those for users of an ingest."""
    # The longest first: one may be a part of another.
    for kind, remedy in sorted(REMEDIES.items(), key=lambda each: -len(each[1])):
        words = words.replace(remedy, kind.remedy)
    return words


class _Listener(StreamingQueryListener):
    """Passes on what Spark says about a query."""

    def __init__(self, told: Callable[[], None], idle: Callable[[], None]) -> None:
        self.id = ""
        self._told = told
        self._idle = idle

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        if str(event.progress.id) == self.id:
            self._told()

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        if str(event.id) == self.id:
            self._idle()

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass
