"""Spark's data source `holdfast_journal`: the journal for anybody's notebook, and for an ingest.

It has two forms, which one planner plans: `events` has a row for each event, `ranges` one for each
piece that a task would read.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, cast

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    Filter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from holdfast.pipeline.failures import (
    FramesGone,
    JournalFailed,
    JournalTrimmed,
    PipelineFailed,
    StoreChanged,
)
from holdfast.pipeline.schemas import JOURNAL
from holdfast.pipeline.source.clients import answering
from holdfast.pipeline.source.filters import is_known, passing
from holdfast.pipeline.source.options import EARLIEST, LATEST, NAME, Form, SourceOptions
from holdfast.pipeline.source.outline import Position
from holdfast.pipeline.source.pace import Pace
from holdfast.pipeline.source.planning import Offset, Planner
from holdfast.pipeline.source.ranges import RANGE, range_of
from holdfast.pipeline.source.reading import Piece, read_piece
from holdfast.pipeline.source.streams import Journals

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_GIVES_FILTERS = "pyspark.sql.worker.data_source_pushdown_filters"
_COLUMNS = {Form.EVENTS: JOURNAL, Form.RANGES: RANGE}


class JournalSource(DataSource):
    """The journal of a server as a data source of Spark."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = dict(options)

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return _COLUMNS[self._options().form]

    def reader(self, schema: "StructType") -> DataSourceReader:
        options = self._options()
        return _FilteringReader(options) if _passes_filters() else _BatchReader(options)

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        options = self._options()
        if options.ending != LATEST:
            raise PipelineFailed("a stream has no end: leave out the option endingOffsets")
        return _StreamReader(options)

    def _options(self) -> SourceOptions:
        return SourceOptions.of(self._given)


@dataclass(frozen=True)
class _Share(InputPartition):
    """What one task reads."""

    piece: Piece | None


class _Reader:
    """Plans what tasks read, and reads it; tasks get a copy."""

    def __init__(self, options: SourceOptions) -> None:
        self._how = options

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        piece = cast("_Share", partition).piece
        if piece is None:
            return
        if self._how.form is Form.RANGES:
            yield range_of(piece)
            return
        with _explaining(self._how):
            accepts = not self._how.fails_on_loss
            yield from read_piece(self._journals(), piece, accepts_loss=accepts)

    def _journals(self) -> Journals:
        return Journals(self._how.url, self._how.namespace)

    def _planner(self) -> Planner:
        accepts = not self._how.fails_on_loss
        return Planner(self._journals(), cores=self._how.pieces, accepts_loss=accepts)

    def _check_journal(self) -> None:
        # An ingest waits for the first frame.
        if self._how.form is Form.EVENTS:
            self._journals().check_journal()

    def _newest(self, start: Offset) -> Offset:
        planner = self._planner()
        return planner.advance(start, planner.newest(), None)

    def _shares(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [_Share(piece) for piece in self._planner().pieces(start, end)]

    def _offset(self, text: str) -> Offset:
        if text == EARLIEST:
            return {}
        if text == LATEST:
            return self._newest({})
        offset: Offset = json.loads(text)
        return offset


class _BatchReader(_Reader, DataSourceReader):
    """Reads the journal from one offset to another."""

    def partitions(self) -> Sequence[InputPartition]:
        with _explaining(self._how):
            self._check_journal()
            start, ending = self._offset(self._how.starting), self._how.ending
            end = self._newest(start) if ending == LATEST else self._offset(ending)
            # Spark does not accept none.
            return self._shares(start, end) or [_Share(None)]


class _FilteringReader(_BatchReader):
    """Leaves out events that do not pass Spark's filters, so that they do not pass through Java."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._taken: list[Filter] = []

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        if self._how.form is not Form.EVENTS:
            return filters
        self._taken = [each for each in filters if is_known(each)]
        return [each for each in filters if not is_known(each)]

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        return passing(super().read(partition), self._taken)


class _StreamReader(_Reader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the journal as it grows."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        # Where a query ends that reads what is available now.
        self._goal: Mapping[str, str] | None = None
        self._pace = Pace(options.delay_s, options.enough)

    def initialOffset(self) -> Offset:
        with _explaining(self._how):
            self._check_journal()
            return self._offset(self._how.starting)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._how.most)

    def prepareForTriggerAvailableNow(self) -> None:
        with _explaining(self._how):
            self._goal = self._planner().newest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        with _explaining(self._how):
            self._check_store(start)
            planner = self._planner()
            if self._goal is None and not self._is_due(planner, start):
                return start
            goal = planner.newest() if self._goal is None else self._goal
            return planner.advance(start, goal, most)

    def _is_due(self, planner: Planner, start: Offset) -> bool:
        return self._how.delay_s == 0 or self._pace.is_due(planner.waiting(start, {}), monotonic())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        with _explaining(self._how):
            return self._shares(start, end)

    def _check_store(self, start: Offset) -> None:
        known = {Position.of(given).seed for given in start.values()}
        if self._how.fails_on_loss and self._journals().is_of_others(known):
            raise StoreChanged(
                "the offset is that of another store, or of this one before it was emptied"
            )


def _passes_filters() -> bool:
    """Return whether Spark asks for a reader in order to give it filters.

    Only then may the reader have a method for them: Spark refuses it where filters are off, as they
    are by default. The processes that give filters run a separate module.
    """
    main = getattr(sys.modules["__main__"], "__spec__", None)
    return _GIVES_FILTERS in sys.modules or getattr(main, "name", "") == _GIVES_FILTERS


_ACCEPT = "Set the option failOnDataLoss to false to continue without what is missing"
# What users of the source can do. They set options of the source, not of a command.
REMEDIES: dict[type[JournalFailed], str] = {
    FramesGone: _ACCEPT,
    JournalTrimmed: (
        "Begin with an empty checkpointLocation; older events are in the tables of an ingest, if "
        "there is one"
    ),
    StoreChanged: f"Begin with an empty checkpointLocation. {_ACCEPT}",
}


@contextmanager
def _explaining(options: SourceOptions) -> Iterator[None]:
    try:
        with answering(options.url):
            yield
    except JournalFailed as failed:
        raise PipelineFailed(f"{failed.reason}. {REMEDIES[type(failed)]}") from failed
