"""The files of tables, as the logs of these have them; no library for tables is needed."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.pipeline.storage.place import each


class File(NamedTuple):
    """A file of a table, and its day if the table has one folder for each."""

    path: Path
    day: str | None
    size: int
    rows: int
    # The first and the last message that its rows are about, if its commit says it.
    first: int | None = None
    last: int | None = None
    # When it was written, in ms since 1970.
    written_ms: int = 0

    def may_have(self, first: int, end: int) -> bool:
        """Return whether there may be rows about messages from `first` to before `end`."""
        if self.first is None or self.last is None:
            return True
        return self.first < end and self.last >= first


def paths_of(files: Iterable[File]) -> list[Path]:
    return [file.path for file in files]


def faults(files: Sequence[File]) -> dict[Path, str]:
    """Return what happened to those that are missing or incomplete."""
    found = zip(files, each(_size, paths_of(files)), strict=True)
    return {
        file.path: "is missing" if size is None else "is incomplete"
        for file, size in found
        if size != file.size
    }


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None
