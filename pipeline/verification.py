"""Verifies that the files of all tables are as they were written."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from holdfast.pipeline.delta import flaws
from holdfast.pipeline.digests import ALTERED, another_name, has_digest
from holdfast.pipeline.lake import TABLES, Lake


class Flaw(NamedTuple):
    """A file that is not as it was written, and what happened to it."""

    table: str
    file: str
    what: str


class FoundFlaws(NamedTuple):
    """What was found, and the number of files, and of those among them without a digest."""

    flaws: list[Flaw]
    files: int
    unknown: int


def verify(lake: Lake, report: Callable[[int, int], None]) -> FoundFlaws:
    """Read all files of the newest state; `report` is called with those done, and all.

    Raises:
        PipelineFailed: There are no tables, or what is beside them is not as it was written.
    """
    found = [
        Flaw(table, str(file), ALTERED)
        for table in TABLES
        for file in lake.open(table).altered_log()
    ]
    if found:
        # Which files belong to that table is not known.
        return FoundFlaws(found, 0, 0)
    number = lake.newest()
    lake.offset()
    files = [(table, file) for table in TABLES for file in lake.open(table).files(number)]
    for done, (table, file) in enumerate(files):
        report(done, len(files))
        found += (Flaw(table, str(path), what) for path, what in flaws([file]).items())
    return FoundFlaws(found, len(files), sum(not has_digest(file.path) for _, file in files))


def add_digests(lake: Lake) -> int:
    """Add digests of the present content to files without one. Returns how many."""
    added = 0
    with lake.changing():
        number = lake.newest()
        for table in TABLES:
            found = lake.open(table).files(number)
            files = [file for file in found if not has_digest(file.path)]
            if files:
                names = [_linked(file.path, lake.root / table) for file in files]
                lake.open(table).exchange(files, names, is_same=True)
            added += len(files)
    return added


def _linked(file: Path, table: Path) -> str:
    """Return another name of the file, with its digest; readers still find the old one."""
    named = file.with_name(another_name(file))
    named.hardlink_to(file)
    return str(named.relative_to(table))
