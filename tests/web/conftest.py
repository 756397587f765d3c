"""Fixtures of the tests of the web layer."""

from collections.abc import AsyncIterator, Iterator

import pytest
from blockbuster import blockbuster_ctx

from holdfast.settings import ChannelSettings
from tests.store.servers import ValkeyServer
from tests.web.live_server import LiveServer, server_at

# A channel that is held while its receivers are broken.
GUARDED = {"/a": ChannelSettings(guard=True)}


@pytest.fixture
async def server() -> AsyncIterator[LiveServer]:
    """A server with operators, with a store of its own."""
    with ValkeyServer() as valkey:
        async with server_at(valkey, channels=GUARDED) as server:
            yield server


@pytest.fixture(scope="module")
def nothing_blocks() -> Iterator[None]:
    """Blocking calls in the event loop raise an error."""
    with blockbuster_ctx() as watch:
        for call in watch.functions.values():
            # A server reads its pages while it is created.
            call.can_block_in("holdfast/web/site/pages.py", "add_pages")
        yield


@pytest.fixture(scope="session", autouse=True)
def machine_is_never_too_slow() -> Iterator[None]:
    """On a slow machine, too, no request overruns its turn.

    After an overrun, large requests would wait for real time, of which `Rig` lets none pass.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.web.scheduling.request_scheduler.thread_time", lambda: 0.0)
        yield
