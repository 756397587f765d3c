"""What clients of several workers see while a worker, its store or a link is in trouble."""

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from holdfast.client import Client
from holdfast.store.home import Home
from tests.chaos.test_workers import Deployment, Member, deployed, have_heard, traffic, until
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
FROZEN_S = 3.0


async def test_a_frozen_worker_goes_on_when_it_thaws(tmp_path: Path) -> None:
    async with deployed(tmp_path, 3) as deployment, traffic(deployment) as flowing:
        before = deployment.workers()
        os.kill(before[1], signal.SIGSTOP)
        await asyncio.sleep(FROZEN_S)
        os.kill(before[1], signal.SIGCONT)
        await flowing.flows()
        assert deployment.workers() == before
        assert [each.handshakes for each in flowing.members] == [1] * len(flowing.members)


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


# The store of one worker


class People:
    """A named session at each of three workers. All are in one room."""

    def __init__(self, members: list[Member]) -> None:
        self.members = members
        self.accepted: list[int] = []
        self.errors: list[set[str]] = [set() for _ in members]
        self._number = 0

    async def publish(self, shard: int) -> bool:
        """Publish once; whether it was accepted."""
        self._number += 1
        number = self._number
        replies = await self.members[shard].ask("/room", data=number)
        reply = next(each for each in replies if each["channel"] == "/room")
        if reply["successful"]:
            self.accepted.append(number)
        else:
            self.errors[shard].add(reply["error"])
        return bool(reply["successful"])

    async def go_on(self, shard: int) -> None:
        """Publish until it is accepted again."""
        async with asyncio.timeout(30):
            while not await self.publish(shard):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.05)


@asynccontextmanager
async def people(deployment: Deployment) -> AsyncIterator[People]:
    found: dict[int, Member] = {}
    async with AsyncExitStack() as stack:
        for n in range(100):
            member = Member(deployment.url, f"person{n}/1")
            stack.push_async_callback(member.http.close)
            await member.join()
            async with member.http.get("/cluster/map") as response:
                ranges = (await response.json())["ranges"]
            bucket = int(member.client_id[:3])
            [shard] = [shard for low, high, shard in ranges if low <= bucket <= high]
            found.setdefault(shard, member)
            if len(found) == deployment.count:
                break
        made = People([found[shard] for shard in sorted(found)])
        listening = [asyncio.create_task(each.listen()) for each in made.members]
        try:
            yield made
            await have_heard(made.members, {*made.accepted})
        finally:
            for each in listening:
                each.cancel()
            await asyncio.wait(listening)


def store_of(deployment: Deployment, shard: int) -> Path:
    data = deployment.data
    return data / "shards" / str(shard) if shard else data


Trouble = Callable[[Path], Awaitable[Callable[[], Awaitable[None]]]]


async def killed(place: Path) -> Callable[[], Awaitable[None]]:
    os.kill(int((place / "store" / "valkey.pid").read_text()), signal.SIGKILL)
    return _nothing


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


async def _nothing() -> None:
    """It comes back by itself."""


AWAY = {
    "503:communication.noConnection:store_unavailable",
    "503:communication.noConnection:store_unavailable,unknown",
}


@pytest.mark.parametrize("trouble", [killed, frozen, full])
async def test_a_store_in_trouble_holds_up_publishers_of_its_worker_alone(
    tmp_path: Path, trouble: Trouble
) -> None:
    async with deployed(tmp_path, 3) as deployment, people(deployment) as all_:
        for shard in range(3):
            assert await all_.publish(shard)
        end = await trouble(store_of(deployment, 1))
        refused = asyncio.create_task(all_.publish(1))
        for n in range(60):
            assert await all_.publish(2 * (n % 2)), all_.errors
            await asyncio.sleep(0.02)
        await end()
        await refused
        await all_.go_on(1)
        for shard in range(3):
            assert await all_.publish(shard)
        assert all_.errors[1] <= AWAY, all_.errors
        assert trouble is not full or all_.errors[1], "nothing was refused"
        assert [each.handshakes for each in all_.members] == [1, 1, 1]


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
            await until(lambda: accepted <= {*heard}, 20)
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
