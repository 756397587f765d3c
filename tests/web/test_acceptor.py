"""Connections are never accepted so fast that the descriptors reserved for others are used up."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import cast

import pytest
import uvloop

from holdfast.web.front.acceptor import Acceptor
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.http.addresses import listen_at

LIMIT = 16
# Fewer than are kept free for the store, files and child processes.
MOST_BEYOND = 60


class Guest(asyncio.Protocol):
    """A connection without requests."""

    def __init__(self, room: ConnectionLimit) -> None:
        self._room = room
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._room.leave(self)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def flood(clients: int) -> int:
    """The largest number of descriptors in use beyond the limit."""
    room, most = ConnectionLimit(LIMIT), 0
    with ExitStack() as stack:
        [listening] = listen_at(["127.0.0.1"], 0, clients)
        for _ in range(clients):
            stack.enter_context(socket.create_connection(listening.getsockname()))
        before = descriptors()
        acceptor = Acceptor(
            [listening], lambda: Guest(room), room, tls=None, handshake_timeout_s=5.0
        )
        async with asyncio.timeout(60):
            while room.turned_away < clients - LIMIT:
                await asyncio.sleep(0)
                most = max(most, descriptors() - before)
        acceptor.close()
    return most - LIMIT


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nothing to count them by")
async def test_a_flood_takes_few_descriptors_beyond_the_limit() -> None:
    assert await flood(400) <= MOST_BEYOND


class Host(Guest):
    """A connection in whose first moment something happens."""

    def __init__(self, room: ConnectionLimit, happens: Callable[[], object]) -> None:
        super().__init__(room)
        self._happens = happens
        self.is_made, self.is_lost = asyncio.Event(), asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._happens()
        self.is_made.set()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.is_lost.set()


async def first_moment(
    happens: Callable[[Acceptor, ConnectionLimit], object], *, stays: bool
) -> None:
    """Check that a connection is used, and closed, as any other."""
    room = ConnectionLimit(1)
    host = Host(room, lambda: happens(acceptor, room))
    [listening] = listen_at(["127.0.0.1"], 0, 1)
    address = listening.getsockname()
    acceptor = Acceptor([listening], lambda: host, room, tls=None, handshake_timeout_s=5.0)
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(*address)
        await host.is_made.wait()
        # Whoever has made the connection hears of it.
        await asyncio.sleep(0.01)
        if stays:
            # That of uvloop is no subclass.
            transport = cast("asyncio.WriteTransport", host.transport)
            transport.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            transport.close()
        await host.is_lost.wait()
        assert await reader.read() == b""
        writer.close()
    acceptor.close()
    assert len(room) == 0


def test_a_connection_that_is_made_while_the_acceptor_stops_stays_open() -> None:
    uvloop.run(first_moment(lambda acceptor, _: acceptor.close(), stays=True))


def test_a_connection_that_is_evicted_while_it_is_made_hears_of_its_end() -> None:
    uvloop.run(first_moment(lambda _, room: room.has_place(), stays=False))
