"""Answers questions with DuckDB: on one machine, at once, and without Java."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.pipeline.failures import NotInstalled
from holdfast.pipeline.fetching import fetched
from holdfast.pipeline.lake import TABLES, Lake
from holdfast.pipeline.reports.tables import Answer, names_in
from holdfast.pipeline.reports.views import PARTS, narrow
from holdfast.pipeline.scope import EVERYTHING, Scope
from holdfast.pipeline.storage.temporary_folders import temporary_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_SETTINGS = {
    "TimeZone": "UTC",
    # The same order as Spark's.
    "default_null_order": "nulls_first_on_asc_last_on_desc",
    "preserve_insertion_order": "false",
    # All questions read the same files.
    "parquet_metadata_cache": "true",
    # DuckDB fetches nothing from the network.
    "autoinstall_known_extensions": "false",
}
# Suffices for tens of millions of events; DuckDB's own default is four fifths of the machine.
_MEMORY = 2 * 1024**3
# DuckDB fails if its threads have too little.
_MEMORY_OF_THREAD = 256 * 1024**2
_DEFAULTS = """
    select parse_formatted_bytes(current_setting('memory_limit')) as memory,
        current_setting('threads') as threads
"""
_TYPES = {" timestamp": " timestamptz", "array<bigint>": "bigint[]"}
# Functions of Spark that have other names in DuckDB.
_FUNCTIONS = (
    "unix_micros(ts) as epoch_us(ts)",
    "timestamp_micros(us) as make_timestamptz(us)",
    "explode(list) as unnest(list)",
    "sequence(first, last) as generate_series(first, last)",
    "collect_set(word) as list(distinct word)",
    "array_join(list, gap) as array_to_string(list, gap)",
    # Spark replaces all occurrences, not only the first.
    "regexp_replace(text, part, word) as system.main.regexp_replace(text, part, word, 'g')",
    "try_divide(part, whole) as part / nullif(whole, 0)",
)


class DuckTables:
    """Tables in a separate DuckDB. Tables of a lake have a state.

    Args:
        scratch: A folder for files that are not on this machine.
        is_mixed: Whether some files lack columns that others have; checking this takes time.
    """

    state: int

    def __init__(self, base: "DuckDBPyConnection", scratch: Path, *, is_mixed: bool) -> None:
        self._base = base
        self._scratch = scratch
        self._is_mixed = is_mixed
        # The tables that no question has needed yet.
        self._waiting: dict[str, Callable[[], None]] = {}
        # The tables that each view reads.
        self._needs: dict[str, set[str]] = {}
        for name, value in _SETTINGS.items():
            base.execute(f"set {name} = '{value}'")
        for function in _FUNCTIONS:
            base.execute(f"create temp macro {function}")

    def ask(self, question: str, most: int | None = None) -> Answer:
        text = self._ready(question if most is None else f"{question} limit {most}")
        found = self._base.execute(text)
        return Answer([name for name, *_ in found.description or []], found.fetchall())

    def define(self, name: str, question: str) -> None:
        def make() -> None:
            self._base.execute(f"create or replace temp view {name} as {_plain(question)}")

        self._set(name, make, names_in(question))

    def materialize(self, name: str, question: str) -> None:
        text = self._ready(question)
        self._set(name)
        self._base.execute(f"create or replace temp table {name} as {text}")

    def add(self, name: str, schema: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._set(name)
        self._base.execute(f"create or replace temp table {name} ({_types(schema)})")
        for row in rows:
            self._base.execute(f"insert into {name} values ({', '.join('?' * len(row))})", row)

    def add_files(self, name: str, files: Sequence[Path], schema: str) -> None:
        def make() -> None:
            here = fetched(files, self._scratch)
            found = self._base.read_parquet(
                [*map(str, here)], hive_partitioning=True, union_by_name=self._is_mixed
            )
            found.project(", ".join(["*", *_lacking(found.columns, schema)])).create_view(name)

        if files:
            self._set(name, make)
        else:
            self.add(name, schema, [])

    def keep(self, question: str, place: Path) -> None:
        text = self._ready(question)
        place.mkdir()
        file = str(place / "part.parquet").replace("'", "''")
        self._base.execute(f"copy ({text}) to '{file}' (format parquet, compression zstd)")

    def keep_by(self, column: str, question: str, place: Path) -> None:
        place.mkdir()
        text, folder = self._ready(question), str(place).replace("'", "''")
        self._base.execute(
            f"copy ({text}) to '{folder}' (format parquet, compression zstd, "
            f"partition_by ({column}))"
        )

    def _set(
        self, name: str, make: Callable[[], None] | None = None, needs: Iterable[str] = ()
    ) -> None:
        self._waiting.pop(name, None)
        if make is not None:
            self._waiting[name] = make
        self._needs[name] = {*needs}

    def _ready(self, question: str) -> str:
        """Make the tables that a question needs; return it with DuckDB's names of them."""
        for name in names_in(question):
            self._make(name)
        return _plain(question)

    def _make(self, name: str) -> None:
        for needed in self._needs.get(name, ()):
            self._make(needed)
        if (make := self._waiting.pop(name, None)) is not None:
            make()


def _lacking(found: Sequence[str], schema: str) -> list[str]:
    """Return the columns that no file has, because an older version wrote all of them."""
    wanted = (column.split() for column in _types(schema).split(", "))
    return [f"cast(null as {kind}) as {name}" for name, kind in wanted if name not in found]


def _types(schema: str) -> str:
    """Return the schema with DuckDB's type names."""
    for name, own in _TYPES.items():
        schema = schema.replace(name, own)
    return schema


def _plain(question: str) -> str:
    """Return the question with DuckDB's names of tables."""
    return question.replace("{", "").replace("}", "")


@contextmanager
def of_lake(
    lake: Lake, scope: Scope = EVERYTHING, memory: int | None = None
) -> Iterator[DuckTables]:
    """Open the tables of a lake that reports read, with the events of the scope's days only.

    Args:
        memory: See `opened`.

    Raises:
        PipelineFailed: DuckDB is not installed, or there are no tables.
    """
    number = lake.newest()
    with opened(is_mixed=lake.is_mixed, memory=memory) as tables:
        tables.state = number
        for name, parts in PARTS.items():
            files = [
                file for part in parts for file in lake.listed(part, scope.first_day, at=number)
            ]
            tables.add_files(name, files, ", ".join(filter(None, TABLES[parts[0]])))
        narrow(tables, scope)
        yield tables


@contextmanager
def opened(*, is_mixed: bool, memory: int | None = None) -> Iterator[DuckTables]:
    """Start DuckDB; it uses a temporary folder for what does not fit into memory.

    Args:
        memory: The most bytes that it may take; by default what suffices on this machine.

    Raises:
        PipelineFailed: DuckDB is not installed.
    """
    try:
        import duckdb
    except ImportError:
        raise NotInstalled("DuckDB") from None
    with (
        temporary_folder() as place,
        duckdb.connect(config={"temp_directory": str(place)}) as base,
    ):
        limit = _enough(base) if memory is None else memory
        base.execute(f"set memory_limit = '{limit} B'")
        yield DuckTables(base, place, is_mixed=is_mixed)


def _enough(base: "DuckDBPyConnection") -> int:
    [(most, threads)] = base.execute(_DEFAULTS).fetchall()
    return min(int(most), max(_MEMORY, int(threads) * _MEMORY_OF_THREAD))
