"""Two servers on one Cluster, as on the page "Two machines": what is not as with Sentinels.

-s shows how long the named sessions waited.
"""

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.store.format.tags import slot_of, tag_of
from tests.chaos.machines import HasServer, Pair, until
from tests.chaos.test_two_machines import BOTH_S, PRIMARY_S, SERVER_S, SETTINGS, Scene, scene_of
from tests.store.cluster import Cluster, Node, cluster

pytestmark = pytest.mark.slow

# As many shards, which are at two primaries.
WORKERS = [int(each) for each in os.environ.get("HOLDFAST_WORKERS", "2").split(",")]


class Clustered(Pair[HasServer]):
    """Two servers on a cluster of three primaries with a replica each."""

    def __init__(
        self, home: Path, stack: AsyncExitStack, settings: Mapping[str, Any], found: Cluster
    ) -> None:
        super().__init__(home, stack, settings)
        self.cluster = found
        for name in ("one", "two"):
            machine = HasServer()
            machine.twin = self._start_with(found.url, name)
            self.all.append(machine)

    def primary_of(self, shard: int) -> Node:
        return self.cluster.owner_of(slot_of(tag_of("holdfast", shard)))

    async def are_whole(self) -> None:
        await until(self.cluster.is_well)


@pytest.mark.parametrize("workers", WORKERS)
async def test_servers_and_primaries_fail_and_are_failed_over(tmp_path: Path, workers: int) -> None:
    async with AsyncExitStack() as stack:
        found = stack.enter_context(cluster())
        machines = Clustered(tmp_path, stack, {**SETTINGS, "workers": workers}, found)
        play = await stack.enter_async_context(scene_of(machines, tmp_path))
        await _a_server_is_killed(play)
        await _a_primary_is_failed_over(play)
        await _a_primary_is_killed(play)
        await _server_and_primary_are_killed(play)


async def _a_server_is_killed(play: Scene[Clustered]) -> None:
    one = await play.machines.active()
    await one.twin.kill_all()
    await play.goes_on("server killed", SERVER_S)
    one.twin.begin()
    await play.machines.are_well()


async def _a_primary_is_failed_over(play: Scene[Clustered]) -> None:
    serves = await play.machines.active()
    former = play.machines.primary_of(0)
    play.machines.cluster.replica_of(former).ask("CLUSTER", "FAILOVER")
    await until(lambda: play.machines.primary_of(0) is not former)
    await play.goes_on("primary failed over", PRIMARY_S)
    await play.machines.are_whole()
    assert await play.machines.active() is serves


async def _a_primary_is_killed(play: Scene[Clustered]) -> None:
    serves = await play.machines.active()
    play.machines.primary_of(0).kill()
    await play.goes_on("primary killed", PRIMARY_S)
    assert await play.machines.active() is serves
    play.machines.cluster.revive()
    await play.machines.are_whole()


async def _server_and_primary_are_killed(play: Scene[Clustered]) -> None:
    one = await play.machines.active()
    play.machines.primary_of(0).kill()
    await one.twin.kill_all()
    await play.goes_on("server and primary killed", BOTH_S)
    play.machines.cluster.revive()
    one.twin.begin()
    await play.machines.are_well()
