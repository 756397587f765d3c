"""What operators see of messages that wait in work queues."""

from collections.abc import AsyncIterator

import pytest

from holdfast.settings import ChannelSettings
from tests.store.servers import ValkeyServer
from tests.web.live_server import LiveServer, server_at


@pytest.fixture
async def server() -> AsyncIterator[LiveServer]:
    rules = {"/jobs/**": ChannelSettings(work_queue=True)}
    with ValkeyServer() as valkey:
        async with server_at(valkey, channels=rules) as server:
            yield server


async def give(server: LiveServer, *channels: str) -> None:
    """Publish work to these channels, which have no receivers."""
    for channel in channels:
        server.client().publish(channel, f"for {channel}")
        await server.store_process.answered()


async def test_work_queues_are_listed_with_their_waiting_messages(server: LiveServer) -> None:
    await give(server, "/jobs/b", "/jobs/a", "/jobs/b")
    first = await server.api.queues.work_queues(None, 1)
    assert [(each.channel, each.waiting) for each in first.items] == [("/jobs/a", 1)]
    rest = await server.api.queues.work_queues(first.cursor, 10)
    assert [(each.channel, each.waiting) for each in rest.items] == [("/jobs/b", 2)]
    assert rest.cursor is None
    assert (await server.api.queues.subjects()).items == []
    (entry,) = await server.api.queues.work_queue("/jobs/a")
    assert (entry.data, entry.state) == ("for /jobs/a", "waiting")


async def test_discarded_work_leaves_queues_and_store(
    server: LiveServer,
) -> None:
    await give(server, "/jobs/a", "/jobs/a")
    cleared = await server.api.queues.clear_work_queue("/jobs/a", "operator")
    assert cleared.discarded == 2
    await server.store_process.answered()
    assert (await server.api.queues.work_queues()).items == []
    assert server.store_process.bodies() == set()
    assert server.balances()
    assert (await server.audited())[0].action == "work.clear"
    assert await server.api.queues.work_queue("/jobs/a") == []


async def test_receivers_are_shown_with_their_entries(server: LiveServer) -> None:
    ann, joe = server.client(), server.client()
    for session, channel in ((ann, "/jobs/a"), (joe, "/jobs/*")):
        session.subscribe(channel)
    await give(server, "/jobs/a", "/jobs/a")
    shown = await server.api.queues.work_receivers("/jobs/a")
    assert sorted(each.waiting + each.in_flight for each in shown) == [1, 1]
    assert await server.api.queues.work_receivers("/nobody/here") == []
