"""Webhooks lose nothing and keep their order, whoever is killed or restarted."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.web.played_supervisor import PlayedSupervisor
from tests.web.stream_reader import Publisher
from tests.web.test_webhooks import SECRET
from tests.web.webhook_receiver import LIMIT_S, WebhookReceiver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHANNEL = "/orders/new"
SECOND = 30


class Shop:
    """The application behind the webhook, which goes away and comes back."""

    def __init__(self) -> None:
        # Each message with its id, in the order in which it was answered with success.
        self.done: list[tuple[int, str]] = []
        # The id of each message whenever it was heard.
        self.ids: dict[int, set[str]] = {}
        # The message of each call.
        self.heard: list[int] = []
        # Whether calls are answered.
        self.is_open = asyncio.Event()
        self.is_open.set()
        self._called, self._answered = asyncio.Event(), asyncio.Event()
        self._random = random.Random(7)
        self._receiver = WebhookReceiver()

    async def open(self) -> None:
        await self._receiver.__aenter__()
        self._plan()

    async def fail(self, pause_s: float) -> None:
        """Be killed, and come back at the same port."""
        await self._receiver.__aexit__()
        await asyncio.sleep(pause_s)
        self._receiver = WebhookReceiver(self._receiver.port)
        await self.open()

    async def close(self) -> None:
        await self._receiver.__aexit__()

    @property
    def url(self) -> str:
        return self._receiver.url

    @property
    def repeats(self) -> int:
        return len(self.heard) - len(self.ids)

    def _plan(self) -> None:
        self._receiver.plan.extend([self._answer] * 5000)

    async def _answer(self, request: web.Request) -> web.Response:
        call = self._receiver.calls[-1]
        number, id = call.data, call.id
        self.heard.append(number)
        self.ids.setdefault(number, set()).add(id)
        self._called.set()
        await self.is_open.wait()
        what = self._random.random()
        if what < 0.05:
            return web.Response(status=503)
        self.done.append((number, id))
        self._answered.set()
        if what < 0.1 and request.transport is not None:
            # It has done its work, and its answer is lost.
            request.transport.close()
        return web.Response(status=204)

    async def is_called(self, times: int = 1) -> None:
        """Wait until it has got so many calls."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.heard) < times:
                self._called.clear()
                await self._called.wait()

    async def has(self, number: int) -> None:
        async with asyncio.timeout(LIMIT_S):
            while number not in {each for each, _ in self.done}:
                self._answered.clear()
                await self._answered.wait()

    def check(self, accepted: list[int]) -> None:
        """Check that nothing is missing, that the order is right, and that repeats are marked."""
        first = list(dict.fromkeys(number for number, _ in self.done))
        assert {*accepted} <= {*first}
        assert all(before < after for before, after in pairwise(first))
        assert all(len(ids) == 1 for ids in self.ids.values())


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    await shop.open()
    yield shop
    await shop.close()


@pytest.fixture
def played(shop: Shop, tmp_path: Path) -> Iterator[PlayedSupervisor]:
    hook: dict[str, Any] = {"url": shop.url, "secret": SECRET, "channels": ["/orders/**"]}
    hook |= {"allow_private": True, "delays": [20] * 20}
    settings = {"webhooks": {"shop": hook}, "channels": {"/orders/**": {"durable": True}}}
    with PlayedSupervisor(tmp_path, {**settings, "journal": False}) as played:
        yield played


async def test_nothing_is_lost_when_the_server_is_killed(
    played: PlayedSupervisor, shop: Shop
) -> None:
    async with Publisher(lambda: played.url, CHANNEL) as publisher:
        for _ in range(4):
            publishing = asyncio.create_task(publisher.publish(SECOND))
            await asyncio.sleep(0.2)
            played.server.kill()
            await asyncio.to_thread(played.start)
            await publishing
        await publisher.publish(1)
        await shop.has(publisher.accepted[-1])
        shop.check(publisher.accepted)
        assert shop.repeats


@pytest.mark.parametrize("wait_ms", [None, 0, 1, 3, 10])
async def test_the_call_during_which_the_server_is_killed_is_repeated_or_done(
    wait_ms: int | None, tmp_path: Path
) -> None:
    """It is killed before the answer, or so long after it: the verdict may be stored or not."""
    async with WebhookReceiver() as receiver:
        hook: dict[str, Any] = {"url": receiver.url, "secret": SECRET, "channels": ["/orders/**"]}
        hook |= {"allow_private": True, "delays": [20] * 20}
        settings = {"webhooks": {"shop": hook}, "channels": {"/orders/**": {"durable": True}}}
        with PlayedSupervisor(tmp_path, {**settings, "journal": False}) as played:
            kill = played.server.process.kill

            async def die(_: web.Request) -> web.Response:
                if wait_ms is None:
                    kill()
                else:
                    asyncio.get_running_loop().call_later(wait_ms / 1000, kill)
                return web.Response()

            async with Publisher(lambda: played.url, CHANNEL) as publisher:
                await publisher.publish(1)
                await receiver.called(1)
                receiver.plan.append(die)
                publishing = asyncio.create_task(publisher.publish(5))
                await receiver.called(2)
                await asyncio.to_thread(played.server.process.wait)
                await asyncio.to_thread(played.start)
                await publishing
            async with asyncio.timeout(LIMIT_S):
                while receiver.calls[-1].data != publisher.accepted[-1]:
                    await receiver.called(len(receiver.calls) + 1)
        ids = {each.data: each.id for each in receiver.calls}
        assert {*publisher.accepted} <= {*ids}
        assert list(ids) == sorted(ids)
        assert all(ids[each.data] == each.id for each in receiver.calls)
        assert len(receiver.calls) <= len(ids) + 1
        assert len(receiver.calls) > len(ids) or wait_ms is not None


async def test_nothing_is_lost_when_the_server_restarts(
    played: PlayedSupervisor, shop: Shop
) -> None:
    async with Publisher(lambda: played.url, CHANNEL) as publisher:
        for _ in range(3):
            publishing = asyncio.create_task(publisher.publish(SECOND))
            await asyncio.to_thread(played.restart)
            await publishing
        await publisher.publish(1)
        await shop.has(publisher.accepted[-1])
        shop.check(publisher.accepted)


async def test_nothing_is_lost_when_a_restart_fails(played: PlayedSupervisor, shop: Shop) -> None:
    async with Publisher(lambda: played.url, CHANNEL) as publisher:
        publishing = asyncio.create_task(publisher.publish(SECOND))
        successor, _ = await asyncio.to_thread(played.prepare)
        await asyncio.to_thread(played.leave)
        successor.kill()
        await asyncio.to_thread(played.take_back)
        await publishing
        await publisher.publish(1)
        await shop.has(publisher.accepted[-1])
        shop.check(publisher.accepted)


async def test_nothing_is_lost_when_the_application_is_killed(
    played: PlayedSupervisor, shop: Shop
) -> None:
    async with Publisher(lambda: played.url, CHANNEL) as publisher:
        for pause_s in (0.0, 0.1, 0.05):
            publishing = asyncio.create_task(publisher.publish(SECOND))
            await asyncio.sleep(0.1)
            await shop.fail(pause_s)
            await publishing
        await publisher.publish(1)
        await shop.has(publisher.accepted[-1])
        shop.check(publisher.accepted)


async def test_a_letter_is_told_again_after_a_kill_with_the_same_id(tmp_path: Path) -> None:
    async with WebhookReceiver() as refusing, WebhookReceiver() as alarm:
        usual = {"secret": SECRET, "allow_private": True}
        hooks = {
            "shop": {**usual, "url": refusing.url, "channels": ["/orders/**"]},
            "alarm": {**usual, "url": alarm.url, "events": ["letters"]},
        }
        refusing.plan.extend([422] * 3)
        with PlayedSupervisor(tmp_path, {"webhooks": hooks, "journal": False}) as played:
            async with Publisher(lambda: played.url, CHANNEL) as publisher:
                await publisher.publish(3)
            told = {each.id for each in await alarm.called(3)}
            assert len(told) == 3
            played.server.kill()
            await asyncio.to_thread(played.start)
            again = (await alarm.called(4))[3:]
            assert {each.id for each in again} <= told
            # A call whose verdict was not stored is repeated, too.
            await alarm.called(6)
            await asyncio.sleep(1.0)
            heard = len(alarm.calls)
            await asyncio.to_thread(played.restart)
            await asyncio.sleep(1.0)
            assert len(alarm.calls) == heard, "a restart in order tells nothing again"
