"""Remembers what audits and reports found out about files: the next one reads only new files.

All its results follow from files of tables, which never change. A result is valid while its group
has the same files, and may be removed at any time.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from holdfast.pipeline.copies import DAY_NS
from holdfast.pipeline.digests import altered, digest_of, read_sealed, sealed
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.storage.place import local_folder, mark_of
from holdfast.pipeline.table_files import File

# Increased by every change of what is remembered.
_VERSION = "7"
# The digests of a part's files. A part that a disk or a power cut has changed is found out again.
_DIGESTS = "digests"

# The rows of a question, unless one group has more: each question costs time, and rows cost memory.
_MOST_ROWS = 1_000_000
# The day of an event, as the name of its folder spells it; Spark's name for no day.
EVENT_DAY = "coalesce(cast(d as string), '__HIVE_DEFAULT_PARTITION__')"
# The day of publish of a message, since 1970.
MESSAGE_DAY = f"cast((msg - msg % {DAY_NS}) / {DAY_NS} as bigint)"
Group = TypeVar("Group")


class Memory:
    """A folder that has a part for each group of files."""

    def __init__(self, place: Path, groups: Mapping[str, Iterable[Path]]) -> None:
        self._place = place
        self.parts = {name: self.part(name, map(_named, files)) for name, files in groups.items()}

    def part(self, name: str, facts: Iterable[str]) -> Path:
        """Return the path for results that follow from these facts."""
        text = "\n".join([_VERSION, *sorted(facts)])
        return self._place / f"{name}-{blake2b(text.encode(), digest_size=16).hexdigest()}"

    @property
    def unread(self) -> list[str]:
        """Return the groups whose present files were not read yet."""
        return [group for group, part in self.parts.items() if not _is_whole(part)]

    @contextmanager
    def writing(self, groups: Iterable[str]) -> Iterator[dict[str, Path]]:
        """Yield a new folder for the results of each group; they become its part at the end."""
        draft = self._place / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        drafts = {group: draft / group for group in groups}
        for place in drafts.values():
            place.mkdir(parents=True)
        yield drafts
        for group, place in drafts.items():
            files = [file for file in place.rglob("*") if file.is_file()]
            digests = {str(file.relative_to(place)): digest_of(file) for file in files}
            # A power cut may leave anything here, which its readers find out.
            (place / _DIGESTS).write_text(sealed(digests))
            shutil.rmtree(self.parts[group], ignore_errors=True)
            place.rename(self.parts[group])

    def files(self, pattern: str) -> list[Path]:
        """Return the files in all parts; all groups must have been read."""
        return [file for part in self.parts.values() for file in part.glob(pattern)]

    def forget_others(self, known: Iterable[Path] = ()) -> None:
        """Remove all parts except the present groups and the known ones."""
        for place in {*self._place.glob("*-*")} - {*self.parts.values(), *known}:
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink()


@contextmanager
def place_of(lake: Lake, name: str) -> Iterator[Path]:
    """Yield a folder beside the tables; only one process uses it at a time, others wait.

    A process that may not write there gets a temporary folder.

    Raises:
        PipelineFailed: There are no tables.
    """
    # Do not create a folder where there are no tables.
    lake.newest()
    folder = local_folder(lake.root)
    if not os.access(folder, os.W_OK):
        with TemporaryDirectory(prefix="holdfast-") as temporary:
            yield Path(temporary)
        return
    place = folder / name
    place.mkdir(exist_ok=True)
    with (place / "lock").open("a") as lock:
        flock(lock, LOCK_EX)
        yield place


def keep_each(tables: Tables, question: str, name: str, drafts: Mapping[str, Path]) -> None:
    """Write an answer in parts, each to a folder of this name in the draft of its group.

    Args:
        question: Its column `part` has the group of each row.

    Raises:
        PipelineFailed: A cluster has written it to a place that this machine cannot read.
    """
    whole = next(iter(drafts.values())).parent / name
    tables.keep_by("part", question, whole)
    if not whole.is_dir():
        raise PipelineFailed(
            f"{whole} was written on another machine: all machines of a cluster must see the "
            "tables in one folder"
        )
    for group, draft in drafts.items():
        if (part := whole / f"part={group}").is_dir():
            part.rename(draft / name)


def together(groups: Mapping[Group, int]) -> Iterator[list[Group]]:
    """Divide groups, each with its number of rows, into questions."""
    few: list[Group] = []
    sum_of_few = 0
    for group, rows in groups.items():
        if few and sum_of_few + rows > _MOST_ROWS:
            yield few
            few, sum_of_few = [], 0
        few.append(group)
        sum_of_few += rows
    if few:
        yield few


def by_day(events: Iterable[File]) -> dict[str, list[File]]:
    """Group files of events by day, as the names of their folders spell it."""
    days: dict[str, list[File]] = {}
    for file in events:
        days.setdefault(file.path.parent.name.partition("=")[2], []).append(file)
    return dict(sorted(days.items()))


def _is_whole(part: Path) -> bool:
    """Return whether the results are there as they were written."""
    try:
        digests = {part / name: digest for name, digest in read_sealed(part / _DIGESTS).items()}
    except (FileNotFoundError, PipelineFailed):
        return False
    return all(file.exists() for file in digests) and not [*altered(digests)]


def _named(file: Path) -> str:
    return " ".join(["/".join(file.parts[-3:]), *map(str, mark_of(file))])
