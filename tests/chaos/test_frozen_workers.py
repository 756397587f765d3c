"""A worker that is frozen, or whose store is, holds up no durable subscription of the others."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest

from tests.chaos.test_workers import LIMIT_S, Deployment, deployed, ports_in_a_row, until
from tests.slowness import times_slower
from tests.web.people import Person

pytestmark = pytest.mark.slow  # each starts several processes

FROZEN = 1
# How long a durable subscription may take meanwhile: a lease must stand for 3 s.
AGREED_S = 4.0
SUBSCRIBERS = 5
# How long a worker may be frozen: 5 s, and the supervisor looks once a second.
KILLED_S = 12.0
NOT_KILLED = "--frozen-timeout", "600000"


async def shard_of(person: Person) -> int:
    async with person.http.get("/cluster/map") as response:
        ranges = (await response.json())["ranges"]
    bucket = int(person.client_id[:3])
    [shard] = [shard for low, high, shard in ranges if low <= bucket <= high]
    return int(shard)


@asynccontextmanager
async def named(first_port: int, name: str, shards: list[int]) -> AsyncIterator[list[Person]]:
    """Somebody with a named session of each of these shards, at its own door."""
    async with AsyncExitStack() as stack:
        found: list[Person] = []
        for n in range(200):
            shard = shards[len(found)]
            person = Person(f"http://127.0.0.1:{first_port + shard}")
            stack.push_async_callback(person.http.close)
            assert (await person.handshake(f"{name}{n}/1"))["successful"]
            if await shard_of(person) == shard:
                found.append(person)
            if len(found) == len(shards):
                break
        yield found


async def subscribe_all(people: list[Person], room: str) -> list[tuple[str, float]]:
    """Subscribe together; returns the error of each, and how long it took."""

    async def subscribe(person: Person) -> tuple[str, float]:
        began = time.monotonic()
        reply = await person.reply("/meta/subscribe", subscription=room)
        return reply.get("error", ""), time.monotonic() - began

    return [*await asyncio.gather(*map(subscribe, people))]


def frozen_worker(deployment: Deployment) -> int:
    return deployment.workers()[FROZEN]


def frozen_store(deployment: Deployment) -> int:
    pid = deployment.data / "shards" / str(FROZEN) / "store" / "valkey.pid"
    return int(pid.read_text())


async def hear(person: Person, room: str) -> list[int]:
    """Connect until something comes, also while the worker is started again."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            with suppress(aiohttp.ClientError, AssertionError):
                events = await person.connect(1000)
                if heard := [each["data"] for each in events if each["channel"] == room]:
                    return heard
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("which", [frozen_worker, frozen_store])
async def test_whoever_is_frozen_durable_subscriptions_elsewhere_are_answered_and_hold(
    tmp_path: Path, which: Callable[[Deployment], int]
) -> None:
    first = ports_in_a_row(3)
    async with (
        deployed(tmp_path, 3, "--own-port", str(first), *NOT_KILLED) as deployment,
        named(first, "reader", [0, 2] * SUBSCRIBERS) as people,
        named(first, "writer", [FROZEN]) as [writer],
    ):
        frozen, pid = frozen_worker(deployment), which(deployment)
        for n, readers in enumerate((people[:SUBSCRIBERS], people[SUBSCRIBERS:])):
            room = f"/room{n}"
            os.kill(pid, signal.SIGSTOP)
            replies = await subscribe_all(readers, room)
            assert [error for error, _ in replies] == [""] * SUBSCRIBERS
            assert max(taken_s for _, taken_s in replies) < AGREED_S * times_slower()
            # It is handled in the first turn of a worker that thaws.
            publishing = asyncio.create_task(writer.reply(room, data=n))
            await asyncio.sleep(0.2)
            os.kill(pid, signal.SIGCONT)
            assert (await publishing)["successful"]
            # What was accepted for durable subscriptions outlives their workers.
            for each in {*deployment.workers()} - {frozen}:
                os.kill(each, signal.SIGKILL)
            assert [await hear(each, room) for each in readers] == [[n]] * SUBSCRIBERS
            await until(deployment.are_complete)


async def test_a_worker_that_does_not_run_is_killed_and_its_sessions_go_on(tmp_path: Path) -> None:
    first = ports_in_a_row(3)
    async with (
        deployed(tmp_path, 3, "--own-port", str(first)) as deployment,
        named(first, "reader", [FROZEN]) as [reader],
        named(first, "writer", [0]) as [writer],
    ):
        assert (await reader.reply("/meta/subscribe", subscription="/room"))["successful"]
        deployment.has_frozen = True
        frozen, began = frozen_worker(deployment), time.monotonic()
        os.kill(frozen, signal.SIGSTOP)
        await until(lambda: frozen not in deployment.workers())
        took_s = time.monotonic() - began
        assert took_s < KILLED_S * times_slower(), f"{took_s:.1f} s"
        assert "the server of shard 1 has not run for 5 s: it is killed" in deployment.errors()
        assert (await writer.reply("/room", data=1))["successful"]
        assert await hear(reader, "/room") == [1]
        await until(deployment.are_complete)
