"""Sockets for attackers, and clients without manners."""

import base64
import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import orjson

TIMEOUT_S = 60.0
MIB = 1024 * 1024
BUSY = "503::server_busy"

HANDSHAKE = {
    "channel": "/meta/handshake",
    "version": "1.0",
    "supportedConnectionTypes": ["long-polling", "websocket"],
}
# Certificates of tests are signed by nobody.
TRUSTING = ssl.create_default_context()
TRUSTING.check_hostname = False
TRUSTING.verify_mode = ssl.CERT_NONE


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def messages(self) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = orjson.loads(self.body)
        return messages

    def error(self) -> str:
        """The error of the last message."""
        error: str = self.messages()[-1].get("error", "")
        return error


class Wire:
    """A connection to a server, byte by byte."""

    def __init__(
        self, url: str, *, receive_buffer: int | None = None, source: str | None = None
    ) -> None:
        """`source` is the address of the attacker, one of those of loopback."""
        address = urlsplit(url)
        self.socket = socket.socket()
        if source is not None:
            self.socket.bind((source, 0))
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT_S)
        self._read = b""
        try:
            self.socket.connect((address.hostname, address.port))
            if address.scheme == "https":
                self.socket = TRUSTING.wrap_socket(self.socket)
        except OSError:
            self.socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_until_refused(self, data: bytes) -> bool:
        """Whether the server cut the connection before it had read everything."""
        try:
            self.socket.sendall(data)
        except (ConnectionError, TimeoutError):
            return True
        return False

    def read(self, count: int) -> bytes:
        """So many bytes, or fewer if the connection ends."""
        while len(self._read) < count and self._receive():
            pass
        data, self._read = self._read[:count], self._read[count:]
        return data

    def read_line(self) -> bytes:
        while b"\r\n" not in self._read and self._receive():
            pass
        line, end, self._read = self._read.partition(b"\r\n")
        return line + end

    def read_to_the_end(self) -> bytes:
        while self._receive():
            pass
        data, self._read = self._read, b""
        return data

    def answer(self) -> Answer:
        """The next response."""
        line = self.read_line()
        assert line.startswith(b"HTTP/1."), f"no response: {line!r}"
        headers = {}
        while (header := self.read_line()) not in (b"\r\n", b""):
            name, _, value = header.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = self.read(int(headers.get("content-length", "0")))
        return Answer(int(line[9:12]), headers, body)

    def has_answer(self) -> bool:
        """Whether the server has sent anything yet."""
        return not self.is_closed(0.0) and bool(self._read)

    def has_heard(self, text: bytes) -> bool:
        """Whether the server has sent these bytes yet."""
        return not self.is_closed(0.01) and text in self._read

    def is_closed(self, within_s: float = TIMEOUT_S) -> bool:
        """Whether the server closes its side in this time; what it sends before is kept."""
        deadline = time.monotonic() + within_s
        self.socket.settimeout(0.01)
        try:
            while True:
                try:
                    if not self._receive():
                        return True
                except TimeoutError:
                    pass
                if (left_s := deadline - time.monotonic()) <= 0:
                    return False
                self.socket.settimeout(min(left_s, TIMEOUT_S))
        finally:
            self.socket.settimeout(TIMEOUT_S)

    def _receive(self) -> bool:
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            return False
        self._read += data
        return bool(data)


def request(
    body: bytes, headers: Mapping[str, str] | None = None, *, method: str = "POST /cometd"
) -> bytes:
    """A request with a body and these headers beside the necessary ones."""
    fields = {"Host": "holdfast.localhost", "Content-Length": str(len(body)), **(headers or {})}
    lines = [f"{method} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Person(Wire):
    """A well-behaved client: a session over long-polling, on one connection."""

    def __init__(self, url: str, *, receive_buffer: int | None = None, **handshake: Any) -> None:
        super().__init__(url, receive_buffer=receive_buffer)
        self.headers: dict[str, str] = {}
        answer = self._shake_hands({**HANDSHAKE, **handshake})
        assert answer.messages()[0]["successful"], answer.body
        self.client_id: str = answer.messages()[0]["clientId"]
        self.headers["Cookie"] = answer.headers["set-cookie"].partition(";")[0]

    def _shake_hands(self, handshake: Mapping[str, Any]) -> Answer:
        """Handshake; on a slow machine, a server may be busy and advise to try again."""
        deadline = time.monotonic() + TIMEOUT_S
        while (answer := self.ask(handshake)).messages()[0].get("error") == BUSY:
            assert time.monotonic() < deadline, answer.body
            time.sleep(answer.messages()[0]["advice"]["interval"] / 1000)
        return answer

    def message(self, channel: str, **fields: Any) -> dict[str, Any]:
        return {"channel": channel, "clientId": self.client_id, **fields}

    def connect_message(self, **fields: Any) -> dict[str, Any]:
        return self.message("/meta/connect", connectionType="long-polling", **fields)

    def say(self, *messages: Mapping[str, Any]) -> None:
        """Send without waiting for the answer."""
        self.send(request(orjson.dumps(messages), self.headers))

    def ask(self, *messages: Mapping[str, Any]) -> Answer:
        self.say(*messages)
        return self.answer()

    def subscribe(self, *channels: str) -> Answer:
        return self.ask(self.message("/meta/subscribe", subscription=list(channels)))

    def publish(self, channel: str, data: Any) -> Answer:
        return self.ask(self.message(channel, data=data))

    def connect(self, **fields: Any) -> Answer:
        return self.ask(self.connect_message(**fields))

    def hold(self) -> None:
        """A connect that the server keeps: the second one, as the first is answered at once."""
        self.connect()
        self.say(self.connect_message())


TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA


class SocketWire(Wire):
    """A WebSocket, frame by frame."""

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        receive_buffer: int | None = None,
        before: Callable[[Wire], object] = lambda wire: None,
    ) -> None:
        """`before` is called with the connection before its upgrade."""
        super().__init__(url, receive_buffer=receive_buffer)
        before(self)
        fields = {
            "Host": urlsplit(url).netloc,
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
            **(headers or {}),
        }
        lines = ["GET /cometd HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        self.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n")
        self.upgrade = self.answer()

    def cookie(self) -> str:
        return self.upgrade.headers["set-cookie"].partition(";")[0]

    def send_frame(
        self, payload: bytes, opcode: int = TEXT, *, is_final: bool = True, is_masked: bool = True
    ) -> None:
        self.send(frame(payload, opcode, is_final=is_final, is_masked=is_masked))

    def say(self, *messages: Mapping[str, Any]) -> None:
        self.send_frame(orjson.dumps(messages))

    def read_frame(self) -> tuple[int, bytes]:
        """Opcode and payload; a connection that ends is a close without a code."""
        head = self.read(2)
        if len(head) < 2:
            return CLOSE, b""
        size = head[1] & 0x7F
        if size > 125:
            width = 2 if size == 126 else 8
            size = int.from_bytes(self.read(width), "big")
        return head[0] & 0x0F, self.read(size)

    def hear(self) -> list[dict[str, Any]]:
        opcode, payload = self.read_frame()
        assert opcode == TEXT, (opcode, payload)
        messages: list[dict[str, Any]] = orjson.loads(payload)
        return messages

    def shake_hands(self, **handshake: Any) -> dict[str, Any]:
        """The reply to a handshake; a busy server is asked again, as it advises."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            self.say({**HANDSHAKE, **handshake})
            (reply,) = self.hear()
            if reply.get("error") != BUSY:
                return reply
            assert time.monotonic() < deadline, reply
            time.sleep(reply["advice"]["interval"] / 1000)

    def close_code(self) -> int | None:
        """The code with which the server closes, after any other frames."""
        while True:
            opcode, payload = self.read_frame()
            if opcode == CLOSE:
                return struct.unpack("!H", payload[:2])[0] if payload else None


class SocketPerson(SocketWire):
    """A well-behaved client over WebSocket."""

    def __init__(self, url: str, *, receive_buffer: int | None = None, **handshake: Any) -> None:
        super().__init__(url, receive_buffer=receive_buffer)
        self.client_id: str = self.shake_hands(**handshake)["clientId"]

    def message(self, channel: str, **fields: Any) -> dict[str, Any]:
        return {"channel": channel, "clientId": self.client_id, **fields}

    def ask(self, *messages: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.say(*messages)
        return self.hear()

    def connect_message(self, **fields: Any) -> dict[str, Any]:
        return self.message("/meta/connect", connectionType="websocket", **fields)

    def settle_in(self, *channels: str) -> None:
        """Subscribe, and have a connect held."""
        self.ask(self.message("/meta/subscribe", subscription=list(channels)))
        self.ask(self.connect_message())
        self.say(self.connect_message())


def frame(
    payload: bytes, opcode: int = TEXT, *, is_final: bool = True, is_masked: bool = True
) -> bytes:
    """A frame of a client."""
    first = opcode | (0x80 if is_final else 0)
    mask_bit = 0x80 if is_masked else 0
    if len(payload) < 126:
        head = struct.pack("!BB", first, mask_bit | len(payload))
    elif len(payload) < 65536:
        head = struct.pack("!BBH", first, mask_bit | 126, len(payload))
    else:
        head = struct.pack("!BBQ", first, mask_bit | 127, len(payload))
    # A mask of zeros changes nothing.
    return head + (b"\0\0\0\0" if is_masked else b"") + payload


@contextmanager
def many(count: int, url: str) -> Iterator[list[Wire]]:
    """That many connections."""
    wires: list[Wire] = []
    try:
        while len(wires) < count:
            wires.append(Wire(url))
        yield wires
    finally:
        for wire in wires:
            wire.close()
