"""A server takes all shards of a deployment or none, and only as long as others are silent."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.compose import gates
from holdfast.compose.placement import placed
from holdfast.settings import Settings
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.primary import Primary
from holdfast.store.links.reader import Reader
from holdfast.store.opening import all_shards, lease
from holdfast.store.opening.all_shards import AllShards, FirstShard, ShardLease
from holdfast.store.opening.lease import Lease
from tests.store.servers import ValkeyServer, primary_at
from tests.store.store_process import until

LEASE_S = 0.4
LOOK_S = 0.05
OURS, THEIRS = "ours", "theirs"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "LEASE_S", LEASE_S)
    monkeypatch.setattr(all_shards, "_LOOK_S", LOOK_S)


class Deployment:
    """Three shards in one store, and one who looks at them."""

    def __init__(self, server: ValkeyServer) -> None:
        self.server = server
        self._raised: set[int] = set()
        self._metas = [RedisKeys("test", shard).meta for shard in range(3)]

    def hold(self, shard: int, holder: str) -> None:
        fields = ("epoch", f"seed-1.{holder}", "lease", 0, "holder", holder, "node", holder)
        self.server.ask("HSET", self._metas[shard], *fields)

    def give(self, shard: int) -> None:
        self.server.ask("HDEL", self._metas[shard], "lease", "holder")

    def hold_raised(self, *shards: int) -> None:
        """Raise these leases from now on, whenever somebody looks."""
        self._raised = {*shards}

    def lease(self, shard: int, lock: str = OURS) -> ShardLease:
        reader = Reader(primary_at(self.server.url))
        clock = asyncio.get_running_loop().time
        return ShardLease(reader, self._metas[shard], lambda: lock, clock)

    async def looks(self, gate: AllShards | FirstShard, for_s: float) -> bool:
        """Whether it may open within this time."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + for_s
        while loop.time() < ends:
            for shard in self._raised:
                self.server.ask("HINCRBY", self._metas[shard], "lease", 1)
            if (await gate.look()).may_open:
                return True
            await asyncio.sleep(LOOK_S / 2)
        return False


@pytest.fixture
def deployment(shared_valkey: ValkeyServer) -> Deployment:
    return Deployment(shared_valkey)


def first_of(deployment: Deployment) -> AllShards:
    return AllShards(deployment.lease(0), [deployment.lease(1), deployment.lease(2)])


async def test_an_empty_deployment_is_taken_at_once(deployment: Deployment) -> None:
    gate = first_of(deployment)
    assert (await gate.look()).may_open
    gate.close()


@pytest.mark.parametrize("raised", [0, 1, 2])
async def test_nothing_is_taken_while_one_shard_of_another_server_lives(
    deployment: Deployment, raised: int
) -> None:
    for shard in range(3):
        deployment.hold(shard, THEIRS)
    gate = first_of(deployment)
    deployment.hold_raised(raised)
    assert not await deployment.looks(gate, 3 * LEASE_S)
    look = await gate.look()
    assert look.node == THEIRS
    assert look.is_raised
    deployment.hold_raised()
    assert await deployment.looks(gate, 150 * LEASE_S)
    gate.close()


async def test_a_server_that_gave_the_first_shard_only_keeps_the_others(
    deployment: Deployment,
) -> None:
    for shard in range(3):
        deployment.hold(shard, THEIRS)
    deployment.give(0)
    deployment.hold_raised(1, 2)
    gate = first_of(deployment)
    assert not await deployment.looks(gate, 3 * LEASE_S)
    deployment.hold_raised()
    for shard in (1, 2):
        deployment.give(shard)
    assert (await gate.look()).may_open
    gate.close()


async def test_a_server_takes_its_own_first_shard_whoever_is_silent(deployment: Deployment) -> None:
    for shard in range(3):
        deployment.hold(shard, OURS)
    gate = first_of(deployment)
    assert (await gate.look()).may_open
    gate.close()


async def test_another_shard_is_opened_only_by_the_server_that_has_the_first(
    deployment: Deployment,
) -> None:
    gate = FirstShard(deployment.lease(0), deployment.lease(1))
    assert not (await gate.look()).may_open
    deployment.hold(0, THEIRS)
    assert not await deployment.looks(gate, 3 * LEASE_S)
    deployment.hold(0, OURS)
    assert (await gate.look()).may_open
    gate.close()


def raised_after(gap_s: float) -> Lease:
    """The lease of a process that spoke, and is silent until it has caught up."""
    now = [0.0]
    found = Lease(lambda: now[0])
    found.raised(now[0])
    assert found.may_speak()
    now[0] = gap_s
    assert not found.may_speak()
    found.catch_up = lambda _: None
    found.raised(gap_s)
    return found


async def test_a_process_that_was_silent_for_long_asks_who_has_the_first_shard(
    deployment: Deployment,
) -> None:
    deployment.hold(0, THEIRS)
    gate = FirstShard(deployment.lease(0), deployment.lease(1))
    lost, caught_up = list[str](), list[object]()
    gate.on_lost = lost.append

    def catch_up(then: object) -> None:
        caught_up.append(then)

    # A gap in which no lease of another server can have ended.
    gate.before_speaking(catch_up, raised_after(2.0))(lambda: None)
    assert len(caught_up) == 1
    gate.before_speaking(catch_up, raised_after(3.0))(lambda: None)
    await until(lambda: lost == [THEIRS])
    assert len(caught_up) == 1
    deployment.hold(0, OURS)
    gate.before_speaking(catch_up, raised_after(3.0))(lambda: None)
    await until(lambda: len(caught_up) == 2)
    gate.close()


async def test_a_process_learns_that_another_server_has_the_first_shard(
    deployment: Deployment,
) -> None:
    deployment.hold(0, OURS)
    gate, lost = FirstShard(deployment.lease(0), deployment.lease(1)), list[str]()
    gate.on_lost = lost.append
    watching = asyncio.create_task(gate.watch())
    await asyncio.sleep(3 * LOOK_S)
    assert not lost
    deployment.hold(0, THEIRS)
    await watching
    assert lost == [THEIRS]
    gate.close()


async def test_a_process_that_cannot_read_its_own_lock_does_not_take_itself_for_another_server(
    deployment: Deployment,
) -> None:
    deployment.hold(0, OURS)
    gate = FirstShard(deployment.lease(0, lock=""), deployment.lease(1))
    lost = list[str]()
    gate.on_lost = lost.append
    watching = asyncio.create_task(gate.watch())
    await asyncio.sleep(3 * LOOK_S)
    assert not lost
    assert not watching.done()
    watching.cancel()
    gate.close()


@pytest.mark.parametrize(
    ("store", "count"),
    [("redis+sentinel://127.0.0.1:26379/shop", 1), ("redis+cluster://127.0.0.1:7000", 3)],
)
def test_what_one_lease_learns_of_the_primary_all_on_the_same_server_know(
    store: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each of them waits for a machine that is gone until it finds out by itself."""
    primaries: list[Primary] = []

    def reader(primary: Primary) -> Reader:
        primaries.append(primary)
        return Reader(primary)

    monkeypatch.setattr(gates, "Reader", reader)
    given: dict[str, Any] = {"port": 0, "data": tmp_path, "redis": store}
    settings = Settings(**given)
    gates.gate_of(settings, placed(settings, 0, 3))
    assert len(primaries) == 3
    assert len({*map(id, primaries)}) == count
