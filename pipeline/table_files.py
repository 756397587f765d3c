"""The files of tables, as the logs of these have them; no library for tables is needed."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class File(NamedTuple):
    """A file of a table, and its day if the table has one folder for each."""

    path: Path
    day: str | None
    size: int
    rows: int
    # The first and the last message that its rows are about, if its commit says it.
    first: int | None = None
    last: int | None = None

    def may_have(self, first: int, end: int) -> bool:
        """Return whether there may be rows about messages from `first` to before `end`."""
        if self.first is None or self.last is None:
            return True
        return self.first < end and self.last >= first

    @property
    def fault(self) -> str | None:
        """What happened to the file, or None."""
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return "is missing"
        return None if size == self.size else "is incomplete"


def paths_of(files: Iterable[File]) -> list[Path]:
    return [file.path for file in files]
