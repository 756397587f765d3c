"""Reads the journal into the tables: every event exactly once, even if processes are killed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from holdfast.pipeline import heard, lacking
from holdfast.pipeline.census import Group
from holdfast.pipeline.failures import PipelineFailed, QueryStopped
from holdfast.pipeline.incidents import INCIDENTS
from holdfast.pipeline.lake import CARRIED, EVENTS, Lake, NewFile
from holdfast.pipeline.made_tables import make_tables
from holdfast.pipeline.runs import Runs, runs_of
from holdfast.pipeline.source.clients import answering
from holdfast.pipeline.source.event_files import RECEIPT, write_events
from holdfast.pipeline.source.outline import Position
from holdfast.pipeline.source.pace import Pace
from holdfast.pipeline.source.planning import Offset, Planner
from holdfast.pipeline.source.readers import Readers
from holdfast.pipeline.source.reading import Piece, covered_s, read_piece
from holdfast.pipeline.source.streams import Journals
from holdfast.pipeline.source.taking import TAKEN, Taken, take_ranges
from holdfast.pipeline.storage.place import local_folder, name_for_all
from holdfast.pipeline.storage.temporary_folders import remove_abandoned
from holdfast.pipeline.tasks import LocalTasks, Tasks, tasks_of
from holdfast.pipeline.upkeep import tidy

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from holdfast.pipeline.query import IngestQuery

# Spark, or processes of this machine.
Engine: TypeAlias = "SparkSession | LocalTasks"
# The maximum of a batch, which limits the memory.
MOST_EVENTS = 5_000_000
# Seconds between two looks at the journal.
_PAUSE_S = 5.0
# Less of the journal does not tell whether a machine is too slow for it.
_WORTH_S = 60.0


@dataclass(slots=True)
class IngestProgress:
    """The progress of an ingest."""

    batches: int = 0
    events: int = 0
    incidents: dict[str, int] = field(default_factory=dict)
    # By node: the number of frames that were written after the last one read, but are missing.
    lacking: dict[str, int] = field(default_factory=dict)
    # The time that batches took, and the time in which their frames were written.
    worked_s: float = field(default=0.0, compare=False)
    covered_s: float = field(default=0.0, compare=False)

    @property
    def is_outgrown(self) -> bool:
        """Whether the work takes most of the time in which the journal grows."""
        return self.covered_s >= _WORTH_S and self.worked_s * 2 > self.covered_s

    def as_json(self) -> dict[str, Any]:
        names = ("batches", "events", "incidents", "lacking")
        return {name: getattr(self, name) for name in names}

    def add(self, groups: Iterable[Group]) -> None:
        """Count a batch."""
        self.batches += 1
        for group in groups:
            if group.kind in INCIDENTS:
                self.incidents[group.kind] = self.incidents.get(group.kind, 0) + group.number
            else:
                self.events += group.n


@dataclass(frozen=True, slots=True)
class Source:
    """The journal to read, and how to read it."""

    url: str
    namespace: str = "holdfast"
    most: int = MOST_EVENTS
    accepts_loss: bool = False
    # Seconds between small batches of a continuous ingest.
    every_s: float = 0.0
    # How long to wait for another ingest into the same tables.
    wait_s: float = 0.0

    def journals(self) -> Journals:
        return Journals(self.url, self.namespace)


class _Ingest:
    """An ingest into a lake; no other process may fill it."""

    def __init__(
        self,
        tasks: Tasks,
        source: Source,
        lake: Lake,
        report: Callable[[IngestProgress], None],
    ) -> None:
        self.progress = IngestProgress()
        self._tasks = tasks
        self._source = source
        self._lake = lake
        self._report = report
        # The number of batches that were reported.
        self._told = 0
        self._telling = Lock()
        self._journals = source.journals()
        self._planner = Planner(
            self._journals,
            cores=tasks.cores,
            accepts_loss=source.accepts_loss,
        )

    def open(self) -> None:
        """Check and create the tables; from now on, the server keeps later frames for them."""
        self._lake.check_version()
        with answering(self._source.url):
            self._check_store()
        remove_abandoned()
        self._lake.sign()
        self._lake.widen()
        self._report_read()

    def _check_store(self) -> None:
        check_store(self._journals, self._lake, accepts_loss=self._source.accepts_loss)

    def look(self) -> int:
        """Return the number of frames that wait; if there are none, note who was heard of when."""
        with answering(self._source.url):
            # Read this first: later frames may come from another process.
            times = self._journals.heard()
            waiting = self._planner.waiting(self._lake.offset(), self.progress.lacking)
        if not waiting:
            heard.remember(self._lake, times)
        return waiting

    def settle(self, numbered: Mapping[str, int]) -> None:
        """Note the frames that are missing, given what was written before all was taken."""
        self.progress.lacking = _lacking(numbered, self._lake)
        lacking.remember(self._lake, self.progress.lacking)

    def take_all(self, is_over: Callable[[], bool] = lambda: False) -> None:
        """Ingest all present frames; stop after a batch if `is_over`; note the missing frames."""
        with answering(self._source.url):
            # Read this first: later frames are for a later ingest.
            numbered = self._journals.numbered()
            goal = self._planner.newest()
        while self.take(goal):
            if is_over():
                return
        self.settle(numbered)

    def take(self, goal: Mapping[str, str]) -> bool:
        """Ingest a batch of the frames up to these; return whether there were any."""
        begin = monotonic()
        with self._lake.changing():
            start = self._lake.offset()
            with answering(self._source.url):
                end = self._planner.advance(start, goal, self._source.most)
                pieces = self._planner.pieces(start, end)
            if not pieces:
                return False
            receipts = self._tasks.run(self._write, pieces, RECEIPT)
            self._store(receipts, end)
        self._count(receipts, monotonic() - begin, covered_s(pieces))
        self._report(self.progress)
        return True

    def take_ranges(self, ranges: "DataFrame") -> None:
        """Ingest the batch of a query, unless the tables have it already."""
        begin = monotonic()
        with self._lake.changing():
            work = partial(take_ranges, self._write, self._source.namespace)
            found = ranges.mapInArrow(work, TAKEN).collect()
            taken = Taken.of([tuple(row) for row in found])
            end = taken.end(self._lake.offset())
            if end is None:
                return
            self._store(taken.receipts, end)
        self._count(taken.receipts, monotonic() - begin, taken.covered_s)

    @property
    def _write(self) -> Callable[[Piece], Iterator[pa.Table]]:
        return partial(write_piece, self._source, self._lake.root / EVENTS)

    def _store(self, receipts: Sequence[tuple[Any, ...]], end: Offset) -> None:
        """Make the next state of the tables."""
        with answering(self._source.url):
            # Check this last: the store may have been emptied or replaced meanwhile.
            self._check_store()
        groups = [Group(*row[1:]) for row in receipts]
        write_batch(self._tasks, {row[0] for row in receipts}, groups, self._lake, end)

    def _count(
        self, receipts: Sequence[tuple[Any, ...]], worked_s: float, covered_s: float
    ) -> None:
        """Count a batch that is in the tables, and tidy up behind it."""
        self._report_read()
        self.progress.worked_s += worked_s
        self.progress.covered_s += covered_s
        self.progress.add(Group(*row[1:]) for row in receipts)
        tidy(self._lake)

    # With a query of Spark

    def query(self, spark: "SparkSession") -> "IngestQuery":
        """Return a query that begins where the tables are."""
        # Spark need not be installed for other engines.
        from holdfast.pipeline.query import IngestQuery

        source = self._source
        options = {
            "url": source.url,
            "namespace": source.namespace,
            "failOnDataLoss": str(not source.accepts_loss).lower(),
            "startingOffsets": json.dumps(self._lake.offset()),
            "maxEventsPerTrigger": str(source.most),
            "maxTriggerDelay": str(source.every_s),
            "partitions": str(self._tasks.cores),
        }
        place = local_folder(self._lake.root / "_checkpoint")
        return IngestQuery(
            spark, options, place, self.take_ranges, told=self._tell, idle=self._idle
        )

    def finish(self, spark: "SparkSession") -> None:
        """Ingest all present frames with a query; note the missing frames."""
        with answering(self._source.url):
            numbered = self._journals.numbered()
            goal = self._planner.newest()
        self.query(spark).finish()
        # Spark may tell of the last batches later than it ends.
        self._tell()
        if self._is_left(goal):
            raise QueryStopped
        self.settle(numbered)

    def _is_left(self, goal: Mapping[str, str]) -> bool:
        """Return whether the journal has frames up to these that are not in the tables."""
        offset = self._lake.offset()
        with answering(self._source.url):
            return self._planner.advance(offset, goal, 1) != offset

    def _tell(self) -> None:
        """Report the batches that were not reported yet."""
        with self._telling:
            if self.progress.batches != self._told:
                self._told = self.progress.batches
                self._report(self.progress)

    def _idle(self) -> None:
        """Note what is missing, and who was heard of, if all present frames are taken."""
        with answering(self._source.url):
            numbered = self._journals.numbered()
            offset = self._lake.offset()
            newest = self._planner.newest()
        read = {node: Position.of(offset.get(node)).id for node in newest}
        if read == newest:
            self.settle(numbered)
        self.look()

    def _report_read(self) -> None:
        """Report to the server which frames the tables have; it may trim them."""
        with answering(self._source.url):
            place = name_for_all(self._lake.root)
            Readers(self._journals).report(self._lake.id, place, self._lake.positions())


def take_what_is_there(
    engine: Engine, source: Source, lake: Lake, report: Callable[[IngestProgress], None]
) -> IngestProgress:
    """Ingest everything that is in the journal now; `report` is called for each batch.

    Raises:
        PipelineFailed: The journal lacks something, or cannot be read; what is in the tables stays.
    """
    with lake.alone("ingest", source.wait_s):
        ingest = _Ingest(tasks_of(engine), source, lake, report)
        ingest.open()
        if isinstance(engine, LocalTasks):
            ingest.take_all()
        else:
            ingest.finish(engine)
        ingest.look()
    return ingest.progress


def _lacking(numbered: Mapping[str, int], lake: Lake) -> dict[str, int]:
    positions = lake.positions()
    read = {node: positions[node].seq if node in positions else 0 for node in numbered}
    return {node: last - read[node] for node, last in numbered.items() if last > read[node]}


def go_on(
    engine: Engine,
    source: Source,
    lake: Lake,
    report: Callable[[IngestProgress], None],
    is_over: Event,
) -> None:
    """Ingest all frames, also those that arrive later, until `is_over` after a batch.

    Raises:
        PipelineFailed: The journal lacks something, or cannot be read; what is in the tables stays.
    """
    with lake.alone("ingest", source.wait_s):
        ingest, pace = _Ingest(tasks_of(engine), source, lake, report), Pace(source.every_s)
        ingest.open()
        if not isinstance(engine, LocalTasks):
            ingest.query(engine).go_on(_PAUSE_S, is_over)
            return
        while not is_over.is_set():
            if pace.is_due(ingest.look(), monotonic()):
                ingest.take_all(is_over.is_set)
            is_over.wait(_PAUSE_S)


def check_store(journals: Journals, lake: Lake, *, accepts_loss: bool) -> None:
    """Refuse to ingest the events of two stores into the same tables.

    Raises:
        PipelineFailed: The tables are of another store, or of this one before it was emptied.
    """
    known = {at.seed for at in lake.positions().values()}
    if not accepts_loss and journals.is_of_others(known):
        raise PipelineFailed(
            f"{lake.root} has the events of another store: name another --lake. If this store is "
            "the same, but was emptied, use --accept-loss; the audit keeps reporting it"
        )


def write_piece(source: Source, into: Path, piece: Piece) -> Iterator[pa.Table]:
    """Write the events of a piece as Parquet; yield the receipts."""
    with answering(source.url):
        tables = read_piece(source.journals(), piece, accepts_loss=source.accepts_loss)
        for receipt in write_events(tables, into):
            yield pa.Table.from_batches([receipt])


def write_batch(
    tasks: Tasks,
    files: Iterable[str],
    groups: Iterable[Group],
    lake: Lake,
    offset: Mapping[str, object],
) -> None:
    """Make the next state of the tables from new files of events."""
    events = [NewFile(EVENTS, file) for file in files]
    paths = [lake.root / each.table / each.file for each in events]
    lake.commit([*events, *write_lives(tasks, paths, lake, runs_of(groups))], offset)


def write_lives(tasks: Tasks, events: Sequence[Path], lake: Lake, runs: Runs) -> list[NewFile]:
    """Write files of the tables that derive from events and from the carried tables."""
    is_first = lake.state() is None
    carried = {table: [] if is_first else lake.files(table) for table in CARRIED}
    return make_tables(tasks, {EVENTS: events, **carried}, runs, lake.root)
