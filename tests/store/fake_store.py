"""The other end of a store link; the test decides about every byte."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

from hiredis import Reader

GREETING = b"%3\r\n+server\r\n+valkey\r\n+version\r\n+9.1.2\r\n+role\r\n+master\r\n"


class FakeStore(asyncio.Protocol):
    """One connection: greets, then gives the answers that the test has prepared."""

    def __init__(self, server: "FakeServer") -> None:
        self.server = server
        self.reader = Reader()
        self.is_greeted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.server.connections.append(self)

    def data_received(self, data: bytes) -> None:
        self.reader.feed(data)
        commands = []
        while (command := self.reader.gets()) is not False:
            commands.append(b" ".join(command).decode())
        if self.is_greeted:
            self.server.heard.append(commands)
            for _ in commands:
                if self.server.answers:
                    self.transport.write(self.server.answers.pop(0))
        else:
            self.is_greeted = commands[-1] == "PING"
            for command in commands:
                is_hello = command.startswith("HELLO")
                self.transport.write(self.server.greeting if is_hello else b"+OK\r\n")


@dataclass
class FakeServer:
    """All connections, and the commands after their greetings, by write."""

    url: str = ""
    greeting: bytes = GREETING
    connections: list[FakeStore] = field(default_factory=list)
    heard: list[list[str]] = field(default_factory=list)
    # One for each command, as long as there are any.
    answers: list[bytes] = field(default_factory=list)

    def say(self, data: bytes) -> None:
        """Send it on the newest connection."""
        self.connections[-1].transport.write(data)


@asynccontextmanager
async def fake_store(
    greeting: bytes = GREETING, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FakeServer]:
    fake = FakeServer(greeting=greeting)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: FakeStore(fake), "127.0.0.1", 0, ssl=tls)
    scheme = "redis" if tls is None else "rediss"
    fake.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield fake
    finally:
        server.close()
        for connection in fake.connections:
            connection.transport.abort()
