"""One table of a lake: a Delta table, whose log says which files belong to it.

Each commit carries the number of the lake's state that it belongs to: see
`holdfast.pipeline.lake`.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import (
    CommitProperties,
    DeltaTable,
    Field,
    PostCommitHookProperties,
    Schema,
    Transaction,
)
from deltalake.exceptions import DeltaError
from deltalake.schema import ArrayType, PrimitiveType
from deltalake.transaction import AddAction, RemoveAction

from holdfast.pipeline.digests import ALTERED, altered_files
from holdfast.pipeline.durable import sync
from holdfast.pipeline.failures import PipelineFailed, in_words
from holdfast.pipeline.log_digests import LogDigests
from holdfast.pipeline.statistics import statistics_of
from holdfast.pipeline.table_files import File

# The application that counts the states in the logs.
_WHO = "holdfast"
_LOG, _FILES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_SETTINGS = {
    # New readers read fewer commits than these.
    "delta.checkpointInterval": "50",
    _FILES: "interval 7 days",
}
# To look for old commits would be most of a commit's work: cleaning up does it.
_QUICK = PostCommitHookProperties(cleanup_expired_logs=False)
_TYPES: dict[str, PrimitiveType | ArrayType] = {
    "string": PrimitiveType("string"),
    "int": PrimitiveType("integer"),
    "bigint": PrimitiveType("long"),
    "date": PrimitiveType("date"),
    "timestamp": PrimitiveType("timestamp"),
    "array<bigint>": ArrayType(PrimitiveType("long"), contains_null=True),
}


def flaws(files: Iterable[File]) -> dict[Path, str]:
    """Return what happened to the files of these that are not as they were written."""
    known = {file.path: file.fault for file in files}
    found = {path: fault for path, fault in known.items() if fault is not None}
    whole = (path for path, fault in known.items() if fault is None)
    return found | dict.fromkeys(altered_files(whole), ALTERED)


class Table:
    """The table in one folder.

    Args:
        columns: The columns in its files.
        by: The column that the names of its folders encode, if any.
    """

    def __init__(self, place: Path, columns: str, by: str) -> None:
        self._place = place
        self._schema = _schema(", ".join(filter(None, (columns, by))))
        self._by = by.split()[:1]
        self._digests = LogDigests(place)
        # Opening a table reads its log; bringing it up to date, only the commits since then.
        self._opened: DeltaTable | None = None

    @property
    def exists(self) -> bool:
        return self._opened is not None or DeltaTable.is_deltatable(str(self._place))

    def create(self, log_days: int) -> None:
        """Begin the table, unless it exists; its log goes back so many days."""
        if self.exists:
            return
        settings = {**_SETTINGS, _LOG: _days(log_days)}
        DeltaTable.create(
            str(self._place), self._schema, partition_by=self._by, configuration=settings
        )
        self._settle(0, 0)

    def lacking(self) -> list[Field]:
        """Return the columns that the table lacks because an older version began it."""
        known = {field.name for field in self.newest().schema().fields}
        return [field for field in self._schema.fields if field.name not in known]

    def widen(self) -> None:
        """Add the columns that the table lacks."""
        with self._settling() as newest:
            newest.alter.add_columns(self.lacking())

    def newest(self) -> DeltaTable:
        """Return the table at its newest version.

        Raises:
            PipelineFailed: Its log is not as it was written.
        """
        if self._opened is not None and not self._commit(self._opened.version() + 1).exists():
            return self._opened
        self._digests.check()
        try:
            if self._opened is None:
                self._opened = DeltaTable(str(self._place))
            else:
                self._opened.update_incremental()
        except DeltaError as error:
            raise PipelineFailed(f"{self._place / '_delta_log'}: {in_words(error)}") from None
        return self._opened

    def _commit(self, version: int) -> Path:
        return self._place / "_delta_log" / f"{version:020d}.json"

    def altered_log(self) -> Iterable[Path]:
        """Yield the files of its log that are not as they were written."""
        return self._digests.altered()

    def at(self, number: int) -> DeltaTable:
        """Return the table at a state; its newest version may be some commits ahead."""
        found = self.newest()
        if _number(found) > number:
            # This one stays at the newest version.
            found = DeltaTable(str(self._place), version=found.version() - 1)
        while _number(found) > number:
            found.load_as_version(found.version() - 1)
        return found

    def number(self) -> int | None:
        """Return the number of the newest state."""
        return self.newest().transaction_version(_WHO)

    def commit(self, names: Iterable[str], number: int, *, is_all: bool) -> None:
        """Add files in its folder, or replace all others by them."""
        added: list[AddAction | RemoveAction] = [self._added(name) for name in names]
        with self._settling() as newest:
            newest.create_write_transaction(
                added,
                "overwrite" if is_all else "append",
                self._schema,
                self._by,
                commit_properties=_of(number),
                post_commithook_properties=_QUICK,
            )

    def files(self, number: int) -> Iterator[File]:
        """Yield the files of the table at a state."""
        actions = self.at(number).get_add_actions(flatten=True)
        names = ("path", "size_bytes", "num_records", "min.msg", "max.msg")
        unknown = [None] * actions.num_rows
        columns = (
            actions[each].to_pylist() if each in actions.column_names else unknown for each in names
        )
        for name, size, rows, first, last in zip(*columns, strict=True):
            yield File(self._place / name, self._parts(name).get("d"), size, rows, first, last)

    def undo(self, number: int) -> None:
        """Return to an earlier state, after which a killed process has begun another."""
        if _number(self.newest()) > number:
            with self._settling() as newest:
                newest.restore(self.at(number).version(), commit_properties=_of(number))

    def exchange(self, files: Iterable[File], names: Iterable[str], *, is_same: bool) -> None:
        """Replace these files by others in its folder.

        Args:
            is_same: Whether the others have the same rows, so that who follows the table reads
                none again.
        """
        ms = time.time_ns() // 10**6
        changes: list[AddAction | RemoveAction] = [
            self._removed(file, ms, is_change=not is_same) for file in files
        ]
        changes += (self._added(name, is_change=not is_same) for name in names)
        with self._settling() as newest:
            newest.create_write_transaction(
                changes, "append", self._schema, self._by, post_commithook_properties=_QUICK
            )

    def keep_history(self, days: int) -> None:
        """Keep former states for this long: their files, and the log that names these."""
        with self._settling() as newest:
            newest.alter.set_table_properties(dict.fromkeys((_LOG, _FILES), _days(days)))

    def shorten_log(self) -> None:
        """Delete the commits of states that are not kept any more."""
        self.newest().cleanup_metadata()

    def vacuum(self, hours: int | None = None, *, is_whole: bool) -> None:
        """Delete files that have not belonged to the table for long.

        Args:
            hours: How long; default: as its settings say.
            is_whole: Delete those that never belonged to it, too, which killed processes left.
        """
        with self._settling() as newest:
            newest.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=is_whole)

    def _removed(self, file: File, ms: int, *, is_change: bool) -> RemoveAction:
        name = str(file.path.relative_to(self._place))
        return RemoveAction(name, is_change, ms, file.size, self._parts(name))

    def _added(self, name: str, *, is_change: bool = True) -> AddAction:
        # Readers do not need it.
        from pyarrow.parquet import read_metadata

        path = self._place / name
        try:
            sync(path)
        except FileNotFoundError:
            raise PipelineFailed(
                f"{path}, which a worker wrote, is missing: all machines of a cluster must see the "
                "tables in one folder"
            ) from None
        stat = path.stat()
        stats = statistics_of(read_metadata(path))
        ms = int(stat.st_mtime * 1000)
        return AddAction(name, stat.st_size, self._parts(name), ms, is_change, stats)

    def _parts(self, name: str) -> dict[str, str | None]:
        words = (part.partition("=") for part in Path(name).parts[:-1])
        return {column: value for column, _, value in words}

    @contextmanager
    def _settling(self) -> Iterator[DeltaTable]:
        """Make all commits of the block survive a power cut, as the files that they name do."""
        newest = self.newest()
        before = newest.version()
        yield newest
        self._settle(before + 1, self.newest().version())

    def _settle(self, first: int, last: int) -> None:
        # Others may have committed meanwhile; to readers, an empty commit is one without files.
        for version in range(first, last + 1):
            sync(self._commit(version))
        self._digests.add(first, last)


def _schema(columns: str) -> Schema:
    named = (column.split() for column in columns.split(", "))
    return Schema([Field(name, _TYPES[kind]) for name, kind in named])


def _days(number: int) -> str:
    return f"interval {number} days"


def _number(table: DeltaTable) -> int:
    found = table.transaction_version(_WHO)
    return -1 if found is None else found


def _of(number: int) -> CommitProperties:
    return CommitProperties(app_transactions=[Transaction(_WHO, number)])
