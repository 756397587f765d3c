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

from holdfast.pipeline.digests import altered, digest_of, read_sealed, write_sealed
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.reports.tables import Tables

# Increased by every change of what is remembered.
_VERSION = "4"
# The digests of a part's files. A part that a disk or a power cut has changed is found out again.
_DIGESTS = "digests"


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
    def writing(self, group: str) -> Iterator[Path]:
        """Yield a new folder for the results of a group; it becomes the group's part at the end."""
        draft = self._place / "draft"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        yield draft
        files = [file for file in draft.rglob("*") if file.is_file()]
        digests = {str(file.relative_to(draft)): digest_of(file) for file in files}
        write_sealed(draft / _DIGESTS, digests)
        shutil.rmtree(self.parts[group], ignore_errors=True)
        draft.rename(self.parts[group])

    def files(self, pattern: str) -> list[Path]:
        """Return the files in all parts; all groups must have been read."""
        return [file for part in self.parts.values() for file in part.glob(pattern)]

    def forget_others(self, known: Iterable[Path] = ()) -> None:
        """Remove all parts but those of the present groups and the known ones."""
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
    if not os.access(lake.root, os.W_OK):
        with TemporaryDirectory(prefix="holdfast-") as folder:
            yield Path(folder)
        return
    place = lake.root / name
    place.mkdir(exist_ok=True)
    with (place / "lock").open("a") as lock:
        flock(lock, LOCK_EX)
        yield place


def keep(tables: Tables, question: str, place: Path) -> None:
    """Write an answer to a new folder.

    Raises:
        PipelineFailed: A cluster has written it to a place that this machine cannot read.
    """
    tables.keep(question, place)
    if not place.is_dir():
        raise PipelineFailed(
            f"{place} was written on another machine: all machines of a cluster must see the "
            "tables in one folder"
        )


def by_day(events: Iterable[Path]) -> dict[str, list[Path]]:
    """Group files of events by day."""
    days: dict[str, list[Path]] = {}
    for file in events:
        days.setdefault(file.parent.name.partition("=")[2], []).append(file)
    return days


def _is_whole(part: Path) -> bool:
    """Return whether the results are there as they were written."""
    try:
        digests = {part / name: digest for name, digest in read_sealed(part / _DIGESTS).items()}
    except (FileNotFoundError, PipelineFailed):
        return False
    return all(file.exists() for file in digests) and not [*altered(digests)]


def _named(file: Path) -> str:
    stat = file.stat()
    return f"{'/'.join(file.parts[-3:])} {stat.st_size} {stat.st_mtime_ns}"
