"""What operators see of topics, and how they erase them."""

from collections.abc import AsyncIterator

import pytest

from holdfast.bayeux.options import ChannelRule
from holdfast.delivery.topics import TopicConfig
from tests.store.servers import ValkeyServer
from tests.web.live_house import LiveHouse, house_at, refused_with

RULE = {"/a": ChannelRule(topic=TopicConfig(destroy_delay_ms=-1))}


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
