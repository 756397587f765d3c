"""Writes files that survive a power cut, which may leave other files empty, and locks them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from pathlib import Path


def sync(path: Path) -> None:
    """Return once the file is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_text(place: Path, text: str) -> None:
    """Write a file; a kill leaves the earlier one intact."""
    draft = place.with_suffix(".draft")
    draft.write_text(text, "utf-8")
    sync(draft)
    draft.rename(place)


class FileLock:
    """A lock that ends with its process."""

    # A process that was killed has held none since.
    is_inherited = False

    def check(self) -> None:
        """Do nothing: a lock on a disk cannot be lost."""


@contextmanager
def locked(place: Path, *, waits: bool) -> Iterator[FileLock]:
    """Hold the lock on a file.

    Raises:
        BlockingIOError: Another process holds it, and this one does not wait.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a") as file:
        flock(file, LOCK_EX if waits else LOCK_EX | LOCK_NB)
        try:
            yield FileLock()
        finally:
            # A child that another thread forks has the file open until it runs its own program, and
            # would hold the lock until then.
            flock(file, LOCK_UN)
