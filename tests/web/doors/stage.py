"""Two servers in this process, of which the second succeeds the first; clients use real sockets."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.settings import Settings
from holdfast.web.answering.heads import Heads
from holdfast.web.doors.adoption import adopt
from holdfast.web.doors.leaving import HandedOver, Leaving
from tests.web.rig import Response, Rig, read_responses

# Longer than anything here takes.
LIMIT_S = 60.0
# Sockets need no session.
PATIENT = Settings(ws_session_timeout=3600000)


class House:
    """A server that listens."""

    def __init__(self, rig: Rig, listening: socket.socket) -> None:
        self.rig = rig
        self.heads = Heads()
        self.listener = rig._listener
        self.leaving = Leaving(rig.endpoint, rig.sockets, {"main": self.listener})
        self.listening = listening

    async def open(self, tls: ssl.SSLContext | None = None) -> None:
        self.listener._address = replace(self.listener._address, tls=tls)
        await self.listener.open([self.listening.dup()], self.rig.endpoint, self.heads)

    @property
    def port(self) -> int:
        port: int = self.listening.getsockname()[1]
        return port


class Talk:
    """A client's connection, byte for byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.data = b""
        self.is_websocket = False
        self.client_id = ""

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def response(self) -> Response:
        """The next response."""
        async with asyncio.timeout(LIMIT_S):
            while not (found := read_responses(self.data, is_closed=False)).responses:
                more = await self.reader.read(65536)
                assert more, f"the connection ended after {self.data!r}"
                self.data += more
        first, *_ = found.responses
        end = self.data.index(b"\r\n\r\n") + 4 + len(first.body)
        self.data = self.data[end:]
        return first

    async def until(self, part: bytes) -> bytes:
        """What comes up to these bytes."""
        # There may be many small pieces: each byte is looked at once.
        data, since = bytearray(self.data), 0
        try:
            async with asyncio.timeout(LIMIT_S):
                while (begin := data.find(part, since)) < 0:
                    since = max(0, len(data) - len(part) + 1)
                    more = await self.reader.read(65536)
                    assert more, f"the connection ended after {bytes(data)!r}"
                    data += more
            end = begin + len(part)
            found = bytes(data[:end])
            del data[:end]
        finally:
            self.data = bytes(data)
        return found

    async def ask(self, data: bytes) -> Response:
        self.send(data)
        return await self.response()

    async def is_closed(self) -> bool:
        """Whether the server closes the connection, sooner or later."""
        async with asyncio.timeout(LIMIT_S):
            try:
                self.data += await self.reader.read()
            except ConnectionError:
                pass
        return True


@dataclass
class Stage:
    """The server that leaves, and its successor."""

    old: House
    new: House
    tls: ssl.SSLContext | None = None
    talks: list[Talk] = field(default_factory=list)
    # How long the old server waits for what has begun.
    patience_s: float = LIMIT_S
    last_limit_s: float = LIMIT_S

    async def connect(self, **options: Any) -> Talk:
        place = {"host": "127.0.0.1", "port": self.old.port, **options}
        reader, writer = await asyncio.open_connection(**place)
        self.talks.append(Talk(reader, writer))
        return self.talks[-1]

    async def end_talks(self) -> None:
        """Close the clients' connections."""
        for talk in self.talks:
            talk.writer.transport.abort()
        waiting = [talk.writer.wait_closed() for talk in self.talks]
        await asyncio.gather(*waiting, return_exceptions=True)

    async def new_serves(self) -> None:
        """Open the successor's listener."""
        await self.new.open(self.tls)

    async def leave(self) -> None:
        """Let the old server leave, up to the point of no return."""
        await self.old.leaving.pause(self.patience_s)
        await self.old.leaving.settle(self.patience_s)
        self.old.leaving.be_still()

    async def hand_over(self, limit_s: float = LIMIT_S) -> tuple[HandedOver, int]:
        """Hand all connections over; returns what both servers say."""
        ours, theirs = door()
        async with asyncio.timeout(3 * LIMIT_S):
            return await asyncio.gather(
                self.old.leaving.hand_over(ours, limit_s=limit_s, last_limit_s=self.last_limit_s),
                adopt(theirs, {"main": self.new.listener}),
            )


def door() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@asynccontextmanager
async def stage(tls: ssl.SSLContext | None = None, **options: Any) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=4096))
        houses = [
            House(await stack.enter_async_context(Rig(**options)), listening) for _ in range(2)
        ]
        found = Stage(houses[0], houses[1], tls)
        await found.old.open(tls)
        stack.push_async_callback(found.end_talks)
        yield found
