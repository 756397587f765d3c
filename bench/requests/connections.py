"""Cheap connections: one thread, blocking sockets, no parsing except JSON."""

import json
import socket
import struct
from collections.abc import Sequence
from typing import Any, Protocol
from urllib.parse import urlsplit

Message = dict[str, Any]

_TIMEOUT_S = 20.0
_TEXT = 0x81
_MASKED = 0x80
# A mask of zeros leaves the bytes as they are.
_MASK = bytes(4)


class Connection(Protocol):
    """Carries arrays of messages, one at a time in each direction."""

    def send(self, messages: Sequence[Message]) -> None: ...

    def receive(self) -> list[Message]: ...

    def has_more(self) -> bool:
        """Return whether the next messages, or a part of them, have arrived."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class _Stream:
    def __init__(self, url: str) -> None:
        self.address = urlsplit(url)
        self._socket = socket.create_connection(
            (self.address.hostname, self.address.port), _TIMEOUT_S
        )
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""

    def fileno(self) -> int:
        return self._socket.fileno()

    def has_more(self) -> bool:
        return bool(self._read)

    def close(self) -> None:
        self._socket.close()

    def _until(self, end: bytes) -> bytes:
        while (at := self._read.find(end)) < 0:
            self._more()
        found, self._read = self._read[:at], self._read[at + len(end) :]
        return found

    def _exactly(self, count: int) -> bytes:
        while len(self._read) < count:
            self._more()
        found, self._read = self._read[:count], self._read[count:]
        return found

    def _more(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            raise ConnectionError("the server has closed the connection")
        self._read += data


class Post(_Stream):
    """HTTP: sends POSTs and receives their responses."""

    def __init__(self, url: str, cookie: str = "") -> None:
        super().__init__(url)
        self.cookie = cookie

    def send(self, messages: Sequence[Message]) -> None:
        body = json.dumps(messages).encode()
        path, place, cookie = self.address.path, self.address.netloc, self.cookie
        head = f"POST {path} HTTP/1.1\r\nHost: {place}\r\nContent-Type: application/json\r\n"
        head += f"Cookie: {cookie}\r\n" if cookie else ""
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def receive(self) -> list[Message]:
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")[1:]
        pairs = [line.partition(": ") for line in lines]
        fields = {name.lower(): value for name, _, value in pairs}
        self.cookie = self.cookie or fields.get("set-cookie", "").partition(";")[0]
        is_chunked = fields.get("transfer-encoding") == "chunked"
        body = self._chunks() if is_chunked else self._exactly(int(fields["content-length"]))
        return _messages(body)

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._until(b"\r\n"), 16):
            body += self._exactly(size)
            self._until(b"\r\n")
        self._until(b"\r\n")
        return body


class Socket(_Stream):
    """A WebSocket: sends and receives text frames."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        path, place = self.address.path, self.address.netloc
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {place}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        self._until(b"\r\n\r\n")

    def send(self, messages: Sequence[Message]) -> None:
        body = json.dumps(messages).encode()
        size = len(body)
        is_short = size < 126
        head = struct.pack("!BB", _TEXT, _MASKED | size if is_short else _MASKED | 126)
        self._socket.sendall(head + (b"" if is_short else struct.pack("!H", size)) + _MASK + body)

    def receive(self) -> list[Message]:
        kind, size = self._exactly(2)
        if size >= 126:
            size = int.from_bytes(self._exactly(2 if size == 126 else 8))
        body = self._exactly(size)
        return _messages(body) if kind == _TEXT else self.receive()


def _messages(body: bytes) -> list[Message]:
    messages: list[Message] = json.loads(body)
    return messages
