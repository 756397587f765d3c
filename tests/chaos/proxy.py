"""A TCP proxy whose connections can be as bad as real ones: slow, silent, cut, deaf on one side."""

import asyncio
import socket
import struct
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

_CHUNK = 65536
# Bytes that only published messages contain.
_EVENT = b'"data":'


class Way(Enum):
    """The directions of bytes."""

    UP = "to the server"
    DOWN = "to the client"


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


Upstream = Address | Path


class _Link:
    """One client's connection and ours to the server behind it."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.writers = {Way.UP: server, Way.DOWN: client}
        # A byte was lost, so that nothing valid can follow on this connection.
        self.is_spoilt = False
        # Its next response with published messages is dropped.
        self.loses_events = False

    def reset(self) -> None:
        for writer in self.writers.values():
            reset(writer)


class Proxy:
    """A proxy between clients and one server; methods begin and end faults of its connections.

    Lost bytes do not come back: their connections are reset when the fault ends.
    """

    def __init__(self, upstream: Upstream, at: str = "127.0.0.1") -> None:
        self.upstream = upstream
        self.at, self.port = at, 0
        self.latency_s = 0.0
        self.slow_close_s = 0.0
        self.bytes_per_s: float | None = None
        self.eaten = 0
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._swallowed: frozenset[Way] = frozenset()
        self._to_eat = 0
        self._is_refusing = False

    @property
    def url(self) -> str:
        return f"http://{self.at}:{self.port}"

    @property
    def connections(self) -> int:
        return len(self._links)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.at, self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    # Faults

    def reset(self) -> None:
        """Cut all connections as a crashed peer would."""
        for link in self._links:
            link.reset()

    def refuse(self) -> None:
        """Cut new connections at once."""
        self._is_refusing = True

    def eat_responses(self, count: int = 1) -> None:
        """Drop so many responses after the server wrote them, and cut their connections."""
        self._to_eat += count

    def eat_events(self) -> None:
        """Drop the next response with published messages on every current connection."""
        for link in self._links:
            link.loses_events = True

    def black_hole(self) -> None:
        """Lose all bytes, as with a pulled cable: each side believes that the other is there."""
        self._swallowed = frozenset(Way)

    def one_way(self, deaf: Way) -> None:
        """Lose all bytes in this direction."""
        self._swallowed = frozenset({deaf})

    def heal(self) -> None:
        """End all faults."""
        self.latency_s = self.slow_close_s = 0.0
        self.bytes_per_s = None
        self._swallowed = frozenset()
        self._to_eat = 0
        self._is_refusing = False
        for link in self._links:
            link.loses_events = False
            if link.is_spoilt:
                link.reset()

    # Connections

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._connect(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            reset(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            return
        from_server, to_server = await self._open_upstream()
        link = _Link(writer, to_server)
        self._links.add(link)
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(link, Way.UP, reader))
                pumps.create_task(self._pump(link, Way.DOWN, from_server))
        finally:
            self._links.discard(link)
            reset(to_server)

    async def _open_upstream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self.upstream, Path):
            return await asyncio.open_unix_connection(self.upstream)
        return await asyncio.open_connection(self.upstream.host, self.upstream.port)

    async def _pump(self, link: _Link, way: Way, reader: asyncio.StreamReader) -> None:
        """Forward bytes until the sender ends its side, then end the receiver's."""
        writer = link.writers[way]
        try:
            while data := await reader.read(_CHUNK):
                await self._pass_on(link, way, data)
            await asyncio.sleep(self.slow_close_s)
            if not self._swallowed and not writer.is_closing():
                writer.write_eof()
        except OSError:
            link.reset()

    async def _pass_on(self, link: _Link, way: Way, data: bytes) -> None:
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        if way is Way.DOWN and (self._to_eat or (link.loses_events and _EVENT in data)):
            self._to_eat = max(0, self._to_eat - 1)
            self.eaten += 1
            link.reset()
            return
        if way in self._swallowed or link.is_spoilt:
            link.is_spoilt = True
            return
        for piece, pause_s in self._pieces(data):
            link.writers[way].write(piece)
            await link.writers[way].drain()
            await asyncio.sleep(pause_s)

    def _pieces(self, data: bytes) -> list[tuple[bytes, float]]:
        """The bytes as they come, or limited to a rate, in pieces twenty times a second."""
        if self.bytes_per_s is None:
            return [(data, 0.0)]
        size = max(1, int(self.bytes_per_s / 20))
        pieces = [data[start : start + size] for start in range(0, len(data), size)]
        return [(piece, len(piece) / self.bytes_per_s) for piece in pieces]


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST, so that the other side fails instead of ending."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    if connection is not None and connection.family != socket.AF_UNIX:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
    writer.transport.abort()
