"""A Unix socket's place: taken from nobody who listens there, and given up at the end."""

import errno
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path


def listen_at(path: Path, backlog: int) -> socket.socket:
    """A socket that listens there, in the place of a dead one; raises `OSError`."""
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
    """Whoever listens there is not pushed aside without a word; raises `OSError`."""
    with socket.socket(socket.AF_UNIX) as client:
        client.setblocking(False)
        try:
            client.connect(str(path))
        except BlockingIOError:
            # So many knock that it cannot answer at once.
            pass
        except OSError:
            # Nobody, or nothing to listen on: whatever is wrong there shows when it is used.
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


class Place:
    """The file of a socket that listens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = path.stat().st_ino

    def give_up(self) -> None:
        """Leave nothing behind; what somebody else has put there since is theirs."""
        try:
            if self._path.stat().st_ino == self._number:
                self._path.unlink()
        except OSError:
            # It is gone already, or not ours to remove: a server that starts here can do with it.
            return
