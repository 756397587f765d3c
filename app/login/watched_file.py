"""A file that is read again when it has changed."""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from holdfast.login.failures import Unusable

log = logging.getLogger(__name__)

_LARGEST = 16 * 1024 * 1024

Value = TypeVar("Value")
# The properties by which a change shows: device, inode, size and time.
_Stamp = tuple[int, int, int, int]


class WatchedFile(Generic[Value]):
    """The value of a file's latest usable version."""

    def __init__(self, path: Path, read: Callable[[bytes], Value]) -> None:
        """Raises `Unusable`."""
        self._path = path
        self._read = read
        # Why the file as it is now is not in use; empty if it is.
        self.fault = ""
        self.value, self._stamp = self._load()

    def refresh(self) -> bool:
        """Read the file again if it has changed; return whether there is a new value.

        A file that has become unusable is logged, and the last value stays.
        """
        if _stamp(self._path) == self._stamp:
            return False
        try:
            self.value, self._stamp = self._load()
        except Unusable as error:
            self.fault = str(error)
            log.error("%s; correct it: until then, what was read before stays in force", error)
            self._stamp = _stamp(self._path)
            return False
        self.fault = ""
        log.info("%s was read again", self._path)
        return True

    def _load(self) -> tuple[Value, _Stamp | None]:
        # Before reading: a change in between is then seen the next time.
        stamp = _stamp(self._path)
        return read_file(self._path, self._read), stamp


def read_file(path: Path, read: Callable[[bytes], Value]) -> Value:
    """Return what `read` makes of the file. Raises `Unusable`, which names the file."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from None
    if len(text) > _LARGEST:
        raise Unusable(f"{path}: larger than {_LARGEST} bytes")
    try:
        return read(text)
    except Unusable as error:
        raise Unusable(f"{path}: {error}") from None


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
