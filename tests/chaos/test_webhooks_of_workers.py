"""One of several workers calls a webhook, and nothing is lost, whichever of them is killed."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.test_workers import Deployment
from tests.web.people import until
from tests.web.stream_reader import Publisher
from tests.web.test_webhooks import SECRET
from tests.web.test_webhooks_over_restarts import CHANNEL, Shop

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORKERS = 3
SECOND = 30
# How long each worker does not run.
FROZEN_S = 8.0


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    await shop.open()
    yield shop
    await shop.close()


@pytest.fixture
def deployment(shop: Shop, tmp_path: Path) -> Iterator[Deployment]:
    hook: dict[str, Any] = {"url": shop.url, "secret": SECRET, "channels": ["/orders/**"]}
    hook |= {"allow_private": True, "delays": [20] * 20}
    given = ["--webhooks", json.dumps({"shop": hook})]
    given += ["--channels", json.dumps({"/orders/**": {"durable": True}})]
    made = Deployment(tmp_path, WORKERS, *given)
    yield made
    made.close()


async def has_restarted(deployment: Deployment) -> bool:
    """Restart it, unless its supervisor has not seen yet that a worker is gone."""
    return "failed" not in await deployment.restart()


async def test_nothing_is_lost_when_workers_are_killed_or_restart(
    deployment: Deployment, shop: Shop
) -> None:
    async with Publisher(lambda: deployment.url, CHANNEL) as publisher:
        await publisher.publish(1)
        for place in range(WORKERS):
            publishing = asyncio.create_task(publisher.publish(SECOND))
            await asyncio.sleep(0.2)
            os.kill(deployment.workers()[place], signal.SIGKILL)
            await publishing
            publishing = asyncio.create_task(publisher.publish(SECOND))
            await until(partial(has_restarted, deployment))
            await publishing
        await publisher.publish(1)
        await shop.has(publisher.accepted[-1])
        shop.check(publisher.accepted)
        assert len(shop.done) < len(publisher.accepted) * 1.5, "several workers call it"


async def test_nothing_is_lost_when_workers_freeze(deployment: Deployment, shop: Shop) -> None:
    async with Publisher(lambda: deployment.url, CHANNEL) as publisher:
        await publisher.publish(1)
        for pid in deployment.workers():
            os.kill(pid, signal.SIGSTOP)
            publishing = asyncio.create_task(publisher.publish(SECOND))
            await asyncio.sleep(FROZEN_S)
            # Its supervisor may have ended it.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            await publishing
        await publisher.publish(1)
        await shop.has(publisher.accepted[-1])
        shop.check(publisher.accepted)
