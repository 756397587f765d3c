"""Fixtures of the tests of the Python client."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, Message
from tests.clients.mortal_server import MortalServer
from tests.serving import Server, Servers

WEBSOCKET, LONG_POLLING = "websocket", "long-polling"
Enter = Callable[..., Any]


class Basket:
    """Collects what a callback gets, and waits for it."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._arrived = asyncio.Condition()

    async def __call__(self, message: Message) -> None:
        async with self._arrived:
            self.messages.append(message)
            self._arrived.notify_all()

    async def data(self, count: int) -> list[Any]:
        async with self._arrived, asyncio.timeout(60):
            await self._arrived.wait_for(lambda: len(self.messages) >= count)
        return [message.data for message in self.messages]


@pytest.fixture(params=[WEBSOCKET, LONG_POLLING])
def transport(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.with_settings({})


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MortalServer]:
    """A server that can be killed, and knows its named sessions afterwards."""
    server = MortalServer({"data": str(tmp_path / "data"), "max_interval": 60_000})
    yield server
    server.stop()


@pytest.fixture
async def enter(server: Server, transport: str) -> AsyncIterator[Enter]:
    """Enters clients of the server, which leave at the end of the test."""
    async with AsyncExitStack() as stack:

        async def enter(**options: Any) -> Client:
            chosen = {"transports": [transport], **options}
            return await stack.enter_async_context(Client(server.url, **chosen))

        yield enter
