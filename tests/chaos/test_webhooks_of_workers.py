"""One of several workers calls a webhook, and nothing is lost, whichever of them is killed."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.chaos.test_workers import Deployment
from tests.web.people import Person, until
from tests.web.stream_reader import Publisher
from tests.web.test_webhooks import SECRET
from tests.web.test_webhooks_over_restarts import CHANNEL, Shop
from tests.web.webhook_receiver import WebhookReceiver

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WORKERS = 3
SECOND = 30
# How long each worker does not run.
FROZEN_S = 8.0
# Their sessions are at several workers, whatever the key of the deployment is.
PEOPLE = ("bob", "cid", "dan", "eve", "fay")


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    shop = Shop()
    await shop.open()
    yield shop
    await shop.close()


@contextmanager
def with_webhook(home: Path, url: str, **what: Any) -> Iterator[Deployment]:
    hook = {"url": url, "secret": SECRET, "allow_private": True, "delays": [20] * 20, **what}
    given = ["--webhooks", json.dumps({"shop": hook})]
    given += ["--channels", json.dumps({"/orders/**": {"durable": True}})]
    made = Deployment(home, WORKERS, *given)
    yield made
    made.close()


@pytest.fixture
def deployment(shop: Shop, tmp_path: Path) -> Iterator[Deployment]:
    with with_webhook(tmp_path, shop.url, channels=["/orders/**"]) as made:
        yield made


async def has_restarted(deployment: Deployment) -> bool:
    """Restart it, unless its supervisor has not seen yet that a worker is gone."""
    return "failed" not in await deployment.restart()


async def is_complete(deployment: Deployment) -> bool:
    return deployment.are_complete()


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


async def test_letters_of_all_workers_are_told_whichever_is_killed(tmp_path: Path) -> None:
    async with WebhookReceiver() as told:
        with with_webhook(tmp_path, told.url, events=["letters"]) as deployment:
            for place in range(WORKERS):
                for name in PEOPLE:
                    await until(partial(has_refused, deployment, name))
                await until(partial(is_complete, deployment))
                os.kill(deployment.workers()[place], signal.SIGKILL)
            letters: set[str] = set()

            async def are_listed() -> bool:
                letters.update(await letters_of(deployment))
                return len(letters) >= WORKERS * len(PEOPLE)

            async def are_told() -> bool:
                return letters <= {each.id for each in told.calls}

            await until(are_listed)
            await until(are_told)
            assert {each.id for each in told.calls} <= {*letters, *await letters_of(deployment)}


async def has_refused(deployment: Deployment, name: str) -> bool:
    """Publish something and refuse it, unless the worker is not there yet."""
    person = Person(deployment.url)
    try:
        await person.handshake(f"{name}/1")
        await person.reply("/meta/subscribe", subscription=CHANNEL)
        assert (await person.reply(CHANNEL, data=name))["successful"]
        events: list[Any] = []
        while not events:
            events = [each for each in await person.connect(1000) if "data" in each]
        refusals = [
            {"seq": each["ext"]["delivery"]["seq"], "errorCode": "user.clientCode"}
            for each in events
        ]
        [reply] = await person.connect(delivery={"verdicts": refusals})
        return bool(reply["successful"])
    except (aiohttp.ClientError, AssertionError):
        return False
    finally:
        await person.http.close()


async def letters_of(deployment: Deployment) -> set[str]:
    """The ids by which the webhook tells of letters; none while a worker is not there."""
    headers = {"Authorization": f"Bearer {(deployment.data / 'admin-token').read_text().strip()}"}
    asked = f"{deployment.url}/admin/api/v1/dead-letters?limit=500"
    async with aiohttp.ClientSession(headers=headers) as http, http.get(asked) as response:
        found = await response.json()
    if response.status == 503 or found["unanswered"]:
        return set()
    return {f"letter-{each['id']}" for each in found["items"]}
