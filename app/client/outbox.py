"""Messages that wait on disk until the server has accepted them."""

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence

import orjson

from holdfast.client.errors import ClientError, OutboxFull, ReplyError
from holdfast.client.wire import Json, packed

# A write survives a crash of the program at once, and a crash of the machine after a while. One
# program at a time has the file.
_SETUP = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY AUTOINCREMENT, message BLOB);
"""
_USAGE = "SELECT count(*), ifnull(sum(length(message)), 0) FROM messages"
_FIRST = "SELECT number, message FROM messages ORDER BY number LIMIT ?"

OnRefused = Callable[[Json, ReplyError], None]


class Outbox:
    """A file of messages for `Client.post`; `len` says how many the server has not accepted."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_count: int = 10_000,
        max_bytes: int = 64 * 1024 * 1024,
        on_refused: OnRefused | None = None,
    ) -> None:
        """Make an outbox. The client opens its file when it is entered, and creates a missing one.

        Args:
            path: Where the file is, in a folder that exists.
            max_count: Messages that may wait, ...
            max_bytes: ... and their bytes. With either, `post` raises `OutboxFull`.
            on_refused: Called with a message that the server refuses for good, and the error. The
                message is removed, and an exception is logged.
        """
        self.path = os.fspath(path)
        self.on_refused = on_refused
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._count = self._bytes = 0
        self._database: sqlite3.Connection | None = None

    def __len__(self) -> int:
        return self._count

    def open(self) -> None:
        """Open the file. Raises `ClientError` if another program has it, or it cannot be read."""
        try:
            # Without waiting: a process that has the file keeps it.
            database = sqlite3.connect(self.path, timeout=0.0, isolation_level=None)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        try:
            database.executescript(_SETUP)
            [(self._count, self._bytes)] = database.execute(_USAGE)
        except sqlite3.Error as error:
            database.close()
            raise self._failed(error) from error
        self._database = database

    def close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def add(self, message: Json) -> None:
        """Keep a message behind all others. Raises `OutboxFull`."""
        body = packed(message)
        if self._count >= self._max_count:
            raise OutboxFull(
                f"the outbox {self.path} has {self._max_count} messages, its maximum: wait for the "
                "server, or raise max_count"
            )
        if self._bytes + len(body) > self._max_bytes:
            raise OutboxFull(
                f"the outbox {self.path} has no room below {self._max_bytes} bytes: wait for the "
                "server, or raise max_bytes"
            )
        self._change("INSERT INTO messages (message) VALUES (?)", [(body,)])
        self._count += 1
        self._bytes += len(body)

    def first(self, count: int) -> list[tuple[int, Json]]:
        """Return the first messages, with their numbers."""
        rows = self._opened().execute(_FIRST, (count,))
        return [(number, orjson.loads(body)) for number, body in rows]

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget messages that the server has accepted or refused."""
        self._change("DELETE FROM messages WHERE number = ?", [(number,) for number in numbers])
        [(self._count, self._bytes)] = self._opened().execute(_USAGE)

    def _change(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        database = self._opened()
        try:
            database.execute("BEGIN")
            database.executemany(statement, rows)
            database.execute("COMMIT")
        except sqlite3.Error as error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> ClientError:
        is_taken = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        reason = "another client has it" if is_taken else error
        return ClientError(f"the outbox {self.path} cannot be used: {reason}")

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            raise ClientError(f"the outbox {self.path} is not open")
        return self._database
