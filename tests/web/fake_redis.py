"""As much of Redis as a connection to it needs; it can go away and come back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FakeRedis:
    """Answers HELLO, CLIENT, INFO and PING; keeps silent or breaks off when told."""

    def __init__(self, version: str = "7.4.0") -> None:
        self.version = version
        self.is_silent = False
        self.password: str | None = None
        self.port = 0
        self.commands: list[str] = []
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Nobody is there any more, and those who were connected notice."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while command := await self._read(reader):
                self.commands.append(command[0].upper())
                if not self.is_silent:
                    writer.write(self._answer(command))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> list[str]:
        head = await reader.readline()
        words = []
        for _ in range(int(head[1:] or 0)):
            size = int((await reader.readline())[1:])
            words.append((await reader.readexactly(size + 2))[:-2].decode())
        return words

    def _answer(self, command: list[str]) -> bytes:
        name = command[0].upper()
        if self.password is not None and self.password not in command and name != "PING":
            return b"-NOAUTH Authentication required.\r\n"
        if name == "HELLO":
            return b"%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"
        if name == "PING":
            return b"+PONG\r\n"
        if name == "INFO":
            info = f"# Server\r\nredis_version:{self.version}\r\n".encode()
            return b"$%d\r\n%b\r\n" % (len(info), info)
        return b"+OK\r\n"


@asynccontextmanager
async def fake_redis(version: str = "7.4.0") -> AsyncIterator[FakeRedis]:
    redis = FakeRedis(version)
    await redis.open()
    try:
        yield redis
    finally:
        await redis.close()
