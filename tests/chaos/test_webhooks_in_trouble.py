"""Posts wait while a standby takes over, the store is sick, or workers become more and fewer."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from holdfast.store.format.keys import RedisKeys
from tests.chaos.stage import Stage
from tests.chaos.test_resharding import run
from tests.chaos.test_standby import Pair
from tests.chaos.test_workers import Deployment
from tests.store.servers import ValkeyServer
from tests.web.people import until
from tests.web.stream_reader import Publisher
from tests.web.test_webhooks import SECRET
from tests.web.test_webhooks_over_restarts import CHANNEL, Shop
from tests.web.webhook_receiver import WebhookReceiver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KEEPS = {"/orders/**": {"durable": True}}
SECOND = 30
# How long a store is sick.
SICK_S = 3.0
# They have several owners if there are three workers, whatever the key of the deployment is.
NAMES = [f"shop{number}" for number in range(8)]


def hook(url: str) -> dict[str, Any]:
    """A webhook that waits for answers for as long as it may, and calls again soon."""
    usual = {"secret": SECRET, "allow_private": True, "delays": [20] * 20, "timeout": 60_000}
    return {**usual, "url": url, "channels": ["/orders/**"]}


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    await shop.open()
    yield shop
    await shop.close()


@pytest.mark.parametrize(("workers", "is_killed"), [(1, True), (3, True), (3, False)])
async def test_a_standby_posts_what_waits(
    tmp_path: Path, shop: Shop, workers: int, is_killed: bool
) -> None:
    hooks = {"webhooks": {"shop": hook(shop.url)}, "channels": KEEPS}
    async with AsyncExitStack() as stack:
        pair = Pair(tmp_path, stack, workers, **hooks)
        await pair.begin()
        server = pair.first
        async with Publisher(lambda: server.url, CHANNEL) as publisher:
            shop.is_open.clear()
            await publisher.publish(SECOND)
            await shop.is_called()
            publishing = asyncio.create_task(publisher.publish(SECOND))
            await (pair.first.kill_all() if is_killed else pair.first.stop())
            server = pair.second
            await publishing
            # The former server had no answer.
            await shop.is_called(2)
            assert [*shop.ids] == [publisher.accepted[0]]
            shop.is_open.set()
            await publisher.publish(1)
            await shop.has(publisher.accepted[-1])
            shop.check(publisher.accepted)


def fill(store: ValkeyServer) -> None:
    store.set(maxmemory="1", maxmemory_policy="noeviction")


def make_room(store: ValkeyServer) -> None:
    store.set(maxmemory="0")


@pytest.mark.parametrize(
    ("fail", "heal"),
    [
        pytest.param(fill, make_room, id="full"),
        pytest.param(ValkeyServer.freeze, ValkeyServer.thaw, id="silent"),
        pytest.param(ValkeyServer.kill, ValkeyServer.start, id="away"),
    ],
)
async def test_nothing_is_lost_when_the_store_is_sick_during_a_call(
    tmp_path: Path,
    shop: Shop,
    fail: Callable[[ValkeyServer], None],
    heal: Callable[[ValkeyServer], None],
) -> None:
    async with AsyncExitStack() as stack:
        stage = Stage(tmp_path, stack)
        # It keeps what it has.
        stage.store.kill()
        stage.store.start(appendonly="yes")
        server = stage.server("only", webhooks={"shop": hook(shop.url)}, channels=KEEPS)
        await server.start()

        async def is_sick() -> bool:
            return not await server.is_ready()

        async def is_settled() -> bool:
            return not int(stage.store.ask("HLEN", RedisKeys("holdfast").bodies))

        async with Publisher(lambda: server.url, CHANNEL) as publisher:
            shop.is_open.clear()
            await publisher.publish(SECOND)
            await shop.is_called()
            fail(stage.store)
            await until(is_sick)
            publishing = asyncio.create_task(publisher.publish(SECOND))
            shop.is_open.set()
            await shop.has(publisher.accepted[0])
            await asyncio.sleep(SICK_S)
            heal(stage.store)
            await publishing
            await shop.has(publisher.accepted[-1])
            shop.check(publisher.accepted)
            # All verdicts are stored in the end: nothing is posted again.
            await until(is_settled)
            heard = len(shop.heard)
            await server.kill()
            await server.start()
            await publisher.publish(1)
            await shop.has(publisher.accepted[-1])
            assert {*shop.heard[heard:]} == {publisher.accepted[-1]}


@pytest.mark.parametrize("is_killed", [False, True])
async def test_one_worker_posts_what_waits_when_they_become_more_and_fewer(
    tmp_path: Path, is_killed: bool
) -> None:
    async with AsyncExitStack() as stack:
        shops = [await stack.enter_async_context(WebhookReceiver()) for _ in NAMES]
        is_over = asyncio.Event()
        stack.callback(is_over.set)

        async def wait(_: web.Request) -> web.Response:
            await is_over.wait()
            return web.Response()

        hooks = {name: hook(shop.url) for name, shop in zip(NAMES, shops, strict=True)}
        given = ["--webhooks", json.dumps(hooks), "--channels", json.dumps(KEEPS)]
        deployment = Deployment(tmp_path, 1, *given)
        stack.callback(lambda: deployment.close())
        publisher = await stack.enter_async_context(Publisher(lambda: deployment.url, CHANNEL))
        for count in (3, 2):
            for shop in shops:
                shop.calls.clear()
                shop.plan.append(wait)
            done = len(publisher.accepted)
            await publisher.publish(SECOND)
            for shop in shops:
                await shop.called(1)
            await end(deployment, is_killed=is_killed)
            report = await asyncio.to_thread(run, tmp_path, "--shards", str(count))
            got = [each["sessions"] for each in report["shards"][:count]]
            assert sum(got) == len(NAMES)
            assert len([each for each in got if each]) >= 2
            deployment = Deployment(tmp_path, count, *given)
            await publisher.publish(1)
            waited = publisher.accepted[done:]
            for shop in shops:
                # The one without an answer is posted again, and each other one once.
                calls = await shop.called(1 + len(waited))
                assert [each.data for each in calls] == [waited[0], *waited]
                assert calls[0].id == calls[1].id


async def end(deployment: Deployment, *, is_killed: bool) -> None:
    if is_killed:
        os.killpg(deployment.process.pid, signal.SIGKILL)
    else:
        assert await asyncio.to_thread(deployment.stop) == 0, deployment.errors()
    deployment.close()
