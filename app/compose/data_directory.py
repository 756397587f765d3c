"""The data directory: locked by this process, and writable by its user only."""

import asyncio
import fcntl
import os
import secrets
import shlex
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from holdfast.compose.cannot_start import CannotStart
from holdfast.store.local.home import STORE
from holdfast.supervisor.control import socket_for_commands

_LOCK = "lock"
# For how long to wait for servers whose supervisor was killed, and how often to look.
_LEAVING_S = 15.0
_LOOK_S = 0.05
_CHOOSE = "choose a folder that you may write to with --data"


class DirectoryTaken(CannotStart):
    """Another server is running in the data directory."""


class DataDirectory:
    """A data directory that this process has locked."""

    def __init__(self, path: Path, lock: int) -> None:
        # Absolute, so that a change of the working directory does not matter.
        self.path = path.absolute()
        # An open file, which processes of one supervisor share.
        self.lock = lock

    def is_there(self) -> bool:
        """Return whether the lock file is still in place, and not only open in this process."""
        return is_same(self.lock, self.path / _LOCK)

    @property
    def lock_name(self) -> str:
        """Name the lock, which no other directory, machine or boot of one has.

        A process that sees this name has the proof that the last holder of the lock has ended.
        """
        return _name(os.fstat(self.lock))


def lock_name_in(path: Path) -> str:
    """Return the name of the lock of a directory, which another process may hold; '' without one.

    It is always the same, as long as the directory is.
    """
    try:
        return _name((path / _LOCK).stat())
    except OSError:
        return ""


def _name(lock: os.stat_result) -> str:
    return f"{_boot()}:{lock.st_dev}:{lock.st_ino}:{lock.st_ctime_ns}"


def _boot() -> str:
    """Return what identifies this start of this machine; random text where nothing does."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return secrets.token_hex(16)


@contextmanager
def own_directory(path: Path, shared: int | None = None) -> Iterator[DataDirectory]:
    """Lock the directory, creating it if necessary. Raises `CannotStart` if it is not safe.

    Args:
        shared: The lock of the server that this one succeeds. It must be the directory's.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_link(path)
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotStart(f"data {path}: {error.strerror}; {_CHOOSE}") from error
    try:
        _check(path, os.fstat(directory))
        _check_store(path / STORE)
        lock = _claim(path, directory) if shared is None else _share(path, shared)
    finally:
        os.close(directory)
    try:
        yield DataDirectory(path, lock)
    finally:
        os.close(lock)


async def claimed(
    path: Path,
    shared: int | None,
    control: Path | None,
    stack: AsyncExitStack,
    others: Sequence[Path] = (),
) -> DataDirectory:
    """Lock the directory for as long as the stack lasts. Raises `CannotStart`.

    Servers whose supervisor was killed stop in order, and are waited for.

    Args:
        shared: The lock of the server that this one succeeds.
        control: Where a supervisor takes commands; None for a shard whose first one this supervisor
            has already, so that whoever has this one is about to end.
        others: The directories of further shards, whose servers have had the same supervisor.
    """
    until = time.monotonic() + _LEAVING_S
    is_abandoned = shared is None and control is not None and _is_abandoned(control)
    while True:
        is_late = time.monotonic() > until
        # The others may still have the address of the server.
        if is_late or not (is_abandoned and any(map(_is_taken, others))):
            try:
                return stack.enter_context(own_directory(path, shared))
            except DirectoryTaken:
                if is_late or not (control is None or _is_abandoned(control)):
                    raise
        await asyncio.sleep(_LOOK_S)


def _is_abandoned(control: Path) -> bool:
    """Return whether a supervisor had this socket, and is dead."""
    with socket_for_commands() as client:
        try:
            client.connect(str(control))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _is_taken(path: Path) -> bool:
    """Return whether a server has the lock of this directory."""
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def is_same(file: int, path: Path) -> bool:
    """Return whether an open file is still the one at this path."""
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
        raise CannotStart(f"data {path}: {error.strerror}; {_CHOOSE}") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise DirectoryTaken(
            f"the data directory {str(path)!r} belongs to another running server: stop it, or "
            "choose another one with --data"
        ) from None
    return lock


def _share(path: Path, lock: int) -> int:
    if not is_same(lock, path / _LOCK):
        raise CannotStart(
            f"data {path}: the running server has another data directory: stop it, and start this "
            "one instead of a restart"
        )
    return lock


def _check_link(path: Path) -> None:
    """The owner of a link can point it elsewhere at any time."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
        raise CannotStart(
            f"data {path}: is a link that belongs to another user (uid {found.st_uid}): set data "
            f"to the directory itself, {path.resolve()}"
        )


def _check_store(path: Path) -> None:
    """Refuse a store directory that another user created."""
    try:
        _check_link(path)
        found = path.stat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotStart(f"data {path}: {error.strerror}; {_CHOOSE}") from error
    _check(path, found)


def _check(path: Path, found: os.stat_result) -> None:
    """Refuse a path that other users can write to: they could read tokens or replace the store."""
    quoted = shlex.quote(str(path))
    if found.st_uid != os.geteuid():
        raise CannotStart(
            f"data {path}: belongs to another user (uid {found.st_uid}), who could change what the "
            f"server stores: change its owner with: chown -R {os.geteuid()} {quoted}, or set data"
            " to another directory, such as one inside it"
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CannotStart(
            f"data {path}: other users can write there and change what the server stores: "
            f"prevent it with: chmod 700 {quoted}"
        )
