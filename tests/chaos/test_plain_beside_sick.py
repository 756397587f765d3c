"""Messages that are not stored, and sessions without a name, beside a worker with a sick store."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.chaos.test_workers import Deployment, deployed, until
from tests.chaos.test_workers_in_trouble import Trouble, frozen, full, store_of
from tests.slowness import times_slower
from tests.web.people import Person

pytestmark = pytest.mark.slow  # each starts several processes

SICK = 1
# How long the store of that worker is sick: longer than anything waits for a store.
SICK_S = 17.0
TALK, ROOM = "/talk", "/room"
# How late a message may be on a machine that waits for nothing.
SOON_S = 2.5


class Somebody(Person):
    """A client, with a name or without one, which collects what comes and how late it is."""

    def __init__(self, url: str, *channels: str, name: str | None = None) -> None:
        super().__init__(url)
        self.name, self.channels = name, channels
        self.shard = -1
        # By publisher and channel, the numbers that came, and how many seconds after they left.
        self.heard: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.late: list[float] = []
        self._batch = 0

    async def join(self) -> None:
        assert (await self.handshake(self.name))["successful"]
        for channel in self.channels:
            assert (await self.reply("/meta/subscribe", subscription=channel))["successful"]
        async with self.http.get("/cluster/map") as response:
            ranges = (await response.json())["ranges"]
        bucket = int(self.client_id[:3])
        [self.shard] = [shard for low, high, shard in ranges if low <= bucket <= high]

    async def listen(self) -> None:
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                for each in await self.connect(1000, ack=self._batch):
                    if each["channel"] in self.channels:
                        publisher, number, at = each["data"]
                        self.heard[publisher, each["channel"]].append(number)
                        self.late.append(time.monotonic() - at)
                    elif each["channel"] == "/meta/connect":
                        assert each["successful"], each
                        self._batch = each.get("ext", {}).get("ack", self._batch)


class Party:
    """At each worker, somebody without a name who listens, and somebody who publishes."""

    def __init__(self, listeners: list[Somebody], publishers: list[Somebody]) -> None:
        self.listeners, self.publishers = listeners, publishers
        # By publisher and channel, the numbers that were answered OK.
        self.accepted: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.refused: list[str] = []
        self._number = 0

    async def publish(self, publisher: Somebody, channel: str, **delivery: Any) -> None:
        self._number += 1
        number = self._number
        data = [publisher.shard, number, time.monotonic()]
        fields: Any = {"ext": {"delivery": delivery}} if delivery else {}
        reply = await publisher.reply(channel, data=data, **fields)
        if reply["successful"]:
            self.accepted[publisher.shard, channel].append(number)
        else:
            self.refused.append(reply["error"])

    async def go_on_publishing(self, publisher: Somebody, channel: str) -> None:
        while True:
            await self.publish(publisher, channel)
            await asyncio.sleep(0.03)

    def lacks(self) -> dict[tuple[int, int], int]:
        """By publisher and listener: how many of the accepted plain messages have not come."""
        found = {}
        for each in self.publishers:
            accepted = self.accepted[each.shard, TALK]
            for listener in self.listeners:
                heard = {*listener.heard[each.shard, TALK]}
                found[each.shard, listener.shard] = len([n for n in accepted if n not in heard])
        return found

    def check_order(self) -> None:
        for listener in self.listeners:
            for line, heard in listener.heard.items():
                assert heard == sorted(heard), f"{line} in another order"
                assert len(heard) == len({*heard}), f"{line} twice"


async def _one_each(
    stack: AsyncExitStack, deployment: Deployment, make: Callable[[int], Somebody]
) -> list[Somebody]:
    """Let people come until there is one at each worker."""
    found: dict[int, Somebody] = {}
    for n in range(100):
        somebody = make(n)
        stack.push_async_callback(somebody.http.close)
        await somebody.join()
        found.setdefault(somebody.shard, somebody)
        if len(found) == deployment.count:
            break
    return [found[shard] for shard in sorted(found)]


@asynccontextmanager
async def party(deployment: Deployment) -> AsyncIterator[Party]:
    async with AsyncExitStack() as stack:
        url = deployment.url
        listeners = await _one_each(stack, deployment, lambda _: Somebody(url, TALK, ROOM))
        publishers = await _one_each(stack, deployment, lambda _: Somebody(url))
        named = await _one_each(stack, deployment, lambda n: Somebody(url, ROOM, name=f"p{n}/1"))
        made = Party(listeners, publishers)
        listening = [asyncio.create_task(each.listen()) for each in (*listeners, *named)]
        try:
            yield made
        finally:
            for each in listening:
                each.cancel()
            await asyncio.wait(listening)


@pytest.mark.parametrize("trouble", [frozen, full])
async def test_plain_messages_reach_everybody_at_once_beside_a_sick_store(
    tmp_path: Path, trouble: Trouble
) -> None:
    async with deployed(tmp_path, 3) as deployment, party(deployment) as all_:
        publishing = [
            asyncio.create_task(all_.go_on_publishing(each, TALK)) for each in all_.publishers
        ]
        # What is stored goes on meanwhile, at the workers that can.
        storing = [
            asyncio.create_task(all_.go_on_publishing(each, ROOM))
            for each in all_.publishers
            if each.shard != SICK
        ]
        await asyncio.sleep(1.0)
        end = await trouble(store_of(deployment, SICK))
        try:
            await asyncio.sleep(SICK_S)
        finally:
            await end()
        await asyncio.sleep(1.0)
        for task in (*publishing, *storing):
            task.cancel()
        await asyncio.wait([*publishing, *storing])
        with suppress(TimeoutError):
            await until(lambda: not any(all_.lacks().values()))
        accepted = {each.shard: len(all_.accepted[each.shard, TALK]) for each in all_.publishers}
        assert not any(all_.lacks().values()), f"{all_.lacks()} of {accepted}"
        all_.check_order()
        stored = [len(all_.accepted[each.shard, ROOM]) for each in all_.publishers]
        stored.pop(SICK)
        assert min(stored) > SICK_S, stored
        assert max(max(each.late) for each in all_.listeners) < SOON_S * times_slower()
