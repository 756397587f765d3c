"""Three hosts are updated one after the other, and go back: nobody with a name notices.

The other release is a copy of this one with all numbers one higher. -s shows how long clients heard
nothing.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import aiohttp
import pytest

from holdfast.distribution import release
from tests.chaos.hosts import NAMES, READY_S, Ways, three_hosts, until
from tests.chaos.later_release import SPOKEN, forgetful_release, later_release
from tests.chaos.test_fixed_settings import SHARDS, host_maker
from tests.chaos.test_hosts import BUSY, Scene, asked_of_hosts, scene_of
from tests.chaos.updated_hosts import OWN, Listener, OnSocket, UpdatedHost
from tests.slowness import times_slower
from tests.store.servers import ValkeyServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# What is promised on machines that are not busy.
SILENCE_S = {Listener: 1.5, OnSocket: 2.5}


class Update:
    """Hosts that get other code, while people listen and publish."""

    def __init__(self, play: Scene, ways: Ways) -> None:
        self._play, self._ways = play, ways
        self.hosts = cast("list[UpdatedHost]", play.hosts.all)
        self.people = cast("list[Listener]", play.traffic.members)
        # Answers to publishes without a session that were no success.
        self.failed: list[object] = []

    async def in_place(self, host: UpdatedHost, code: Path) -> None:
        """Replace the processes of a host, which keeps its shards."""
        shards = host.shards.keys()
        host.have(code)
        async with self._unnoticed("in place"):
            assert await host.restart() == ""
        assert host.shards.keys() == shards

    async def drained(self, host: UpdatedHost, code: Path) -> None:
        """Have a host give its shards away before it is replaced."""
        hosts = self._play.hosts
        async with self._unnoticed("drained"):
            await hosts.drain(host)
            await until(lambda: not host.shards and host.has_door)
            await self._ways.lead_away_from(host)
            host.have(code)
            assert await host.stop() == 0
            host.begin()
            await hosts.uncordon(host)
            await host.serves(READY_S)
        await until(hosts.have_all_shards)

    @asynccontextmanager
    async def _unnoticed(self, how: str) -> AsyncIterator[None]:
        failed = self._play.traffic.failed
        before = len(failed), len(self.failed)
        for each in self.people:
            each.begin()
        yield
        await self._play.goes_on(how)
        assert (failed[before[0] :], self.failed[before[1] :]) == ([], [])
        assert [each.unmarked for each in self.people if each.unmarked] == []
        for kind, silence_s in SILENCE_S.items():
            found_s = max(each.silence_s for each in self.people if type(each) is kind)
            sys.stdout.write(f"{how}: {kind.__name__} heard nothing for {found_s:.2f} s\n")
            assert found_s < silence_s * BUSY * times_slower()

    async def publish(self, url: str) -> None:
        """Publish without a session for as long as the test lasts."""
        async with aiohttp.ClientSession(url) as http:
            while True:
                try:
                    said = {"channel": "/elsewhere", "data": 1}
                    async with http.post("/publish", json=said) as response:
                        answer = await response.json() if response.status == 200 else None
                except aiohttp.ClientError as error:
                    self.failed.append(error)
                else:
                    if answer is None or not answer[0]["successful"]:
                        self.failed.append((response.status, answer))
                await asyncio.sleep(0.05)


@asynccontextmanager
async def updating(home: Path) -> AsyncIterator[Update]:
    async with (
        three_hosts(home, kind=UpdatedHost, max_sessions_per_browser=-1) as (hosts, ways),
        scene_of(hosts, ways, (Listener, OnSocket)) as play,
    ):
        ways.end_connections = False
        update = Update(play, ways)
        publishing = asyncio.create_task(update.publish(ways.urls[1]))
        try:
            yield update
        finally:
            publishing.cancel()
            await asyncio.wait([publishing])


async def test_hosts_are_updated_to_other_forms_and_back_and_nobody_notices(
    tmp_path: Path,
) -> None:
    later = later_release(tmp_path)
    async with updating(tmp_path) as update:
        first, second, third = update.hosts
        await update.in_place(first, later)
        # Its shards go to hosts of both releases.
        await update.drained(second, later)
        assert SPOKEN in first.log()
        assert SPOKEN not in third.log()
        await update.in_place(third, later)
        assert SPOKEN in third.log()
        await update.in_place(third, OWN)
        await update.drained(first, OWN)
        await update.in_place(second, OWN)


async def test_a_release_without_a_form_of_links_in_common_is_refused_beside_living_hosts(
    tmp_path: Path,
) -> None:
    forgetful = forgetful_release(tmp_path)
    async with AsyncExitStack() as stack:
        store = stack.enter_context(ValkeyServer())
        make = host_maker(tmp_path, store.url, stack, UpdatedHost)
        first, second = (make(name, name) for name in NAMES[:2])
        for each in (first, second):
            each.begin()
            await each.serves(READY_S)
        await until(lambda: len(first.shards) + len(second.shards) == SHARDS, READY_S)
        shards = second.shards
        assert shards
        second.have(forgetful)
        why = await second.restart()
        assert f"has no form of links in common with {release()} on {first.name}: update" in why
        assert second.shards == shards
        assert (await second.readiness())[0] == 200
        # Nor does it take anything if it is started anew.
        assert await second.stop() == 0
        await until(lambda: len(first.shards) == SHARDS, READY_S)
        second.begin()
        await second.until(lambda: "takes no shard" in second.log())
        [said] = [each for each in second.lines() if "takes no shard" in each]
        assert f"in common with {release()} on {first.name}: update" in said
        assert (await second.readiness())[0] == 503
        assert not second.shards
        listed = await asyncio.to_thread(asked_of_hosts, "list", by=first)
        assert f"{second.name} takes no shard, because release" in listed.stderr + listed.stdout
        # Alone, it serves.
        assert await first.stop() == 0
        await until(lambda: len(second.shards) == SHARDS, READY_S)
        await second.serves(READY_S)
