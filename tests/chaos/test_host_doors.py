"""A host without a shard serves every client, and who has a session through it goes on.

-s shows how long clients waited.
"""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from tests.chaos.hosts import NAMES, READY_S, SHARDS, Host, until
from tests.chaos.test_hosts import BUSY, DRAINED, HOST_S, drained, scene
from tests.chaos.test_workers import Member
from tests.chaos.twin import LIMIT_S
from tests.slowness import times_slower
from tests.web.requests import HANDSHAKE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# In which a door starts, on a machine that is not busy.
DOOR_S = 3.0


async def test_a_host_without_a_shard_serves_every_client(tmp_path: Path) -> None:
    async with scene(tmp_path) as play, AsyncExitStack() as stack:
        first, other, _ = play.hosts.all
        await _is_door(first, by=other)
        # Named sessions of all shards, through this door alone.
        people = [Member(first.url, f"late{n}/1") for n in range(6)]
        for each in people:
            stack.push_async_callback(each.http.close)
            await each.join()
        http = await stack.enter_async_context(aiohttp.ClientSession(first.url))
        async with http.ws_connect("/cometd") as socket:
            await socket.send_json([HANDSHAKE])
            [greeting] = orjson.loads((await socket.receive()).data)
            assert greeting["successful"], greeting
        async with http.post("/publish", json={"channel": "/elsewhere", "data": 1}) as response:
            assert (response.status, (await response.json())[0]["successful"]) == (200, True)
        async with http.get("/metrics") as response:
            page = await response.text()
        assert all(f'shard="{shard}"' in page for shard in range(6))
        assert await first.readiness() == (503, DRAINED.format(NAMES[0]))
        # It is replaced as any other process.
        assert await first.restart() == ""
        for each in people:
            assert (await each.connect())[-1]["successful"]


async def _is_door(host: Host, by: Host) -> None:
    """Drain a host, until it has nothing but a door."""
    done = await asyncio.to_thread(drained, NAMES[0], by=by)
    assert done.returncode == 0, done.stderr
    await until(lambda: host.has_door and not host.shards)


@asynccontextmanager
async def polling(url: str) -> AsyncIterator[list[tuple[int, float]]]:
    """Somebody who holds one connection after the other at a door; yields statuses and times."""
    found: list[tuple[int, float]] = []

    async def poll() -> None:
        async with aiohttp.ClientSession(url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            wanted: dict[str, Any] = {**HANDSHAKE, "supportedConnectionTypes": ["long-polling"]}
            async with http.post("/cometd", json=[wanted]) as response:
                client_id = (await response.json())[0]["clientId"]
            connect = {"channel": "/meta/connect", "connectionType": "long-polling"}
            while True:
                began = time.monotonic()
                said = {**connect, "clientId": client_id, "advice": {"timeout": 200}}
                try:
                    async with http.post("/cometd", json=[said]) as response:
                        answer = (await response.json())[-1]
                        status = response.status if answer["successful"] else 402
                except aiohttp.ClientError:
                    status = 0
                found.append((status, time.monotonic() - began))

    task = asyncio.create_task(poll())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_clients_of_a_host_that_is_drained_notice_a_reconnect_at_most(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as play:
        first, other, _ = play.hosts.all
        async with polling(first.url) as found:
            await until(lambda: len(found) > 5)
            await _is_door(first, by=other)
            count = len(found)
            await until(lambda: len(found) > count + 5)
        # The host had two shards, and no request was refused when it gave one of them.
        statuses = [status for status, _ in found]
        assert {*statuses} <= {0, 200}, statuses
        assert statuses.count(0) <= 2, statuses
        longest_s = max(took for _, took in found)
        sys.stdout.write(f"\nlost {statuses.count(0)}; the longest answer took {longest_s:.1f} s\n")


async def test_a_host_that_was_frozen_and_lost_everything_is_a_door_at_once(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as play:
        first, *others = play.hosts.all
        await first.signal_all(signal.SIGSTOP)
        await until(lambda: sum(len(each.shards) for each in others) == SHARDS, READY_S)
        # They have opened them, too.
        await play.goes_on("a host froze", READY_S)
        await first.signal_all(signal.SIGCONT)
        began = time.monotonic()
        timeout = aiohttp.ClientTimeout(total=LIMIT_S)
        async with aiohttp.ClientSession(first.url, timeout=timeout) as http:
            answers: list[int] = []
            while 200 not in answers:
                assert time.monotonic() - began < LIMIT_S, answers
                try:
                    async with http.post("/cometd", json=[HANDSHAKE]) as response:
                        answers.append(response.status)
                except aiohttp.ClientError:
                    # By a worker that is about to part.
                    answers.append(0)
                await asyncio.sleep(0.1)
        took_s = time.monotonic() - began
        sys.stdout.write(f"\na frozen host served after {took_s:.1f} s: {answers}\n")
        assert took_s < DOOR_S * BUSY * times_slower()
        await until(lambda: first.has_door and not first.shards)
        await play.goes_on("a host was frozen", HOST_S)
