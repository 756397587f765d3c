"""Creates and removes the server's Unix socket, without disturbing another server's."""

import errno
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path


def listen_at(path: Path, backlog: int) -> socket.socket:
    """Listen at the path, replacing a dead socket; raises `OSError`."""
    _check_free(path)
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.stat().st_mode):
            path.unlink()
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(path))
        listening.listen(backlog)
    except OSError:
        listening.close()
        raise
    return listening


def _check_free(path: Path) -> None:
    """Raise `OSError` if another process listens at the path."""
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        try:
            client.connect(str(path))
        except BlockingIOError:
            # The backlog is full, so somebody listens.
            pass
        except OSError:
            # Nobody listens, or there is no socket; other errors appear when it is created.
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


class SocketFile:
    """The file of a listening socket."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = path.stat().st_ino

    def give_up(self) -> None:
        """Remove the file, unless another process has replaced it."""
        try:
            if self._path.stat().st_ino == self._number:
                self._path.unlink()
        except OSError:
            # It is gone, or may not be removed: the next server to start here can handle both.
            return
