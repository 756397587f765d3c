"""`python -m tests.chaos.silent_primaries`: how long shards are silent whose primary fails.

Each of three primaries has two replicas. Each shard has a session that talks to itself, so that one
whose primary lives has to notice nothing.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from holdfast.store.format.tags import slot_of, tag_of
from tests.chaos import own_network
from tests.chaos.host_deeds import HostDeeds
from tests.chaos.hosts import SHARDS, Hosts, three_hosts_on_a_cluster
from tests.chaos.test_workers import Member, Traffic
from tests.chaos.twin import LIMIT_S
from tests.chaos.waiting_crowd import shards_of
from tests.store.cluster import Cluster

WAYS = ("primary killed", "primary frozen", "primary isolated", "primary failed over")
_FIRST_USER = 60_000
_QUIET_S = 10.0
_LOOK_S = 0.01
Gaps = list[float]


class Soliloquy:
    """A session that publishes to itself, and the longest time in which it heard nothing."""

    def __init__(self, member: Member) -> None:
        self.member, self.traffic = member, Traffic([member], member)
        self.longest_s = 0.0

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        heard, since = 0, loop.time()
        while True:
            self.longest_s = max(self.longest_s, loop.time() - since)
            if len(self.member.heard) > heard:
                heard, since = len(self.member.heard), loop.time()
            await asyncio.sleep(_LOOK_S)

    async def goes_on(self) -> None:
        """Wait until it hears what it publishes from now on."""
        last = self.traffic.number
        async with asyncio.timeout(LIMIT_S):
            while max(self.member.heard[-1:], default=0) <= last:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)


class Silences:
    """What `HostDeeds` happen to: says how long shards are silent with each of them."""

    def __init__(self, hosts: Hosts, cluster: Cluster, talkers: Mapping[int, Soliloquy]) -> None:
        self.hosts = hosts
        self._cluster, self._talkers = cluster, talkers
        self._before = self._owners()
        # Of shards whose primary has failed, and of the others.
        self.failed: dict[str, Gaps] = defaultdict(list)
        self.others: dict[str, Gaps] = defaultdict(list)

    def begin(self) -> None:
        """Let the primaries of this moment be those that the next deed replaces."""
        self._before = self._owners()
        self._forget()

    def _forget(self) -> None:
        for each in self._talkers.values():
            each.longest_s = 0.0

    async def goes_on(self, what: str) -> None:
        """Wait until all shards go on; those with another primary than before have lost one."""
        await asyncio.gather(*(each.goes_on() for each in self._talkers.values()))
        now = self._owners()
        for shard, talker in self._talkers.items():
            have_failed = now[shard] is not self._before[shard]
            (self.failed if have_failed else self.others)[what].append(talker.longest_s)
        self._forget()

    def _owners(self) -> dict[int, object]:
        slots = {shard: slot_of(tag_of("holdfast", shard)) for shard in range(SHARDS)}
        return {shard: self._cluster.owner_of(slot) for shard, slot in slots.items()}


@asynccontextmanager
async def talking(hosts: Hosts, urls: Sequence[str]) -> AsyncIterator[Mapping[int, Soliloquy]]:
    """Have a session with a name talk in each shard; in the end each has heard all of it."""
    async with AsyncExitStack() as stack:
        found: dict[int, Soliloquy] = {}
        number = 0
        while len(found) < SHARDS:
            member = Member(urls[number % len(urls)], f"talker{number}/1")
            member.room = f"/soliloquy/{number}"
            number += 1
            stack.push_async_callback(member.http.close)
            await member.join()
            [shard] = await shards_of([member.client_id], hosts.all[0].url)
            found.setdefault(shard, Soliloquy(member))
        works = [(each.member.listen(), each.watch()) for each in found.values()]
        tasks = [asyncio.create_task(each) for both in works for each in both]
        publishing = [asyncio.create_task(each.traffic.publish()) for each in found.values()]
        try:
            yield found
            for each in publishing:
                each.cancel()
            await asyncio.wait(publishing)
            for talker in found.values():
                await talker.traffic.arrived()
                assert talker.member.handshakes == 1, "a session has ended"
        finally:
            for each in (*tasks, *publishing):
                each.cancel()
            await asyncio.wait([*tasks, *publishing])


async def measure(home: Path, rounds: int) -> str:
    user = _FIRST_USER if own_network.is_own() else None
    settings: dict[str, Any] = {
        "max_sessions_per_browser": -1,
        "durability": "replicas:1",
        "max_queue": 100_000,
    }
    made = three_hosts_on_a_cluster(home, first_user=user, is_as_promised=True, **settings)
    async with made as (hosts, ways, cluster), talking(hosts, ways.urls) as talkers:
        silence = Silences(hosts, cluster, talkers)
        deeds = HostDeeds(silence, Random(1), cluster)
        silence.begin()
        await asyncio.sleep(_QUIET_S)
        await silence.goes_on("nothing")
        for _ in range(rounds):
            for name in [each for each in WAYS if each in deeds.all]:
                silence.begin()
                await deeds.do(name)
                _say(f"{name}: done, load {os.getloadavg()[0]:.0f}")
        published = sum(len(each.traffic.accepted) for each in talkers.values())
    rows = [_row(what, silence) for what in (*silence.others,)]
    end = f"{published} messages were accepted, none is missing, and no session has ended"
    return "\n".join([*rows, end])


def _row(what: str, silence: Silences) -> str:
    sides = (("its shards", silence.failed[what]), ("others", silence.others[what]))
    said = [f"{who} {median(its):.1f} s, at most {max(its):.1f} s" for who, its in sides if its]
    return f"{what:20} {'; '.join(said)}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    name = "tests.chaos.silent_primaries"
    parser = argparse.ArgumentParser(prog=f"python -m {name}", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    own_network.enter(name)
    if own_network.is_own():
        own_network.set_up()
    with tempfile.TemporaryDirectory(prefix="holdfast-silence-") as home:
        _say(asyncio.run(measure(Path(home), given.rounds)))


if __name__ == "__main__":
    main()
