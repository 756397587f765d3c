"""Speaks Bayeux over simulated connections: by long-polling, or over a WebSocket."""

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import orjson

Message = dict[str, Any]
_HEAD = (
    b"%s %s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\n"
    b"%sContent-Length: %d\r\n\r\n"
)
_UPGRADE = (
    b"GET %s HTTP/1.1\r\nHost: %s:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2ltdWxhdGVkIGNsaWVudA==\r\n%s\r\n"
)
_BEARER = b"Authorization: Bearer %s\r\n"
_COOKIE = re.compile(rb"Set-Cookie: (BAYEUX_BROWSER=[^;]*)")
_ERROR = re.compile(rb'"error":"([^"]*)"')
# What no other server does either: it is one of a client's own limits.
_TOO_MANY = ":requests_exceeded"
_CONNECT_S = 2.0
_OK, _SWITCHING = 200, 101
# Of frames: their first bytes, the size that two more bytes follow, and the mask of clients.
_TEXT, _PING, _PONG = 0x81, 0x89, 0x8A
_SHORT, _MASKED, _MASK = 126, 0x80, bytes(4)


class Lost(Exception):
    """No answer arrived, or one that says nothing about the messages: they may be in force."""

    # How long before it asked the client's connection had ended, which it had kept.
    ended_before_s = 0.0


class Denied(Exception):
    """The server refused the message."""

    def __init__(self, reply: Message) -> None:
        # A service says it with the data of its answer.
        super().__init__(str(reply.get("error") or (reply.get("data") or {}).get("code", "")))
        self.advice: Message = reply.get("advice") or {}

    @property
    def is_elsewhere(self) -> bool:
        """Whether another server may be able to do it."""
        said = str(self)
        return said.startswith("503") and not said.endswith(_TOO_MANY)

    @property
    def ends_session(self) -> bool:
        """Whether the client needs another session."""
        reconnect = self.advice.get("reconnect")
        return reconnect in ("handshake", "none") or str(self).startswith("402")


def ignore(_: Message) -> None:
    """Nobody wants to know of a message before the answer is complete."""


class _Reader(asyncio.StreamReader):
    """Knows when its connection has ended, by the clock of the client."""

    ended_at: float | None = None

    def feed_eof(self) -> None:
        self._end()
        super().feed_eof()

    def set_exception(self, exc: Exception) -> None:
        self._end()
        super().set_exception(exc)

    def _end(self) -> None:
        if self.ended_at is None:
            self.ended_at = asyncio.get_running_loop().time()


class Talker:
    """One connection to one of several doors; after a failure, the next one is tried.

    Requests wait for each other.
    """

    connection_type = "long-polling"

    def __init__(self, doors: Sequence[tuple[str, int]], path: str = "/cometd") -> None:
        self._doors = doors
        self._path = path.encode()
        # Decided by the process that asks.
        self._tries: int | None = None
        # Of the browser that the connection belongs to.
        self._cookies: list[bytes] = []
        # The token that each request shows; the empty text without one.
        self.token = ""
        self._reader: _Reader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._asking = asyncio.Lock()

    @property
    def door(self) -> tuple[str, int]:
        """Where the next request goes."""
        if self._tries is None:
            self._tries = random.randrange(len(self._doors))
        return self._doors[self._tries % len(self._doors)]

    @property
    def place(self) -> tuple[str, int] | None:
        """The client's end of the connection, if there is one."""
        return None if self._writer is None else self._writer.get_extra_info("sockname")

    def beside(self) -> "Talker":
        """Return another connection of the same browser, or this one if it carries everything."""
        other = Talker(self._doors, self._path.decode())
        other._cookies = self._cookies
        return other

    async def ask(
        self,
        messages: Sequence[Message],
        *,
        limit_s: float,
        hear: Callable[[Message], None] = ignore,
    ) -> list[Message]:
        """Send a request; returns the messages of the answer. Raises `Lost`.

        Calls `hear` with each message as it arrives.
        """
        ended_before_s = self._ended_before_s()
        try:
            async with asyncio.timeout(limit_s):
                return await self._ask(messages, hear)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.hang_up()
            lost = Lost(type(error).__name__)
            lost.ended_before_s = ended_before_s
            raise lost from error

    async def request(
        self, method: str, path: str, token: str, body: Message | None, *, limit_s: float
    ) -> tuple[int, Message]:
        """Send a request with a token; returns the status and the answer. Raises `Lost`."""
        headers = _BEARER % token.encode()
        sent = b"" if body is None else orjson.dumps(body)
        try:
            async with asyncio.timeout(limit_s), self._asking:
                status, answer = await self._exchange(method.encode(), path.encode(), headers, sent)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.hang_up()
            raise Lost(type(error).__name__) from error
        return status, orjson.loads(answer or b"{}")

    def _shown(self) -> bytes:
        return _BEARER % self.token.encode() if self.token else b""

    def _ended_before_s(self) -> float:
        """Return for how long the kept connection has been at its end, if it is."""
        ended_at = None if self._reader is None else self._reader.ended_at
        return 0.0 if ended_at is None else asyncio.get_running_loop().time() - ended_at

    async def _ask(
        self, messages: Sequence[Message], hear: Callable[[Message], None]
    ) -> list[Message]:
        # Whoever lost its session begins another one while a request waits on this connection.
        async with self._asking:
            return await self._ask_alone(messages, hear)

    async def _ask_alone(
        self, messages: Sequence[Message], hear: Callable[[Message], None]
    ) -> list[Message]:
        headers, body = b"".join(self._cookies) + self._shown(), orjson.dumps(messages)
        status, answer = await self._exchange(b"POST", self._path, headers, body)
        if status != _OK:
            raise self._lost_by(status, answer)
        found: list[Message] = orjson.loads(answer)
        for each in found:
            hear(each)
        return found

    async def _exchange(
        self, method: bytes, path: bytes, headers: bytes, body: bytes
    ) -> tuple[int, bytes]:
        """Send a request; returns the status and the body of its answer."""
        reader, writer, place = await self._connection()
        where = method, path, place[0].encode(), place[1]
        writer.write(_HEAD % (*where, headers, len(body)) + body)
        told, status = await self._head_of_answer(reader)
        length = int(told.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
        answer = await reader.readexactly(length)
        if b"connection: close" in told:
            self._close()
        return status, answer

    async def _connection(
        self,
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, tuple[str, int]]:
        """Return the connection, and the door that it leads to."""
        place = self.door
        if self._reader is None or self._writer is None:
            async with asyncio.timeout(_CONNECT_S):
                self._reader, self._writer = await _open_connection(*place)
        return self._reader, self._writer, place

    async def _head_of_answer(self, reader: asyncio.StreamReader) -> tuple[bytes, int]:
        """Read the head of an answer; returns it in lower case, and the status."""
        raw = await reader.readuntil(b"\r\n\r\n")
        if (found := _COOKIE.search(raw)) is not None:
            self._cookies[:] = [b"Cookie: %s\r\n" % found[1]]
        return raw.lower(), int(raw.split(b" ", 2)[1])

    def _lost_by(self, status: int, answer: bytes = b"") -> Lost:
        """Hang up; returns what to raise if the answer has another status."""
        self.hang_up()
        error = _ERROR.search(answer)
        return Lost(f"status {status} {error[1].decode() if error else ''}".rstrip())

    def hang_up(self) -> None:
        """Close the connection; the next request goes to the next door."""
        self._tries = (self._tries or 0) + 1
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None


class SocketTalker(Talker):
    """The same with a WebSocket: any number of requests at a time, and events between them."""

    connection_type = "websocket"

    def __init__(self, doors: Sequence[tuple[str, int]]) -> None:
        super().__init__(doors)
        self._opening = asyncio.Lock()
        self._asked = 0
        # Of requests without an answer, by the ids of their messages.
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._hear: Callable[[Message], None] = ignore

    def beside(self) -> Talker:
        return self

    async def _ask(
        self, messages: Sequence[Message], hear: Callable[[Message], None]
    ) -> list[Message]:
        async with self._opening:
            writer = self._writer or await self._open()
        self._hear = hear
        asked = [self._numbered(each) for each in messages]
        loop = asyncio.get_running_loop()
        answers = {each["id"]: loop.create_future() for each in asked}
        self._waiting.update(answers)
        writer.write(_frame(_TEXT, orjson.dumps(asked)))
        try:
            return [await each for each in answers.values()]
        finally:
            for id, answer in answers.items():
                self._waiting.pop(id, None)
                if answer.done() and not answer.cancelled():
                    # If several are lost, nobody waits for the others.
                    answer.exception()

    def _numbered(self, message: Message) -> Message:
        self._asked += 1
        return {"id": f"ask{self._asked}", **message}

    async def _open(self) -> asyncio.StreamWriter:
        reader, writer, place = await self._connection()
        cookie = b"".join(self._cookies)
        writer.write(_UPGRADE % (self._path, place[0].encode(), place[1], cookie))
        _, status = await self._head_of_answer(reader)
        if status != _SWITCHING:
            raise self._lost_by(status)
        self._reading = asyncio.create_task(self._read(reader, writer))
        return writer

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read until the connection ends."""
        try:
            while True:
                for each in await self._next(reader, writer):
                    self._hear(each)
                    answer = self._waiting.get(each.get("id", ""))
                    if answer is not None and "successful" in each and not answer.done():
                        answer.set_result(each)
                        # Who asked learns it before anything that follows.
                        await asyncio.sleep(0)
        except (OSError, asyncio.IncompleteReadError) as error:
            if writer is self._writer:
                self._lose(error)

    async def _next(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> list[Message]:
        """Return the messages of the next frame that has some."""
        while True:
            kind, size = await reader.readexactly(2)
            if size >= _SHORT:
                size = int.from_bytes(await reader.readexactly(2 if size == _SHORT else 8))
            payload = await reader.readexactly(size)
            if kind == _TEXT:
                found: list[Message] = orjson.loads(payload)
                return found
            if kind != _PING:
                raise ConnectionResetError(f"closed: {payload!r}")
            writer.write(_frame(_PONG, payload))

    def _lose(self, error: Exception) -> None:
        """Let nobody wait for answers on a connection that is lost."""
        super().hang_up()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError(str(error)))

    def hang_up(self) -> None:
        self._lose(ConnectionResetError("the client hangs up"))

    def _close(self) -> None:
        super()._close()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None


async def _open_connection(host: str, port: int) -> tuple[_Reader, asyncio.StreamWriter]:
    """Do as asyncio, with a reader that knows when the connection ends."""
    loop, reader = asyncio.get_running_loop(), _Reader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _ = await loop.create_connection(lambda: protocol, host, port)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


def _frame(kind: int, payload: bytes) -> bytes:
    """Return a client's frame, whose mask changes nothing."""
    size = len(payload)
    if size < _SHORT:
        return bytes((kind, _MASKED | size)) + _MASK + payload
    return bytes((kind, _MASKED | _SHORT)) + size.to_bytes(2) + _MASK + payload


def reply_to(channel: str, messages: Sequence[Message]) -> Message:
    """Return the reply to the message on this channel. Raises `Denied`, or `Lost` without one."""
    for each in messages:
        if each["channel"] == channel and "successful" in each:
            if not each["successful"]:
                raise Denied(each)
            return each
    raise Lost("no reply")
