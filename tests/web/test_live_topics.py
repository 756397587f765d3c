"""What operators see of topics, and how they erase them."""

from collections.abc import AsyncIterator

import pytest

from holdfast.delivery.topics.states import TopicState
from holdfast.settings import ChannelSettings
from tests.store.servers import ValkeyServer
from tests.web.live_server import LiveServer, refused_with, server_at

RULE = {"/a": ChannelSettings(topic=True, destroy_delay=-1, history=9)}


@pytest.fixture
async def server() -> AsyncIterator[LiveServer]:
    with ValkeyServer() as valkey:
        async with server_at(valkey, channels=RULE) as server:
            yield server


async def test_topics_are_listed_and_shown(server: LiveServer) -> None:
    await server.receiver()
    server.client().publish("/a", 1)
    await server.store_process.answered()
    (topic,) = (await server.api.topics.topics()).items
    assert (topic.channel, topic.state, topic.queued, topic.subscribers) == (
        "/a",
        TopicState.ALIVE,
        1,
        1,
    )
    assert await server.api.topics.topic("/a") == topic
    with refused_with("user.oid.unknown"):
        await server.api.topics.topic("/b")


async def test_the_history_of_a_channel_is_shown_from_the_newest_on(server: LiveServer) -> None:
    for data in (1, 2, "x" * 70_000):
        server.client().publish("/a", data)
    await server.store_process.answered()
    cut, newer = await server.api.topics.topic_history("/a", 2)
    assert (cut.is_cut, cut.data) == (True, None)
    assert (newer.channel, newer.data, newer.durable) == ("/a", 2, False)
    assert (await server.api.topics.topic("/a")).kept == 3
    with refused_with("user.illegalArgument"):
        await server.api.topics.topic_history("nothing", 1)
    (found,) = await server.api.topics.topic_history("/a", 1, "data = 1")
    assert found.data == 1
    with refused_with("user.illegalArgument"):
        await server.api.topics.topic_history("/a", 1, "data =")


async def test_a_forced_erasure_leaves_only_its_event_in_queues_and_the_store(
    server: LiveServer,
) -> None:
    client = await server.receiver()
    server.client().publish("/a", 1)
    await server.store_process.answered()
    await server.api.topics.erase_topic("/a", "operator", force=True)
    await server.store_process.answered()
    assert (await server.api.topics.topics()).items == []
    (event,) = server.store_process.bodies()
    assert set(server.store_process.queue("joe/1")) == {event}
    (erased,) = (await server.connect(client)).events
    assert erased["ext"]["delivery"]["state"] == "ERASED"
    assert server.balances()
    assert (await server.audited())[0].action == "topic.erase"


async def test_an_erasure_is_answered_when_the_last_subscription_is_gone() -> None:
    has_time = True
    with ValkeyServer() as valkey:
        async with server_at(valkey, channels=RULE, is_turn_over=lambda: not has_time) as server:
            for _ in range(2001):
                server.client().subscribe("/a")
            # Each turn has time for one piece.
            has_time = False
            await server.api.topics.erase_topic("/a", "operator", force=False)
            assert not any(each.subscriptions for each in server.bayeux.state.sessions)
