"""The journal as a Spark source: `spark.read.format("holdfast")`, or readStream.

Options: url, namespace, cores (pieces of a batch), maxEvents (of a batch), acceptLoss, every
(seconds between small batches of a stream), and into: a folder where tasks write the events as
Parquet; Spark then gets receipts instead.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from holdfast.pipeline.schemas import JOURNAL
from holdfast.pipeline.source.keeping import RECEIPT, keep
from holdfast.pipeline.source.planning import Offset, Planner
from holdfast.pipeline.source.reading import Piece, read_piece
from holdfast.pipeline.source.streams import Journals, answering

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

FORMAT = "holdfast"
# So many frames are worth a batch at once; each batch has costs of its own, and files.
_ENOUGH = 200


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the source; Spark ignores case in their names."""

    url: str
    namespace: str = "holdfast"
    cores: int = 2
    most: int | None = None
    accepts_loss: bool = False
    into: Path | None = None
    every_s: float = 0.0

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        return cls(
            given["url"],
            given.get("namespace", "holdfast"),
            int(given.get("cores", "2")),
            int(given["maxEvents"]) if "maxEvents" in given else None,
            given.get("acceptLoss", "false") == "true",
            Path(given["into"]) if "into" in given else None,
            float(given.get("every", "0")),
        )

    def journals(self) -> Journals:
        return Journals(self.url, self.namespace)

    def planner(self, journals: Journals) -> Planner:
        return Planner(journals, cores=self.cores, accepts_loss=self.accepts_loss)


def _read(options: Options, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
    piece: Piece | None = partition.value
    # Spark passes None if there is nothing to read.
    if piece is None:
        return
    with answering(options.url):
        tables = read_piece(options.journals(), piece, accepts_loss=options.accepts_loss)
        yield from tables if options.into is None else keep(tables, options.into)


class _Whole(DataSourceReader):
    """Reads everything that is there now."""

    def __init__(self, options: Options) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        with answering(self._options.url):
            planner = self._options.planner(self._options.journals())
            end = planner.advance({}, planner.newest(), None)
            return [InputPartition(piece) for piece in planner.pieces({}, end)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return _read(self._options, partition)


class _Stream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what is there batch by batch, each event once."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._journals: Journals | None = None
        self._goal: dict[str, str] | None = None
        # The time of the latest batch; the first begins at once.
        self._begun = -math.inf

    @property
    def _planner(self) -> Planner:
        if self._journals is None:
            self._journals = self._options.journals()
        return self._options.planner(self._journals)

    def initialOffset(self) -> Offset:
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.most
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        with answering(self._options.url):
            self._goal = self._planner.newest()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        with answering(self._options.url):
            if self._goal is not None:
                return self._planner.advance(start, self._goal, most)
            waiting = self._planner.waiting(start)
            is_due = monotonic() >= self._begun + self._options.every_s
            if not waiting or (waiting < _ENOUGH and not is_due):
                return start
            self._begun = monotonic()
            return self._planner.advance(start, self._planner.newest(), most)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        with answering(self._options.url):
            return [InputPartition(piece) for piece in self._planner.pieces(start, end)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return _read(self._options, partition)


class JournalSource(DataSource):
    """The journals of one namespace."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return RECEIPT if "into" in self.options else JOURNAL

    def reader(self, schema: "StructType") -> DataSourceReader:
        return _Whole(Options.of(self.options))

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:
        return _Stream(Options.of(self.options))
