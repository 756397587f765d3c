"""Workers leave out of their links what others have no receivers for, until these subscribe."""

import asyncio
from pathlib import Path
from typing import Any

from holdfast.compose.running_server import RunningServer
from tests.store.store_process import until
from tests.web.forwarding.workers import Workers, workers
from tests.web.people import Person

NEWS = "/news/today"
LIMIT_S = 60.0


def pruned(server: RunningServer) -> set[str]:
    """What a worker leaves out for the other one."""
    assert server.forwarding is not None
    [passage] = server.forwarding.passages.values()
    return passage.pruned


def passed(server: RunningServer) -> int:
    """How many messages a worker has sent over links."""
    assert server.sharding is not None
    return server.sharding.member.others.own.passing.passed


async def entered(both: Workers, shard: int) -> Person:
    """Return a client whose session is at this worker."""
    person = both.person(shard)
    person.wants = {"ack": False}
    assert (await person.handshake())["successful"]
    return person


async def publish_until_pruned(both: Workers, publisher: Person) -> None:
    sharding = both.servers[0].sharding
    assert sharding is not None
    passing = sharding.member.others.own.passing
    async with asyncio.timeout(LIMIT_S):
        while NEWS not in pruned(both.servers[0]):
            assert (await publisher.reply(NEWS, data="unheard"))["successful"]
            await asyncio.sleep(0.05)
            # While the log has one on its way, those behind it take the log, too.
            await until(lambda: NEWS not in passing._in_log)


async def hears(person: Person, data: Any) -> None:
    """Wait for a message with these data."""
    async with asyncio.timeout(LIMIT_S):
        while all(each.get("data") != data for each in await person.connect(500)):
            pass


async def test_a_subscribe_brings_everything_from_its_answer_on(tmp_path: Path) -> None:
    async with workers(tmp_path) as both:
        publisher, subscriber = await entered(both, 0), await entered(both, 1)
        await publish_until_pruned(both, publisher)
        before = passed(both.servers[0])
        await publisher.reply(NEWS, data="left out")
        await asyncio.sleep(0.1)
        assert passed(both.servers[0]) == before
        # What the other worker does not know yet is on its way for a while.
        await both.delay(0, 1, 0.1)
        for pattern in (NEWS, "/news/*"):
            await publish_until_pruned(both, publisher)
            asked = asyncio.create_task(subscriber.reply("/meta/subscribe", subscription=pattern))
            while not asked.done():
                await publisher.reply(NEWS, data="too early")
            assert asked.result()["successful"]
            assert NEWS not in pruned(both.servers[0])
            await publisher.reply(NEWS, data=pattern)
            await hears(subscriber, pattern)
            await subscriber.reply("/meta/unsubscribe", subscription=pattern)
