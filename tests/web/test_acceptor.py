"""Connections are never accepted so fast that the descriptors reserved for others are used up."""

import asyncio
import os
import socket
from contextlib import ExitStack

import pytest

from holdfast.web.acceptor import Acceptor
from holdfast.web.addresses import listen_at
from holdfast.web.connection_limit import ConnectionLimit

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
        async with asyncio.timeout(10):
            while room.turned_away < clients - LIMIT:
                await asyncio.sleep(0)
                most = max(most, descriptors() - before)
        acceptor.close()
    return most - LIMIT


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="nothing to count them by")
async def test_a_flood_takes_few_descriptors_beyond_the_limit() -> None:
    assert await flood(400) <= MOST_BEYOND
