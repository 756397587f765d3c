"""Three hosts, of which one fails: the others have its shards, and who has a name goes on.

-s shows how long the named sessions waited.
"""

import asyncio
import math
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.chaos.host_books import close_books
from tests.chaos.hosts import NAMES, READY_S, Hosts, Ways, three_hosts, until
from tests.chaos.test_workers import Member, Traffic
from tests.chaos.twin import LIMIT_S, Twin
from tests.serving import ROOT, environment
from tests.slowness import times_slower

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# What is promised on machines that are not busy; this one plays three of them.
HOST_S = 4.5
BUSY = 2.0
PEOPLE = 12
# Where the command finds its token, in the data of a host.
TOKEN = "admin-token"
DRAINED = "host {} is drained\n"


class Scene:
    """The hosts, and people with names at all of their doors."""

    def __init__(self, hosts: Hosts, traffic: Traffic) -> None:
        self.hosts, self.traffic = hosts, traffic

    async def goes_on(self, what: str, within_s: float = math.inf) -> float:
        """Wait until all sessions get a message that is published from now on; say how long."""
        began, last = time.monotonic(), self.traffic.number
        members = self.traffic.members
        while not all(each.heard and each.heard[-1] > last for each in members):
            assert time.monotonic() - began < LIMIT_S, f"{what}: the sessions do not go on"
            await asyncio.sleep(0.02)
        took_s = time.monotonic() - began
        load = os.getloadavg()[0]
        sys.stdout.write(f"\n{what}: the sessions went on after {took_s:.1f} s, load {load:.0f}\n")
        assert took_s < within_s * BUSY * times_slower(), what
        return took_s


@asynccontextmanager
async def scene(home: Path) -> AsyncIterator[Scene]:
    async with (
        three_hosts(home, max_sessions_per_browser=-1) as (hosts, ways),
        scene_of(hosts, ways) as found,
    ):
        yield found


@asynccontextmanager
async def scene_of(
    hosts: Hosts, ways: Ways, kinds: Sequence[type[Member]] = (Member,), people: int = PEOPLE
) -> AsyncIterator[Scene]:
    """People of these kinds at all doors, of whom the first one publishes.

    In the end all have heard everything, in the session of their start, and the accounts of all
    shards balance.
    """
    async with AsyncExitStack() as stack:
        urls = ways.urls
        kind_of = [kinds[n // len(urls) % len(kinds)] for n in range(people + 1)]
        members = [kind(urls[n % 3], f"person{n}/1") for n, kind in enumerate(kind_of)]
        for each in members:
            stack.push_async_callback(each.http.close)
            await each.join()
        flowing = Traffic(members[1:], members[0])
        tasks = [asyncio.create_task(each.listen()) for each in flowing.members]
        publishing = asyncio.create_task(flowing.publish())
        try:
            await flowing.flows()
            yield Scene(hosts, flowing)
            await flowing.flows()
            publishing.cancel()
            await asyncio.wait([publishing])
            await flowing.arrived()
            await close_books(hosts.all, [each.name for each in flowing.members])
        finally:
            for task in (publishing, *tasks):
                task.cancel()
            await asyncio.wait([publishing, *tasks])
        assert [each.handshakes for each in flowing.members] == [1] * people


async def test_a_host_that_comes_back_gets_its_shards_and_nobody_handshakes_anew(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as play:
        first = play.hosts.all[0]
        await first.kill_all()
        await play.goes_on("host killed", HOST_S)
        first.begin()
        # It serves clients at once.
        await first.serves(LIMIT_S)
        await play.goes_on("host came back", 1.5)
        await until(lambda: first.shards, READY_S)
        await play.goes_on("a shard came back", 1.5)


async def test_a_host_that_is_drained_has_no_shard_and_nobody_handshakes_anew(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as play:
        first, other, _ = play.hosts.all
        done = await asyncio.to_thread(drained, NAMES[0], by=other)
        assert (done.returncode, done.stdout) == (0, f"{NAMES[0]} has no shard\n"), done.stderr
        assert await first.readiness() == (503, DRAINED.format(NAMES[0]))
        await play.goes_on("host drained", 1.5)


def drained(host: str, by: Twin, token: Path | None = None) -> "subprocess.CompletedProcess[str]":
    """Drain a host by the command, which asks another one."""
    return asked_of_hosts("drain", host, "--wait", by=by, token=token)


def uncordoned(
    host: str, by: Twin, token: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Let a host have shards again."""
    return asked_of_hosts("uncordon", host, by=by, token=token)


def asked_of_hosts(
    *words: str, by: Twin, token: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command about hosts, which asks one of them."""
    asked = ["--url", by.url, "--token-file", str(token or by.data / TOKEN)]
    return subprocess.run(
        [sys.executable, "-m", "holdfast", "host", *words, *asked],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
