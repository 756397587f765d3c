"""Temporary folders; what a killed process has left in its own, later ones remove.

A process holds a lock of each of its folders. The lock ends with the process.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

_PREFIX = "holdfast-temporary-"
# The locks of drafts.
_DRAFTS: dict[Path, int] = {}


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder, which is removed at the end; first remove abandoned ones."""
    remove_abandoned()
    place, handle = _begin()
    try:
        yield place
    finally:
        _remove(place, handle)


def begin_draft(name: str) -> Path:
    """Return the path of a new file, for `end_draft`."""
    place, handle = _begin()
    _DRAFTS[place] = handle
    return place / name


def end_draft(draft: Path) -> None:
    """Remove a file that was copied to its place."""
    _remove(draft.parent, _DRAFTS.pop(draft.parent))


def remove_abandoned() -> None:
    """Remove the folders of processes that were killed."""
    for place in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Folders of other users, and of processes that end now, are not ours to remove.
        with suppress(OSError):
            handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                _remove_if_abandoned(place, handle)
            finally:
                os.close(handle)


def _remove_if_abandoned(place: Path, handle: int) -> None:
    if os.fstat(handle).st_uid == os.getuid():
        flock(handle, LOCK_EX | LOCK_NB)
        shutil.rmtree(place, ignore_errors=True)


def _begin() -> tuple[Path, int]:
    """Make a folder; return it with the handle that locks it."""
    while True:
        place = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(FileNotFoundError):
            handle = os.open(place, os.O_RDONLY)
            flock(handle, LOCK_EX)
            # Before it was locked, it seemed abandoned.
            if place.exists():
                return place, handle
            os.close(handle)


def _remove(place: Path, handle: int) -> None:
    shutil.rmtree(place, ignore_errors=True)
    os.close(handle)
