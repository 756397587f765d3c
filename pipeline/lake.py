"""The tables: a folder for each, on a disk or in a bucket, which change together.

A state of all tables has a number. A process that makes the next state writes its files, and
commits them: to `events` last, which is when the state begins. Earlier commits of a killed process
are undone. Readers read all tables at the state of `events`.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import date
from math import inf
from pathlib import Path
from secrets import token_hex
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.pipeline import schemas
from holdfast.pipeline.digests import ALTERED, altered_files, read_sealed, sealed
from holdfast.pipeline.failures import NotInstalled, PipelineFailed
from holdfast.pipeline.source.outline import Position
from holdfast.pipeline.storage.place import (
    Lock,
    for_spark,
    is_on_disk,
    locked,
    size_below,
    write_new,
    write_text,
)
from holdfast.pipeline.table_files import File, faults, paths_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from holdfast.pipeline.delta import Table

EVENTS = "events"
# Between two looks whether another process has ended.
_PAUSE_S = 0.2
# The copies that have not ended.
OPEN = "open"
# The columns of each table, and the column that its folder names encode.
TABLES = {
    EVENTS: (schemas.JOURNAL, "d date"),
    "life": (schemas.LIFE, ""),
    OPEN: (schemas.LIFE, ""),
    "messages": (schemas.MESSAGE, ""),
    "lost": (schemas.LOST, ""),
    "latency": (schemas.LATENCY, ""),
}
# The tables that derive from events.
MADE = tuple(name for name in TABLES if name != EVENTS)
# Each state replaces these.
CARRIED = ("messages", OPEN)

# Reading fewer bytes than this takes no longer than Java's warm-up.
_SMALL = 32 * 1024**2
# Increased by every change that invalidates existing tables.
VERSION = 7
# Since this version, events have their present form.
OLDEST = 3


class NewFile(NamedTuple):
    """A new file of a table: its name in the table's folder."""

    table: str
    file: str


class Lake:
    """The tables in one place."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._version = self.root / "_version"
        self._id = self.root / "_id"
        self._narrow = self.root / "_narrow"
        # Since which day events are kept.
        self._since = self.root / "_since"
        # How far the journal was read, by the number of the state.
        self._offsets = self.root / "_offsets"
        # The opened tables of each thread.
        self._opened = threading.local()
        # The locks that this process holds.
        self._locks: list[Lock] = []

    @contextmanager
    def alone(self, who: str, wait_s: float = 0.0) -> Iterator[None]:
        """Hold the lock for this kind of work on the tables.

        Args:
            wait_s: How long to wait for a process that holds it, or was killed and holds its lease.

        Raises:
            PipelineFailed: Another process holds it.
        """
        with self._locked(who, wait_s=wait_s):
            yield

    @contextmanager
    def alone_with_tables(self, *, oldest: int = VERSION) -> Iterator[None]:
        """Hold the lock for upkeep of existing tables.

        Raises:
            PipelineFailed: There are none, they have another version, or another process holds
                the lock.
        """
        # Do not create a folder where there are no tables.
        self._check_tables(oldest)
        with self.alone("upkeep"):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Lock out other changes of the state; first undo what a killed process has left of one."""
        with self._locked("change", wait_s=inf) as lock:
            self._undo(lock)
            yield

    def _undo(self, lock: Lock) -> None:
        events, number = self.open(EVENTS), self.state()
        state = -1 if number is None else number
        if lock.is_inherited and events.exists:
            events.fence(state)
        for name in MADE:
            self.open(name).undo(state)
        (self._offsets / str(state + 1)).unlink(missing_ok=True)

    @contextmanager
    def _locked(self, who: str, *, wait_s: float) -> Iterator[Lock]:
        with ExitStack() as stack:
            lock = self._entered(stack, who, wait_s)
            self._locks.append(lock)
            stack.callback(self._locks.remove, lock)
            yield lock

    def _entered(self, stack: ExitStack, who: str, wait_s: float) -> Lock:
        end_s = monotonic() + wait_s
        while True:
            try:
                return stack.enter_context(locked(self.root / f"_{who}", waits=wait_s == inf))
            except BlockingIOError as error:
                if monotonic() >= end_s:
                    raise self._taken(who, error) from None
            sleep(_PAUSE_S)

    def _taken(self, who: str, error: BlockingIOError) -> PipelineFailed:
        more = f" ({error.strerror})" if error.strerror and not self.is_on_disk else ""
        remedy = ", or let this one wait with --wait 40" if who == "ingest" else ""
        return PipelineFailed(
            f"{self.root}: another {who} is running there{more}: wait until it has ended{remedy}"
        )

    def _check_locks(self) -> None:
        for lock in self._locks:
            lock.check()

    @property
    def is_on_disk(self) -> bool:
        return is_on_disk(self.root)

    def state(self) -> int | None:
        """Return the number of the newest state."""
        events = self.open(EVENTS)
        return events.number() if events.exists else None

    def newest(self) -> int:
        """Return the number of the newest state; there must be one.

        Raises:
            PipelineFailed: There are no tables, or they have another version.
        """
        self._check_tables(VERSION)
        number = self.state()
        if number is None:
            raise self._nothing()
        return number

    def _check_tables(self, oldest: int) -> None:
        self.check_version(oldest)
        if self.version() is None:
            raise self._nothing()

    def _nothing(self) -> PipelineFailed:
        return PipelineFailed(f"{self.root} has no tables yet: run holdfast pipeline ingest first")

    def is_small(self) -> bool:
        """Return whether the work takes no longer than Java's warm-up."""
        return size_below(self.root, "*.parquet") < _SMALL

    def offset(self) -> dict[str, Any]:
        """Return how far each node's journal was read, as the source recorded it.

        Raises:
            PipelineFailed: The record is missing, so reading on could count events twice.
        """
        number = self.state()
        if number is None:
            return {}
        try:
            offset: dict[str, Any] = read_sealed(self._offsets / str(number))
        except FileNotFoundError as error:
            raise PipelineFailed(
                f"{error.filename}, which says how far the journal was read, is missing: name "
                "another --lake, or move this one away"
            ) from None
        return offset

    def positions(self) -> dict[str, Position]:
        """Return how far each node's journal was read."""
        return {node: Position.of(given) for node, given in self.offset().items()}

    @property
    def id(self) -> str:
        """The name of these tables at the server, which knows how far they are."""
        return self._id.read_text("utf-8", "replace")

    def sign(self) -> None:
        """Create tables that are missing; record their version, and their id, which they keep."""
        self.root.mkdir(parents=True, exist_ok=True)
        if not self._id.exists():
            write_text(self._id, token_hex(4))
        self.create()
        write_text(self._version, str(VERSION))

    def create(self) -> None:
        """Create tables that are missing."""
        for name in TABLES:
            # Former files of those that each state replaces do not stay for long.
            self.open(name).create(log_days=1 if name in CARRIED else 7)

    def widen(self) -> None:
        """Add columns that tables lack; files of an older version stay without them."""
        # A later undo would remove the columns.
        with self.changing():
            narrow = [table for table in map(self.open, TABLES) if table.lacking()]
            if narrow:
                self.note_narrow()
            for table in narrow:
                table.widen()

    def note_narrow(self) -> None:
        """Note that some files lack columns that new ones have."""
        self._narrow.touch()

    def kept_since(self) -> date | None:
        """Return the day before which events were removed on purpose; None if none were."""
        try:
            return date.fromisoformat(read_sealed(self._since))
        except FileNotFoundError:
            return None

    def note_kept_since(self, day: date) -> None:
        """Note that events from before this day are going to be removed."""
        known = self.kept_since()
        if known is None or known < day:
            write_text(self._since, sealed(str(day)))

    @property
    def is_mixed(self) -> bool:
        """Whether some files may have columns that others lack."""
        return self._narrow.exists()

    def check_version(self, oldest: int = VERSION) -> None:
        """Refuse tables of another version.

        Raises:
            PipelineFailed: The text says how to continue.
        """
        version = self.version()
        if version is None or oldest <= version <= VERSION:
            return
        if version > VERSION:
            text = "a newer holdfast: update this one, or name another --lake"
        elif version >= OLDEST:
            text = "an older holdfast: holdfast pipeline backfill rebuilds them from their events"
        else:
            text = "a much older holdfast: name another --lake, or move this one away"
        raise PipelineFailed(f"{self.root} has tables of {text}")

    def version(self) -> int | None:
        """Return the version of the tables; None if there are none, 0 if it is unknown."""
        if not (self.root / EVENTS).is_dir():
            return None
        try:
            version = self._version.read_text("utf-8", "replace")
        except FileNotFoundError:
            # They are being made for the first time, or a killed process began to make them.
            if self.open(EVENTS).exists:
                return VERSION
            return None if self._id.exists() else 0
        number = int(version) if version.isdecimal() else 0
        return None if OLDEST <= number < VERSION and self._is_empty() else number

    def _is_empty(self) -> bool:
        """Return whether an older version has created tables, but could not read a first batch."""
        # Tables that are opened here stay open, but these may be removed next.
        state = Lake(self.root).state()
        return state is None and not any((self.root / EVENTS).glob("batch=*"))

    def commit(
        self,
        made: Iterable[NewFile],
        offset: Mapping[str, Any],
        *,
        replaced: Iterable[str] = CARRIED,
    ) -> None:
        """Make the next state from these files and the other files in their tables.

        Args:
            offset: How far the journal was read.
            replaced: The tables whose other files are left out.
        """
        last = self.state()
        number = 0 if last is None else last + 1
        self._offsets.mkdir(exist_ok=True)
        write_new(self._offsets / str(number), sealed(offset))
        files: dict[str, list[str]] = {name: [] for name in (*replaced, EVENTS)}
        for table, file in made:
            files.setdefault(table, []).append(file)
        for name in sorted(files, key=lambda name: name == EVENTS):
            self.open(name).commit(files[name], number, is_all=name in replaced)
        (self._offsets / str(number - 2)).unlink(missing_ok=True)

    def files(self, table: str, since: date | None = None, *, at: int | None = None) -> list[Path]:
        """Return the files of a table, which are as they were written.

        Every reader gets them here, or checks what is `listed`. Files of events start at the day
        `since`.

        Args:
            at: The number of the state; default: the newest.

        Raises:
            PipelineFailed: There are no tables, or a file is missing, incomplete or changed.
        """
        found = self.listed(table, since, at=at)
        check(found)
        return found

    def listed(self, table: str, since: date | None = None, *, at: int | None = None) -> list[Path]:
        """Return the same files, without reading them.

        Raises:
            PipelineFailed: There are no tables, or a file is missing or incomplete, as after a
                power cut.
        """
        return sorted(paths_of(self.found(table, since, at=at)))

    def found(self, table: str, since: date | None = None, *, at: int | None = None) -> list[File]:
        """Return the same files, with what their commits say of them."""
        number = self.newest() if at is None else at
        found = [*self.open(table).files(number)]
        if table == EVENTS:
            found = [file for file in found if _is_wanted(file.day, since)]
        refuse(faults(found))
        return found

    def table(
        self,
        spark: "SparkSession",
        table: str,
        since: date | None = None,
        *,
        at: int | None = None,
    ) -> "DataFrame":
        """Return the rows of these days; who reads them checks the files that are `listed`."""
        files = self.listed(table, since, at=at)
        schema = ", ".join(filter(None, TABLES[table]))
        return _read(spark, schema, self.root / table, files)

    def open(self, table: str) -> "Table":
        """Return one of the tables.

        Raises:
            PipelineFailed: The library for tables is not installed.
        """
        try:
            from holdfast.pipeline.delta import Table
        except ImportError:
            raise NotInstalled("deltalake") from None
        opened: dict[str, Table] = self._opened.__dict__
        if table not in opened:
            columns, by = TABLES[table]
            opened[table] = Table(self.root / table, columns, by, self._check_locks)
        return opened[table]


def check(files: Iterable[Path]) -> None:
    """Refuse files that are not as they were written.

    Raises:
        PipelineFailed: A file was changed.
    """
    refuse(dict.fromkeys(altered_files(files), ALTERED))


def refuse(lost: Mapping[Path, str]) -> None:
    """Raise an error if files are lost; it names the first one and says what to do.

    Raises:
        PipelineFailed: A file is lost.
    """
    if not lost:
        return
    first, how = next(iter(lost.items()))
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    remedy = "rebuild it with holdfast pipeline backfill"
    if EVENTS in first.parts[-3:]:
        remedy = (
            "ingest what the journal still has into another --lake, or give the rows up with "
            "holdfast pipeline backfill --accept-loss"
        )
    raise PipelineFailed(f"{first} {how}{more}: its rows are lost; {remedy}")


def _is_wanted(day: str | None, since: date | None) -> bool:
    # The names of days sort by time.
    return since is None or (day is not None and str(since) <= day)


def _read(spark: "SparkSession", schema: str, base: Path, files: Iterable[Path]) -> "DataFrame":
    """Read files; the names of their folders below `base` are columns."""
    urls = [*map(for_spark, files)]
    if urls:
        return spark.read.schema(schema).option("basePath", for_spark(base)).parquet(*urls)
    # Spark sees that the table is empty, and plans accordingly.
    columns = (column.split() for column in schema.split(", "))
    nulls = [f"cast(null as {kind}) as {name}" for name, kind in columns]
    return spark.range(1).where("false").selectExpr(*nulls)
