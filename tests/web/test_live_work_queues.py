"""What operators see of messages that wait in work queues."""

from collections.abc import AsyncIterator

import pytest

from holdfast.bayeux.options import ChannelRule
from tests.store.servers import ValkeyServer
from tests.web.live_house import LiveHouse, house_at


@pytest.fixture
async def house() -> AsyncIterator[LiveHouse]:
    rules = {"/jobs/**": ChannelRule(is_work_queue=True)}
    with ValkeyServer() as server:
        async with house_at(server, channels=rules) as house:
            yield house


async def give(house: LiveHouse, *channels: str) -> None:
    """Publish work to these channels, which have no receivers."""
    for channel in channels:
        house.client().publish(channel, f"for {channel}")
        await house.desk.answered()


async def test_work_queues_are_listed_with_their_waiting_messages(house: LiveHouse) -> None:
    await give(house, "/jobs/b", "/jobs/a", "/jobs/b")
    first = await house.api.queues.work_queues(None, 1)
    assert [(each.channel, each.waiting) for each in first.items] == [("/jobs/a", 1)]
    rest = await house.api.queues.work_queues(first.cursor, 10)
    assert [(each.channel, each.waiting) for each in rest.items] == [("/jobs/b", 2)]
    assert rest.cursor is None
    assert (await house.api.queues.subjects()).items == []
    (entry,) = await house.api.queues.work_queue("/jobs/a")
    assert (entry.data, entry.state) == ("for /jobs/a", "waiting")


async def test_discarded_work_leaves_queues_and_store(
    house: LiveHouse,
) -> None:
    await give(house, "/jobs/a", "/jobs/a")
    cleared = await house.api.queues.clear_work_queue("/jobs/a", "operator")
    assert cleared.discarded == 2
    await house.desk.answered()
    assert (await house.api.queues.work_queues()).items == []
    assert house.desk.bodies() == set()
    assert house.balances()
    assert (await house.audited())[0].action == "work.clear"
    assert await house.api.queues.work_queue("/jobs/a") == []


async def test_receivers_are_shown_with_their_entries(house: LiveHouse) -> None:
    ann, joe = house.client(), house.client()
    for session, channel in ((ann, "/jobs/a"), (joe, "/jobs/*")):
        session.subscribe(channel)
    await give(house, "/jobs/a", "/jobs/a")
    shown = await house.api.queues.work_receivers("/jobs/a")
    assert sorted(each.waiting + each.handed for each in shown) == [1, 1]
    assert await house.api.queues.work_receivers("/nobody/here") == []
