"""The embedded store's files in the data directory, and the locks on them."""

import fcntl
import os
import stat
import tempfile
from pathlib import Path
from urllib.parse import quote

from holdfast.store.links.connection import StoreUnavailable

# Valkey's directory within the data directory.
STORE = "store"
# A socket path may have 104 to 108 bytes, depending on the system.
_LONGEST_PATH = 100
_LONGEST_LOG = 1024**2
_TAIL = 64 * 1024
_KEEPER = "keeper.lock"


class StoreTaken(StoreUnavailable):
    """Another process manages the store."""


class Home:
    """DATA/store with Valkey's files, and DATA/store.sock.

    The server that manages the store holds `keeper.lock`. Valkey inherits `valkey.lock`
    unknowingly: while it runs, no second Valkey is started.
    """

    def __init__(self, data: Path) -> None:
        data = data.resolve()
        self.directory = data / STORE
        self.log = self.directory / "valkey.log"
        self.pid_file = self.directory / "valkey.pid"
        # What Valkey writes for a backup, which takes it away.
        self.snapshot = self.directory / "dump.rdb"
        # What Valkey begins with, unless it keeps nothing on the disk.
        self.files = self.directory / "appendonlydir"
        self._socket = data / "store.sock"
        self._claim: int | None = None
        self._log_begin = 0

    # Locks

    def claim(self) -> None:
        """Take the lock of the managing server."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._claim = self._lock(_KEEPER)
        except OSError as error:
            raise StoreUnavailable(f"{self.directory}: {error.strerror}") from error
        if self._claim is None:
            raise StoreTaken(
                f"{self.directory}: another server uses this store: stop it, or choose another "
                "data directory with --data"
            )

    def release(self) -> None:
        """Release the lock."""
        if self._claim is not None:
            os.close(self._claim)
            self._claim = None

    def is_there(self) -> bool:
        """Return whether the locked files are still in place."""
        if self._claim is None:
            return False
        try:
            found = (self.directory / _KEEPER).stat()
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._claim))

    def lock(self) -> int | None:
        """Return the lock for a new Valkey to inherit, or None while another one runs."""
        return self._lock("valkey.lock")

    def is_held(self) -> bool:
        """Return whether a Valkey, or its child that rewrites a file, is running."""
        lock = self.lock()
        if lock is not None:
            os.close(lock)
        return lock is None

    def _lock(self, name: str) -> int | None:
        lock = os.open(self.directory / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            if isinstance(error, BlockingIOError):
                return None
            raise
        return lock

    # The socket

    @property
    def socket(self) -> Path:
        """The socket: DATA/store.sock, or the target of that link if the path is too long."""
        if self._socket.is_symlink():
            return Path(os.readlink(self._socket))
        return self._socket

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self.socket))}"

    def close_to_others(self) -> None:
        """Let only this user read the files that an earlier release has left."""
        for file in self.files.glob("*"):
            file.chmod(0o600)

    def drop_snapshot(self) -> None:
        """Remove the snapshot of a backup that was killed: a Valkey would begin with it."""
        self.snapshot.unlink(missing_ok=True)

    def prepare_socket(self) -> None:
        """Remove a dead Valkey's socket, and link to a shorter path if necessary."""
        self.pid_file.unlink(missing_ok=True)
        if len(os.fsencode(self._socket)) <= _LONGEST_PATH:
            self._socket.unlink(missing_ok=True)
        elif self._socket.is_symlink() and _is_private(self.socket.parent):
            self.socket.unlink(missing_ok=True)
        else:
            self._socket.unlink(missing_ok=True)
            self._socket.symlink_to(Path(tempfile.mkdtemp(prefix="holdfast-")) / "store.sock")

    def remove_socket(self) -> None:
        """Remove the socket and the link."""
        place = self.socket
        place.unlink(missing_ok=True)
        if place != self._socket:
            self._socket.unlink(missing_ok=True)
            if _is_private(place.parent) and not any(place.parent.iterdir()):
                place.parent.rmdir()

    def drop_link(self) -> bool:
        """Remove a link of an earlier run, for example in a copied directory."""
        if not self._socket.is_symlink():
            return False
        self._socket.unlink()
        return True

    # The log

    def open_log(self) -> int:
        """Open a new log file for a Valkey."""
        if self.log.exists() and self.log.stat().st_size > _LONGEST_LOG:
            self.log.unlink()
        log = os.open(self.log, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._log_begin = os.fstat(log).st_size
        return log

    def last_words(self) -> str:
        """Return the end of the newest Valkey log."""
        with self.log.open("rb") as log:
            log.seek(max(self._log_begin, self.log.stat().st_size - _TAIL))
            return log.read().decode("utf-8", "replace")


def _is_private(directory: Path) -> bool:
    try:
        found = directory.lstat()
    except OSError:
        return False
    is_closed = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return is_closed and found.st_uid == os.getuid()
