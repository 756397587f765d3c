"""What clients of several workers see while links, workers or their one store are in trouble."""

import asyncio
import os
import signal
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from holdfast.client import Client
from holdfast.store.local.home import Home
from tests.chaos.test_workers import Deployment, deployed, traffic, until
from tests.store.servers import ValkeyServer
from tests.web.test_start import self_signed

pytestmark = pytest.mark.slow  # each starts several processes

# Cuts all links that a worker has when a file appears.
CUTTING = """
import os, re, socket, threading, time

def cut():
    for each in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(each))) as found:
                ends = f"{found.getsockname()} {found.getpeername()} "
                if found.family == socket.AF_UNIX and re.search(r"/[0-9]+[.]sock ", ends):
                    found.shutdown(socket.SHUT_RDWR)
                    open("was-cut", "a").close()
        except OSError:
            pass

def watch():
    seen = 0
    while True:
        if os.path.exists("cut") and os.stat("cut").st_mtime_ns != seen:
            seen = os.stat("cut").st_mtime_ns
            cut()
        time.sleep(0.02)

def install(server):
    threading.Thread(target=watch, daemon=True).start()
"""


async def test_links_that_are_cut_are_made_again_and_no_session_ends(tmp_path: Path) -> None:
    (tmp_path / "cutting.py").write_text(CUTTING)
    async with (
        deployed(tmp_path, 3, "--extension", "cutting:install") as deployment,
        traffic(deployment) as flowing,
    ):
        for n in range(5):
            (tmp_path / "cut").write_text(str(n))
            await flowing.flows(20)
        assert [each.handshakes for each in flowing.members] == [1] * len(flowing.members)
        # What was on its way may have been published or not.
        assert {*flowing.failed} <= {"503:unknown:server_busy"}
    assert (tmp_path / "was-cut").exists()


def store_of(deployment: Deployment, shard: int) -> Path:
    data = deployment.data
    return data / "shards" / str(shard) if shard else data


Trouble = Callable[[Path], Awaitable[Callable[[], Awaitable[None]]]]


async def frozen(place: Path) -> Callable[[], Awaitable[None]]:
    pid = int((place / "store" / "valkey.pid").read_text())
    os.kill(pid, signal.SIGSTOP)

    async def thaw() -> None:
        os.kill(pid, signal.SIGCONT)

    return thaw


async def full(place: Path) -> Callable[[], Awaitable[None]]:
    async def limit(size: int) -> None:
        store: Any = Redis.from_url(Home(place).url)
        await store.config_set("maxmemory", size)
        await store.aclose()

    await limit(1)

    async def empty() -> None:
        await limit(0)

    return empty


# TLS, and one store for all


async def test_clients_with_tls_lose_nothing_when_workers_are_killed_and_restarted(
    tmp_path: Path,
) -> None:
    cert, key = self_signed(tmp_path)
    secure = ssl.create_default_context(cafile=cert)
    heard: list[Any] = []
    with_tls = "--tls-cert", cert, "--tls-key", key
    async with (
        deployed(tmp_path, 2, *with_tls) as deployment,
        Client(deployment.url, session="wss/1", ssl=secure) as socket,
    ):
        await socket.subscribe("/room", lambda message: heard.append(message.data))
        async with traffic(deployment, secure) as flowing:
            for pid in deployment.workers():
                before = deployment.workers()
                os.kill(pid, signal.SIGKILL)
                await until(lambda: set(deployment.workers()) - set(before))  # noqa: B023
                await flowing.flows()
            assert await deployment.restart() == {"done": True}
        # Nothing more is published.
        accepted = {*flowing.accepted}
        with suppress(TimeoutError):
            await until(lambda: accepted <= {*heard})
        numbers = [*dict.fromkeys(heard)]
        assert numbers == sorted(numbers)
        assert flowing.accepted == [each for each in numbers if each in accepted]


async def test_workers_with_one_store_lose_nothing_when_one_or_the_store_is_killed(
    tmp_path: Path,
) -> None:
    with ValkeyServer(appendonly="yes") as valkey:
        async with (
            deployed(tmp_path, 3, "--redis", valkey.url) as deployment,
            traffic(deployment) as flowing,
        ):
            before = deployment.workers()
            os.kill(before[1], signal.SIGKILL)
            await until(lambda: set(deployment.workers()) - set(before))
            await flowing.flows()
            await asyncio.to_thread(valkey.restart)
            await flowing.flows()
            assert len(set(deployment.workers()) & set(before)) == 2
