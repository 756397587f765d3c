"""What the tests of the Python client share."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from holdfast import Client
from tests.serving import Server, Servers

WEBSOCKET, LONG_POLLING = "websocket", "long-polling"
Enter = Callable[..., Any]


@pytest.fixture(params=[WEBSOCKET, LONG_POLLING])
def transport(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server(servers: Servers) -> Server:
    return servers.with_settings({})


@pytest.fixture
async def enter(server: Server, transport: str) -> AsyncIterator[Enter]:
    """Enters clients of the server, which leave at the end of the test."""
    async with AsyncExitStack() as stack:

        async def enter(**options: Any) -> Client:
            chosen = {"transports": [transport], **options}
            return await stack.enter_async_context(Client(server.url, **chosen))

        yield enter
