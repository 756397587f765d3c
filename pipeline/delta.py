"""One table of a lake: a Delta table, whose log says which files belong to it.

Each commit carries the number of the lake's state that it belongs to: see
`holdfast.pipeline.lake`.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from holdfast.pipeline.failures import PipelineFailed, in_words
from holdfast.pipeline.log_digests import LogDigests
from holdfast.pipeline.statistics import statistics_of
from holdfast.pipeline.storage.place import for_delta, sync
from holdfast.pipeline.table_files import File, faults

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


def flaws(files: Sequence[File]) -> dict[Path, str]:
    """Return what happened to the files of these that are not as they were written."""
    found = faults(files)
    whole = (file.path for file in files if file.path not in found)
    return found | dict.fromkeys(altered_files(whole), ALTERED)


class Table:
    """The table in one folder.

    Args:
        columns: The columns in its files.
        by: The column that the names of its folders encode, if any.
        may_write: Raises an error if this process has lost the right to change it.
    """

    def __init__(
        self, place: Path, columns: str, by: str, may_write: Callable[[], None] = lambda: None
    ) -> None:
        self._place = place
        self._url, self._options = for_delta(place)
        self._may_write = may_write
        self._schema = _schema(", ".join(filter(None, (columns, by))))
        self._by = by.split()[:1]
        self._digests = LogDigests(place)
        # Opening a table reads its log; bringing it up to date, only the commits since then.
        self._opened: DeltaTable | None = None
        # A version, and the number of its state: finding that out reads the log.
        self._numbered = (-1, -1)

    @property
    def exists(self) -> bool:
        return self._opened is not None or DeltaTable.is_deltatable(self._url, self._options)

    def create(self, log_days: int) -> None:
        """Begin the table, unless it exists; its log goes back so many days."""
        if self.exists:
            return
        settings = {**_SETTINGS, _LOG: _days(log_days)}
        DeltaTable.create(
            self._url,
            self._schema,
            partition_by=self._by,
            configuration=settings,
            storage_options=self._options,
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
                self._opened = DeltaTable(self._url, storage_options=self._options)
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
        if self._number() <= number:
            return found
        # This one stays at the newest version.
        found = DeltaTable(self._url, version=found.version() - 1, storage_options=self._options)
        while _number(found) > number:
            found.load_as_version(found.version() - 1)
        return found

    def number(self) -> int | None:
        """Return the number of the newest state."""
        number = self._number()
        return None if number < 0 else number

    def _number(self) -> int:
        """Return the number of the newest state; -1 if there is none."""
        newest = self.newest()
        if newest.version() != self._numbered[0]:
            self._numbered = (newest.version(), _number(newest))
        return self._numbered[1]

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

    def fence(self, number: int) -> None:
        """Make a commit of this state that others have begun fail, however late it comes."""
        with self._settling() as newest:
            newest.create_write_transaction(
                [], "append", self._schema, self._by, commit_properties=_of(number)
            )

    def files(self, number: int) -> Iterator[File]:
        """Yield the files of the table at a state."""
        actions = self.at(number).get_add_actions(flatten=True)
        names = ("path", "size_bytes", "num_records", "min.msg", "max.msg", "modification_time")
        unknown = [None] * actions.num_rows
        columns = (
            actions[each].to_pylist() if each in actions.column_names else unknown for each in names
        )
        for name, size, rows, first, last, ms in zip(*columns, strict=True):
            day = self._parts(name).get("d")
            yield File(self._place / name, day, size, rows, first, last, ms)

    def undo(self, number: int) -> None:
        """Return to an earlier state, after which a killed process has begun another."""
        if self._number() > number:
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
        from holdfast.pipeline.arrow import metadata_of

        path = self._place / name
        try:
            sync(path)
        except FileNotFoundError:
            raise PipelineFailed(
                f"{path}, which a worker wrote, is missing: all machines of a cluster must see the "
                "tables in one folder"
            ) from None
        stat = path.stat()
        stats = statistics_of(metadata_of(path))
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
        self._may_write()
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
