"""What is different where tables are in a bucket, not on a disk. No other module knows which.

A place is a path, of files or of objects: `holdfast.pipeline.storage.objects`.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from hashlib import blake2b
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.places import cache
from holdfast.pipeline.storage import disk, objects
from holdfast.pipeline.storage.objects import PIECE, SCHEME, ObjectPath
from holdfast.pipeline.storage.temporary_folders import begin_draft, end_draft

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

Found = TypeVar("Found")
# Requests to a bucket at a time.
_TOGETHER = 16


def place_of(given: str) -> Path:
    """Return the place that a path or a URL names.

    Raises:
        ValueError: The URL is of another kind.
    """
    if given.startswith(SCHEME) and given != SCHEME:
        return ObjectPath.of(given)
    if "://" in given:
        raise ValueError(f"{given} is neither a folder nor s3://BUCKET/PREFIX")
    return Path(given)


def is_on_disk(place: Path) -> bool:
    return not isinstance(place, ObjectPath)


def name_for_all(place: Path) -> str:
    """Return a name that says on which machine it is, if it is on one."""
    return str(place) if isinstance(place, ObjectPath) else f"{gethostname()}:{place}"


def local_folder(place: Path) -> Path:
    """Return a folder of this machine for what can be made again: for a bucket, in the cache."""
    if not isinstance(place, ObjectPath):
        return place
    name = blake2b(str(place).encode(), digest_size=16).hexdigest()
    folder = cache().parent / "lakes" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


# Writing


def write_text(place: Path, text: str) -> None:
    """Write it whole; a kill or a power cut leaves the earlier text or this one."""
    if isinstance(place, ObjectPath):
        place.write(text)
    else:
        disk.write_text(place, text)


def write_new(place: Path, text: str) -> None:
    """Write what the holder of a lock writes only once.

    Raises:
        PipelineFailed: Another process has taken the lock of a bucket over, and has written it.
    """
    if not isinstance(place, ObjectPath):
        disk.write_text(place, text)
    elif place.create(text) is None:
        raise PipelineFailed(f"{place}: another process changes the tables: run the command again")


def sync(place: Path) -> None:
    """Return once a file is on the disk, as an object is from its beginning.

    Raises:
        FileNotFoundError: It does not exist.
    """
    if not isinstance(place, ObjectPath):
        disk.sync(place)


def draft_in(folder: Path, name: str) -> Path:
    """Return the path of a new file, for `move`."""
    if isinstance(folder, ObjectPath):
        return begin_draft(name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def move(draft: Path, place: Path) -> None:
    """Put a finished file in its place."""
    if isinstance(place, ObjectPath):
        place.upload(draft)
        end_draft(draft)
    else:
        draft.rename(place)


def remove_all(place: Path) -> None:
    """Remove everything below it, if there is anything."""
    if isinstance(place, ObjectPath):
        place.remove_all()
    else:
        shutil.rmtree(place, ignore_errors=True)


class Lock(Protocol):
    """The exclusive right to write."""

    @property
    def is_inherited(self) -> bool:
        """Whether a process that had it before may still be about to write."""
        ...

    def check(self) -> None:
        """Check that this process still has it.

        Raises:
            PipelineFailed: It may have lost it.
        """
        ...


def locked(place: Path, *, waits: bool) -> AbstractContextManager[Lock]:
    """Hold a lock, which ends with its process.

    Raises:
        BlockingIOError: Another process holds it, and this one does not wait.
    """
    if not isinstance(place, ObjectPath):
        return disk.locked(place, waits=waits)
    # Work on a disk does not need it.
    from holdfast.pipeline.storage.lease import leased

    return leased(place, waits=waits)


# Reading


def pieces(place: Path) -> Iterator[bytes]:
    """Yield the content, piece by piece.

    Raises:
        FileNotFoundError: It does not exist.
    """
    if isinstance(place, ObjectPath):
        yield from place.pieces()
        return
    with place.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def mark_of(place: Path) -> tuple[int, ...]:
    """Return what changes when the content does; objects are never written again.

    Raises:
        FileNotFoundError: It does not exist on this disk.
    """
    if isinstance(place, ObjectPath):
        return ()
    stat = place.stat()
    return stat.st_size, stat.st_mtime_ns


def size_below(place: Path, pattern: str) -> int:
    """Return the size of all files below it whose names match."""
    if isinstance(place, ObjectPath):
        return place.size_below(pattern)
    return sum(file.stat().st_size for file in place.rglob(pattern))


def each(work: Callable[[Path], Found], places: Sequence[Path]) -> Iterator[Found]:
    """Yield what the work finds at each place; a bucket is asked for many at a time."""
    if len(places) < 2 or not isinstance(places[0], ObjectPath):
        yield from map(work, places)
        return
    with ThreadPoolExecutor(_TOGETHER) as threads:
        yield from threads.map(work, places)


# For other libraries


def for_arrow(places: Iterable[Path | str]) -> tuple[list[str], "FileSystem | None"]:
    """Return the names of files as Arrow knows them, and its file system; None: the disk's."""
    found = [place_of(str(place)) for place in places]
    names = [place.arrow_name for place in found if isinstance(place, ObjectPath)]
    return (names, objects.filesystem()) if names else ([*map(str, found)], None)


def for_delta(place: Path) -> tuple[str, dict[str, str] | None]:
    """Return the URL of a table and the options of its storage."""
    return str(place), objects.delta_options() if isinstance(place, ObjectPath) else None


def for_spark(place: Path) -> str:
    """Return the URL as Spark spells it, which takes escapes in it as letters of the name.

    Raises:
        PipelineFailed: It is in a bucket.
    """
    if not isinstance(place, ObjectPath):
        return f"file://{place}"
    raise PipelineFailed(
        f"{place}: Spark's own readers need tables on a disk. Leave out --engine spark: DuckDB "
        "reads them here"
    )
