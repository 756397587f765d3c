"""What operators see of topics, and how they erase them."""

from collections.abc import AsyncIterator

import pytest

from holdfast.bayeux.options import ChannelRule
from holdfast.delivery.history_depth import HistoryDepth
from holdfast.delivery.topics import TopicConfig
from tests.store.servers import ValkeyServer
from tests.web.live_house import LiveHouse, house_at, refused_with

RULE = {"/a": ChannelRule(topic=TopicConfig(destroy_delay_ms=-1), history=HistoryDepth(9))}


@pytest.fixture
async def house() -> AsyncIterator[LiveHouse]:
    with ValkeyServer() as server:
        async with house_at(server, channels=RULE) as house:
            yield house


async def test_topics_are_listed_and_shown(house: LiveHouse) -> None:
    await house.receiver()
    house.client().publish("/a", 1)
    await house.desk.answered()
    (topic,) = (await house.api.topics.topics()).items
    assert (topic.channel, topic.state, topic.queued, topic.subscribers) == ("/a", "ALIVE", 1, 1)
    assert await house.api.topics.topic("/a") == topic
    with refused_with("user.oid.unknown"):
        await house.api.topics.topic("/b")


async def test_the_history_of_a_channel_is_shown_from_the_newest_on(house: LiveHouse) -> None:
    for data in (1, 2, "x" * 70_000):
        house.client().publish("/a", data)
    await house.desk.answered()
    cut, newer = await house.api.topics.topic_history("/a", 2)
    assert (cut.is_cut, cut.data) == (True, None)
    assert (newer.channel, newer.data, newer.durable) == ("/a", 2, False)
    assert (await house.api.topics.topic("/a")).kept == 3
    with refused_with("user.illegalArgument"):
        await house.api.topics.topic_history("nothing", 1)
    (found,) = await house.api.topics.topic_history("/a", 1, "data = 1")
    assert found.data == 1
    with refused_with("user.illegalArgument"):
        await house.api.topics.topic_history("/a", 1, "data =")


async def test_a_forced_erasure_leaves_nothing_in_queues_or_the_store(house: LiveHouse) -> None:
    await house.receiver()
    house.client().publish("/a", 1)
    await house.desk.answered()
    await house.api.topics.erase_topic("/a", "operator", force=True)
    await house.desk.answered()
    assert (await house.api.topics.topics()).items == []
    assert house.desk.bodies() == set()
    assert house.balances()
    assert (await house.audited())[0].action == "topic.erase"
