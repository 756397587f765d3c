"""The page "Two machines", played: each failure on it, with supervisors, stores and Sentinels.

-s shows how long the named sessions waited.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import aiohttp
import pytest

from tests.chaos.doors import DOORS, Door, door_to
from tests.chaos.machines import LIMIT_S, Machine, Machines, Pair, until
from tests.chaos.test_workers import Member, Traffic, traffic
from tests.slowness import times_slower

pytestmark = pytest.mark.slow

# What the page promises on machines that are not busy; this one plays three of them.
SERVER_S, PRIMARY_S, BOTH_S = 5.0, 7.0, 10.0
BUSY = 2.0
FROZEN_S = 20.0
# After a failover, Sentinels let twice its timeout pass before they begin the next one.
APART_S = 12.5
# How many workers the servers have in failures that take long; HOLDFAST_WORKERS=1,2 plays all.
SOME = [int(each) for each in os.environ.get("HOLDFAST_WORKERS", "2").split(",")]
SETTINGS = {"durability": "replicas:1", "max_sessions_per_browser": -1}


P = TypeVar("P", bound=Pair[Any])


class Scene(Generic[P]):
    """The machines, what leads clients to the server that serves, and the clients."""

    def __init__(self, machines: P, door: Door) -> None:
        self.machines, self.door = machines, door
        self.url = door.url
        self.flowing: Traffic

    async def goes_on(self, what: str, within_s: float) -> None:
        """Wait until all sessions get a message that is published from now on."""
        began, last = time.monotonic(), self.flowing.number
        members = self.flowing.members
        while not all(each.heard and each.heard[-1] > last for each in members):
            assert time.monotonic() - began < LIMIT_S, f"{what}: the sessions do not go on"
            await asyncio.sleep(0.02)
        took_s = time.monotonic() - began
        sys.stdout.write(f"\n{what}: the sessions went on after {took_s:.1f} s\n")
        assert took_s < within_s * BUSY * times_slower(), what


@asynccontextmanager
async def scene(
    home: Path, workers: int = 1, door: str = "follower"
) -> AsyncIterator[Scene[Machines]]:
    async with AsyncExitStack() as stack:
        machines = Machines(home, stack, {**SETTINGS, "workers": workers})
        await stack.enter_async_context(machines)
        yield await stack.enter_async_context(scene_of(machines, home, door))


@asynccontextmanager
async def scene_of(machines: P, home: Path, door: str = "follower") -> AsyncIterator[Scene[P]]:
    await machines.begin()
    async with door_to(door, home, machines) as leading:
        found = Scene(machines, leading)
        await found.machines.are_well()
        async with traffic(found) as found.flowing:
            yield found
    for each in machines.twins:
        assert "Traceback" not in each.log()


@pytest.mark.parametrize("door", DOORS)
async def test_clients_behind_a_proxy_follow_the_server_that_serves(
    tmp_path: Path, door: str
) -> None:
    async with scene(tmp_path, door=door) as found:
        one = await found.machines.active()
        await one.twin.kill_all()
        await found.goes_on(f"server killed behind {door}", SERVER_S)


@pytest.mark.parametrize("workers", SOME)
@pytest.mark.timeout(600)
async def test_sessions_go_on_whatever_fails(tmp_path: Path, workers: int) -> None:
    async with scene(tmp_path, workers) as found:
        await _a_server_process_dies_and_its_supervisor_starts_another(found)
        for _ in range(2):
            await _a_server_is_killed(found)
        await _a_server_is_frozen_and_says_nothing_when_it_thaws(found)
        await _the_primary_is_killed(found)
        await _server_and_primary_are_killed(found)
        await _a_machine_with_server_and_primary_is_cut_off(found)
        await _both_servers_are_updated(found)


async def _a_server_process_dies_and_its_supervisor_starts_another(found: Scene[Machines]) -> None:
    one = await found.machines.active()
    await one.twin.kill()
    await found.goes_on("process of the server killed", SERVER_S)
    assert await found.machines.active() is one


async def _a_server_is_killed(found: Scene[Machines]) -> None:
    one = await found.machines.active()
    await one.twin.kill_all()
    await found.goes_on("server killed", SERVER_S)
    one.twin.begin()
    await found.machines.are_well()


async def _a_server_is_frozen_and_says_nothing_when_it_thaws(found: Scene[Machines]) -> None:
    one = await found.machines.active()
    async with heard_at(one) as replies:
        await one.twin.signal_all(signal.SIGSTOP)
        began = time.monotonic()
        await found.goes_on("server frozen", SERVER_S)
        await asyncio.sleep(FROZEN_S - (time.monotonic() - began))
        await one.twin.signal_all(signal.SIGCONT)
        await one.twin.waits()
    assert replies == []


async def _the_primary_is_killed(found: Scene[Machines]) -> None:
    served, one = await found.machines.active(), found.machines.primary
    one.store.kill()
    await found.goes_on("primary killed", PRIMARY_S)
    assert await found.machines.active() is served
    one.store.start()
    await found.machines.are_whole()


async def _together(found: Scene[Machines]) -> Machine:
    """Fail the primary over as planned, until it is at the machine whose server serves."""
    one = await found.machines.active()
    while (former := found.machines.primary) is not one:
        former.voter.ask("SENTINEL", "FAILOVER", "shop")
        await until(lambda: found.machines.primary is not former)
        await found.goes_on("primary failed over", PRIMARY_S)
        await found.machines.are_whole()
    await asyncio.sleep(APART_S)
    return one


async def _server_and_primary_are_killed(found: Scene[Machines]) -> None:
    one = await _together(found)
    await one.twin.kill_all()
    one.store.kill()
    one.voter.kill()
    await found.goes_on("machine with server and primary killed", BOTH_S)
    one.voter.start()
    one.store.start()
    one.twin.begin()
    await found.machines.are_well()


async def _a_machine_with_server_and_primary_is_cut_off(found: Scene[Machines]) -> None:
    one = await _together(found)
    async with heard_at(one) as replies:
        one.cut_off()
        # Its clients are on the other side.
        found.door.leave(one)
        await found.goes_on("machine cut off", BOTH_S)
        await until(lambda: found.machines.primary is not one)
        one.heal()
        found.door.admit(one)
        await one.twin.waits()
    assert replies == []
    await found.machines.are_well()


async def _both_servers_are_updated(found: Scene[Machines]) -> None:
    active = await found.machines.active()
    known = [each.handshakes for each in found.flowing.members]
    # First the one that waits, then the one that serves.
    for each in (found.machines.other(active).twin, active.twin):
        former = await each.workers()
        assert await each.restart() == ""
        await until(partial(have_ended, former))
    assert await found.machines.active() is active
    await found.goes_on("both servers updated", SERVER_S)
    assert [each.handshakes for each in found.flowing.members] == known


def have_ended(pids: list[int]) -> bool:
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@asynccontextmanager
async def heard_at(machine: Machine) -> AsyncIterator[list[Any]]:
    """What a server accepts from those who came to it before, from now to the end."""
    witness = Member(machine.twin.url, "witness/1")
    await witness.join()
    # The first one is answered at once.
    await witness.connect()
    replies: list[Any] = []

    async def ask(channel: str, **fields: Any) -> None:
        with suppress(aiohttp.ClientError, AssertionError, TimeoutError):
            async with asyncio.timeout(30):
                replies.extend(
                    each for each in await witness.ask(channel, **fields) if each["successful"]
                )

    held = asyncio.create_task(
        ask("/meta/connect", connectionType="long-polling", advice={"timeout": 60_000})
    )
    await asyncio.sleep(0.2)
    try:
        yield replies
        await ask("/elsewhere", data=1)
        held.cancel()
        await asyncio.wait([held])
    finally:
        held.cancel()
        await witness.http.close()
