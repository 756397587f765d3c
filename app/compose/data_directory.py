"""The data directory: for this process alone, written by nobody else, there while it runs."""

import fcntl
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.compose.cannot_start import CannotStart

_LOCK = "lock"


class DataDirectory:
    """The directory that this process has locked."""

    def __init__(self, path: Path, lock: int) -> None:
        # What other programs do to the working directory must not matter.
        self.path = path.absolute()
        self._lock = lock

    def is_there(self) -> bool:
        """Whether the lock is where it was, and not only in this process."""
        return is_same(self._lock, self.path / _LOCK)


@contextmanager
def own_directory(path: Path) -> Iterator[DataDirectory]:
    """The data directory, made if it is missing. Raises `CannotStart` if it cannot be trusted."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_link(path)
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotStart(f"data {path}: {error.strerror}") from error
    try:
        _check(path, os.fstat(directory))
        lock = _claim(path, directory)
    finally:
        os.close(directory)
    try:
        yield DataDirectory(path, lock)
    finally:
        os.close(lock)


def is_same(file: int, path: Path) -> bool:
    """Whether an open file is still the one of this path."""
    try:
        found = path.stat()
    except OSError:
        return False
    return os.path.samestat(found, os.fstat(file))


def _claim(path: Path, directory: int) -> int:
    flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock = os.open(_LOCK, flags, 0o600, dir_fd=directory)
    except OSError as error:
        raise CannotStart(f"data {path}: {error.strerror}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise CannotStart(f"data {path}: another server uses this directory") from None
    return lock


def _check_link(path: Path) -> None:
    """Whoever owns a link can let it lead elsewhere tomorrow."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
        raise CannotStart(
            f"data {path}: is a link of another user (uid {found.st_uid}): name the directory that "
            f"it leads to, {path.resolve()}"
        )


def _check(path: Path, found: os.stat_result) -> None:
    """Who can write there can read the tokens, replace the store, and lock this server out."""
    quoted = shlex.quote(str(path))
    if found.st_uid != os.geteuid():
        raise CannotStart(
            f"data {path}: belongs to another user (uid {found.st_uid}), who could change what the "
            f"server keeps: make it yours with: chown -R {os.geteuid()} {quoted}, or name another "
            "directory, such as one within it"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CannotStart(
            f"data {path}: other users can write there, and change what the server keeps: "
            f"forbid it with: chmod 700 {quoted}"
        )
