"""Three hosts are updated one after the other, and go back: nobody with a name notices.

One neighbour is a copy of this release with all numbers one higher, the other one the last release
whose hosts could serve together. -s shows how long clients heard nothing; --every-step cuts links
at every step of an update, in both directions.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from pathlib import Path
from typing import NamedTuple, cast

import aiohttp
import pytest

from holdfast.distribution import release
from tests.chaos.host_moves import reached
from tests.chaos.hosts import NAMES, READY_S, Ways, three_hosts, until
from tests.chaos.later_release import SPOKEN, forgetful_release, later_release
from tests.chaos.proxy import Way
from tests.chaos.steps import STEPS
from tests.chaos.test_fixed_settings import SHARDS, host_maker
from tests.chaos.test_hosts import BUSY, Scene, asked_of_hosts, scene_of
from tests.chaos.updated_hosts import OWN, Listener, OnSocket, UpdatedHost
from tests.integration.former_releases import code_of, releases_with
from tests.slowness import times_slower
from tests.store.servers import ValkeyServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PEOPLE = 6
PAUSE_S = 0.05
# What is promised on machines that are not busy.
SILENCE_S = {Listener: 1.5, OnSocket: 2.5}
NEXT = "the next release"
# What waits for seconds is refused, as it does where processes share a processor with many others.
SLOW = 5.0
# Longer than links live without a beat.
CUT_S = 4.0


class How(Enum):
    """What happens to the links between a host and the others."""

    RESET = "all links are reset"
    DEAF = "for some seconds, nothing of the others reaches the host"
    MUTE = "for some seconds, nothing of the host reaches the others"


class Cut(NamedTuple):
    """A step of the processes that replace others in place, or are replaced, and what happens."""

    step: str
    how: How


# Not of hosts: they have no Valkey of their own.
ALL = [Cut(step, how) for step in STEPS if step != "valkey let go" for how in How]


class Update:
    """Hosts that get other code, while people listen and publish."""

    def __init__(self, play: Scene, ways: Ways) -> None:
        self._play, self._ways = play, ways
        self.hosts = cast("list[UpdatedHost]", play.hosts.all)
        self.people = cast("list[Listener]", play.traffic.members)
        # Answers to publishes without a session that were no success.
        self.failed: list[str] = []

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

    async def cut(self, host: UpdatedHost, code: Path, cut: Cut) -> None:
        """Replace the processes of a host, whose links are cut when one of them reaches a step.

        What doors pass on meanwhile fails, and nothing else does.
        """
        host.arm(cut.step, signal.SIGSTOP)
        host.have(code)
        restart = asyncio.create_task(host.restart())
        try:
            _, pid = await reached([host], cut.step)
            host.disarm(cut.step)
            cut_links(host, cut.how)
            os.kill(pid, signal.SIGCONT)
            if cut.how is not How.RESET:
                await asyncio.sleep(CUT_S)
                mend_links(host)
            assert await restart == ""
        finally:
            restart.cancel()
        await self._play.goes_on(f"{cut.step}: {cut.how.value}")
        self._are_marked()

    def _are_marked(self) -> None:
        assert [each.unmarked for each in self.people if each.unmarked] == []

    @asynccontextmanager
    async def _unnoticed(self, how: str) -> AsyncIterator[None]:
        failed = self._play.traffic.failed
        before = len(failed), len(self.failed)
        for each in self.people:
            each.begin()
        yield
        await self._play.goes_on(how)
        assert _wrong([*failed[before[0] :], *self.failed[before[1] :]]) == []
        self._are_marked()
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
                        answer = await response.text()
                        is_kept = response.status == 200 and json.loads(answer)[0]["successful"]
                except aiohttp.ClientError as error:
                    self.failed.append(repr(error))
                else:
                    if not is_kept:
                        self.failed.append(f"{response.status}: {answer}")
                await asyncio.sleep(PAUSE_S)


def _wrong(failures: Sequence[object]) -> list[object]:
    """Return which publishes may not have failed: any of them if the machine can keep up."""
    is_slow = times_slower() > SLOW
    return [each for each in failures if not (is_slow and f"{each}".startswith("503"))]


def cut_links(host: UpdatedHost, how: How) -> None:
    for each in host.links:
        if how is How.RESET:
            each.reset()
        else:
            is_from_host = (each.at != host.name) == (how is How.MUTE)
            each.one_way(Way.UP if is_from_host else Way.DOWN)


def mend_links(host: UpdatedHost) -> None:
    for each in host.links:
        each.heal()
        # What was lost must not be followed by anything.
        each.reset()


@asynccontextmanager
async def updating(home: Path, kind: type[UpdatedHost] = UpdatedHost) -> AsyncIterator[Update]:
    async with (
        three_hosts(home, kind=kind, max_sessions_per_browser=-1) as (hosts, ways),
        scene_of(hosts, ways, (Listener, OnSocket), PEOPLE) as play,
    ):
        ways.end_connections, play.traffic.pause_s = False, PAUSE_S
        update = Update(play, ways)
        publishing = asyncio.create_task(update.publish(ways.urls[1]))
        try:
            yield update
        finally:
            publishing.cancel()
            await asyncio.wait([publishing])


@pytest.mark.parametrize("neighbour", [NEXT, *releases_with("app/hosts/claims.py")[:1]])
async def test_hosts_are_updated_one_after_the_other_and_go_back_and_nobody_notices(
    neighbour: str, pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    if neighbour == NEXT:
        cuts = ALL if pytestconfig.getoption("--every-step") else []
        await _to_the_next_and_back(tmp_path, cuts)
    else:
        with code_of(neighbour) as code:
            await _from_the_last_and_back(tmp_path, code)


async def _to_the_next_and_back(home: Path, cuts: Sequence[Cut]) -> None:
    later = later_release(home)
    async with updating(home) as update:
        first, second, third = update.hosts
        await update.in_place(first, later)
        # Its shards go to hosts of both releases.
        await update.drained(second, later)
        assert SPOKEN in first.log()
        assert SPOKEN not in third.log()
        await update.cut(third, later, Cut("given complete", How.RESET))
        assert SPOKEN in third.log()
        await update.drained(first, OWN)
        await update.in_place(second, OWN)
        await update.cut(third, OWN, Cut("opened", How.DEAF))
        for number, each in enumerate(cuts):
            await update.cut(first, OWN if number % 2 else later, each)


async def _from_the_last_and_back(home: Path, code: Path) -> None:
    former = type("FormerHost", (UpdatedHost,), {"first_code": code, "has_steps": False})
    async with updating(home, former) as update:
        first, second, _ = update.hosts
        await update.in_place(first, OWN)
        await update.drained(second, OWN)
        await update.in_place(first, code)


async def test_a_release_without_a_form_of_links_in_common_is_refused_beside_living_hosts(
    tmp_path: Path,
) -> None:
    forgetful = forgetful_release(tmp_path)
    async with AsyncExitStack() as stack:
        store = stack.enter_context(ValkeyServer())
        make = host_maker(tmp_path, store.url, stack, UpdatedHost)
        hosts = [make(name, name) for name in NAMES[:2]]
        for each in hosts:
            each.begin()
        for each in hosts:
            await each.serves(READY_S)
        await until(lambda: sum(len(each.shards) for each in hosts) == SHARDS, READY_S)
        # A host that starts late may have none yet.
        first, second = sorted(hosts, key=lambda each: len(each.shards))
        shards = second.shards
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
