"""Whatever fails of three hosts and their store, and updates of all: who has a name goes on.

-s shows how long the named sessions waited.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.hosts import Host, three_hosts, three_hosts_on_a_cluster, until
from tests.chaos.test_hosts import HOST_S, Scene, scene_of
from tests.store.cluster import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# What is promised on machines that are not busy.
WORKER_S, PRIMARY_S, RESTART_S = 2.0, 7.0, 1.5
# Longer than a lease lasts, and than a supervisor waits for a worker that does not run.
FROZEN_S = 20.0
CUT_S = 6.0


@asynccontextmanager
async def nothing_fails(play: Scene, what: str) -> AsyncIterator[None]:
    """No publish is to fail meanwhile."""
    before = len(play.traffic.failed)
    yield
    assert play.traffic.failed[before:] == [], what


async def test_a_host_loses_its_processes_or_what_it_reaches(tmp_path: Path) -> None:
    async with (
        three_hosts(tmp_path, max_sessions_per_browser=-1) as (hosts, ways),
        scene_of(hosts, ways) as play,
    ):
        await _a_worker_is_killed(play)
        await _a_claimer_is_killed(play)
        await _a_host_is_cut_off_from_the_others(play, hosts.all[0])
        await _a_host_is_cut_off_from_the_store(play, hosts.all[1])
        await _a_supervisor_is_killed(play, hosts.all[2])


async def _a_worker_is_killed(play: Scene) -> None:
    owner = play.hosts.owner_of(0)
    os.kill(owner.shards[0], signal.SIGKILL)
    await play.goes_on("worker killed", WORKER_S)
    await until(play.hosts.have_all_shards)
    assert 0 in owner.shards, "another host has taken its shard"


async def _a_claimer_is_killed(play: Scene) -> None:
    host = play.hosts.all[0]
    before, shards = host.claimer, host.shards
    async with nothing_fails(play, "claimer killed"):
        os.kill(before, signal.SIGKILL)
        await play.goes_on("claimer killed", WORKER_S)
    await until(lambda: host.claimer not in (before, 0))
    assert host.shards == shards, "a worker has ended with it"


async def _a_host_is_cut_off_from_the_others(play: Scene, host: Host) -> None:
    shards = {each: each.shards for each in play.hosts.all}
    host.cut_off_from_hosts()
    await asyncio.sleep(CUT_S)
    host.heal()
    await play.goes_on("cut off from the other hosts, and back", HOST_S)
    assert {each: each.shards for each in play.hosts.all} == shards, "a shard has moved"


async def _a_host_is_cut_off_from_the_store(play: Scene, host: Host) -> None:
    lost = host.shards
    assert lost
    host.cut_off_from_store()
    await play.goes_on("cut off from the store", HOST_S)
    await asyncio.sleep(CUT_S)
    host.heal()
    await until(lambda: not host.shards.keys() & lost.keys())
    await until(play.hosts.have_all_shards)


async def _a_supervisor_is_killed(play: Scene, host: Host) -> None:
    os.kill(host.supervisor_pid, signal.SIGKILL)
    await host.ended()
    await play.goes_on("supervisor killed", HOST_S)
    host.begin()


async def test_hosts_and_primaries_fail_and_are_updated(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"max_sessions_per_browser": -1, "durability": "replicas:1"}
    async with (
        three_hosts_on_a_cluster(tmp_path, **settings) as (hosts, ways, cluster),
        scene_of(hosts, ways) as play,
    ):
        await _all_hosts_are_updated(play)
        await _a_primary_is_failed_over(play, cluster)
        await _a_primary_is_killed(play, cluster)
        first, second, third = hosts.all
        await _a_host_is_stopped(play, first)
        await _a_host_is_frozen_and_says_nothing_when_it_thaws(play, second)
        await _a_host_is_killed(play, third)


async def _all_hosts_are_updated(play: Scene) -> None:
    for host in play.hosts.all:
        shards = host.shards
        async with nothing_fails(play, "update"):
            assert await host.restart() == ""
            await play.goes_on("host updated", RESTART_S)
        assert host.shards.keys() == shards.keys()
        assert not {*host.shards.values()} & {*shards.values()}


async def _a_primary_is_failed_over(play: Scene, cluster: Cluster) -> None:
    former = cluster.nodes[0]
    replica = cluster.replica_of(former)
    replica.ask("CLUSTER", "FAILOVER")
    await play.goes_on("primary failed over", PRIMARY_S)
    await until(lambda: replica.info["role"] == "master")


async def _a_primary_is_killed(play: Scene, cluster: Cluster) -> None:
    cluster.nodes[1].kill()
    await play.goes_on("primary killed", PRIMARY_S)
    await asyncio.to_thread(cluster.revive)


async def _a_host_is_stopped(play: Scene, host: Host) -> None:
    assert await host.stop() == 0
    await play.goes_on("host stopped", WORKER_S)
    host.begin()


async def _a_host_is_frozen_and_says_nothing_when_it_thaws(play: Scene, host: Host) -> None:
    lost = host.shards
    assert lost
    await host.signal_all(signal.SIGSTOP)
    began = time.monotonic()
    await play.goes_on("host frozen", HOST_S)
    await asyncio.sleep(FROZEN_S - (time.monotonic() - began))
    await host.signal_all(signal.SIGCONT)
    await until(lambda: not host.shards.keys() & lost.keys())
    await play.goes_on("host thawed", WORKER_S)


async def _a_host_is_killed(play: Scene, host: Host) -> None:
    await host.kill_all()
    await play.goes_on("host killed", HOST_S)
