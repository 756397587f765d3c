"""What happens to three hosts and their store, one thing after the other, and what repairs it."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import chain
from random import Random

from holdfast.store.format.tags import slot_of, tag_of
from tests.chaos import own_network
from tests.chaos.host_moves import ALL, BrokenMoves, Play
from tests.chaos.hosts import READY_S, Host, until
from tests.store.cluster import Cluster, Node
from tests.store.servers import ValkeyServer

# Longer than a lease lasts, and than a supervisor waits for a worker that does not run.
FROZEN_S = 20.0
# Longer than links live without a beat, and than leases last.
_CUT_S = 6.0
_SLOW_S = 12.0
# There and back it takes twice as long.
_LATENCY_S = 0.1
# As long as Valkey waits before a replica takes over, and some more.
_STORE_S = 8.0
_STEP_S = 0.3
# Nothing moves while leases are read late, as on a busy machine.
_DRAIN_S = 350.0
# A day and an hour, and less than how long certificates of tests were valid before.
_JUMPS_S = (90_000.0, 3.0, -3.0, -1800.0)

Deed = Callable[[], Awaitable[None]]


class HostDeeds:
    """Does things to hosts and stores; each is repaired before the next one."""

    def __init__(self, play: Play, random: Random, cluster: Cluster | None = None) -> None:
        self._play, self._hosts, self._random = play, play.hosts, random
        self._cluster = cluster
        self._moves = BrokenMoves(play, self._while_primary_is_dead)

    @property
    def all(self) -> Mapping[str, Deed]:
        """What can happen, by what it is called."""
        everywhere: dict[str, Deed] = {
            "worker killed": self._kill_worker,
            "claimer killed": self._kill_claimer,
            "supervisor killed": self._kill_supervisor,
            "host killed": self._kill_host,
            "host frozen": self._freeze_host,
            "host stopped": self._stop_host,
            "host updated": self._update_host,
            "host drained": self._drain_host,
            "shard left, taken back, left again, killed": self._leave_again_and_die,
            "cut off from other hosts": self._cut_off_from_hosts,
            "cut off from one side": self._cut_off_one_way,
            "200 ms between hosts": self._slow_down,
            "two hosts killed": self._kill_two_hosts,
            "move that fails": self._break_a_move,
            "pause, crash and partition": self._all_in_one,
        }
        if self._hosts.have_clocks:
            everywhere["clock jumps"] = self._jump
        if self._cluster is None:
            return everywhere | {
                "cut off from the store": self._cut_off_from_store,
                "store frozen": self._freeze_store,
                "store killed": self._kill_store,
            }
        if own_network.is_own():
            everywhere["primary isolated"] = self._isolate_primary
        return everywhere | {
            "primary killed": self._kill_primary,
            "primary frozen": self._freeze_primary,
            "primary failed over": self._fail_over,
            "store of the first shard away": self._lose_first_store,
        }

    async def do(self, name: str) -> None:
        """Do this, wait until all sessions go on, and repair it."""
        await self.all[name]()
        await self._are_well()

    async def _goes_on(self, what: str) -> None:
        await self._play.goes_on(what)

    async def _are_well(self) -> None:
        for each in self._hosts.all:
            if not each.is_running:
                each.begin()
        await until(self._hosts.have_all_shards, READY_S)
        if self._cluster is not None:
            await asyncio.to_thread(self._cluster.heal)

    def _host(self) -> Host:
        """A host that has shards."""
        return self._random.choice([each for each in self._hosts.all if each.shards])

    # Processes and hosts

    async def _kill_worker(self) -> None:
        _, pid = self._random.choice([*self._host().shards.items()])
        _send(pid, signal.SIGKILL)
        await self._goes_on("worker killed")

    async def _kill_claimer(self) -> None:
        _send(self._host().claimer, signal.SIGKILL)
        await self._goes_on("claimer killed")

    async def _kill_supervisor(self) -> None:
        host = self._host()
        _send(host.supervisor_pid, signal.SIGKILL)
        await host.ended()
        await self._goes_on("supervisor killed")
        # Its workers stop by themselves, and a store or a port may be theirs until then.
        await asyncio.sleep(1.0)

    async def _kill_host(self) -> None:
        await self._host().kill_all()
        await self._goes_on("host killed")

    async def _kill_two_hosts(self) -> None:
        for each in self._random.sample(self._hosts.all, 2):
            await each.kill_all()
        await self._goes_on("two hosts killed")

    async def _freeze_host(self) -> None:
        host = self._host()
        await host.signal_all(signal.SIGSTOP)
        thaws = asyncio.create_task(asyncio.sleep(FROZEN_S))
        await self._goes_on("host frozen")
        await thaws
        await host.signal_all(signal.SIGCONT)
        await self._goes_on("host thawed")

    async def _stop_host(self) -> None:
        await self._host().stop()
        await self._goes_on("host stopped")

    async def _update_host(self) -> None:
        why = await self._host().restart()
        await self._goes_on(f"host updated{why and ': '}{why}")

    async def _drain_host(self, host: Host | None = None) -> None:
        host = host or self._host()
        await self._hosts.drain(host)
        await until(lambda: not host.shards, _DRAIN_S)
        await self._goes_on("host drained")
        await self._hosts.uncordon(host)

    async def _leave_again_and_die(self) -> None:
        """In many orders: it depends on how far each has come when the next one begins."""
        host = self._host()
        for ask in (self._hosts.drain, self._hosts.uncordon, self._hosts.drain):
            await ask(host)
            await asyncio.sleep(self._random.uniform(0.0, 4.0))
        await host.kill_all()
        await self._hosts.uncordon(host)
        await self._goes_on("left, taken back, left again, killed")

    async def _break_a_move(self) -> None:
        await self._moves.play(self._random.choice([*chain.from_iterable(ALL.values())]))

    async def _jump(self) -> None:
        """The shards go to hosts with another clock before it jumps back."""
        host = self._host()
        assert host.clock is not None
        offset_s = self._random.choice(_JUMPS_S)
        host.clock.jump_to(offset_s)
        await self._goes_on(f"clock jumped by {offset_s:g} s")
        await asyncio.sleep(_CUT_S)
        await self._drain_host(host)
        host.clock.jump_to(0.0)
        await self._goes_on("clock jumped back")

    # Networks

    async def _cut_off_from_hosts(self) -> None:
        host = self._host()
        host.cut_off_from_hosts()
        await asyncio.sleep(_CUT_S)
        host.heal()
        await self._goes_on("cut off from the other hosts, and back")

    async def _cut_off_one_way(self) -> None:
        host = self._host()
        host.deafen()
        await asyncio.sleep(_CUT_S)
        host.heal()
        await self._goes_on("cut off in one direction, and back")

    async def _cut_off_from_store(self) -> None:
        host = self._host()
        host.cut_off_from_store()
        await self._goes_on("cut off from the store")
        await asyncio.sleep(_CUT_S)
        host.heal()
        await self._goes_on("back at the store")

    async def _slow_down(self) -> None:
        for each in self._hosts.all:
            each.slow_down(_LATENCY_S)
        await self._goes_on("200 ms between hosts")
        await asyncio.sleep(_SLOW_S)
        await self._goes_on("200 ms between hosts, for 12 s")
        for each in self._hosts.all:
            each.slow_down(0.0)

    async def _all_in_one(self) -> None:
        """One host pauses, one dies, and the pause ends in a partition."""
        paused, dies, other = self._random.sample(self._hosts.all, 3)
        await paused.signal_all(signal.SIGSTOP)
        await asyncio.sleep(_STEP_S)
        await dies.kill_all()
        other.cut_off_from_hosts()
        await asyncio.sleep(FROZEN_S)
        await paused.signal_all(signal.SIGCONT)
        await asyncio.sleep(_STEP_S)
        other.heal()
        await self._goes_on("pause of 20 s, crash and partition")

    # Stores

    async def _freeze_store(self) -> None:
        store = self._store
        store.freeze()
        await asyncio.sleep(self._random.uniform(0.5, _STORE_S))
        store.thaw()
        await self._goes_on("store frozen, and thawed")

    async def _kill_store(self) -> None:
        await self._while_primary_is_dead(0, lambda: None)
        await self._goes_on("store killed, and started")

    async def _kill_primary(self) -> None:
        self._primary().kill()
        await self._goes_on("primary killed")

    async def _freeze_primary(self) -> None:
        node = self._primary()
        node.freeze()
        await self._goes_on("primary frozen")
        # It answers what waits as if it still were one.
        node.thaw()
        await self._goes_on("primary thawed")

    async def _isolate_primary(self) -> None:
        """Its clients, its replica and the other primaries cannot reach it, nor it them."""
        node = self._primary()
        assert node.user is not None
        cut = (node.user, node.port, node.bus)
        node.on_failing()
        own_network.isolate(*cut)
        try:
            await self._goes_on("primary isolated")
        finally:
            own_network.heal(*cut)
        await self._goes_on("primary back")

    async def _fail_over(self) -> None:
        assert self._cluster is not None
        self._cluster.replica_of(self._primary()).ask("CLUSTER", "FAILOVER")
        await self._goes_on("primary failed over")

    async def _lose_first_store(self) -> None:
        assert self._cluster is not None
        node = self._primary(0)
        gone = [node, *self._cluster.replicas_of(node)]
        for each in gone:
            each.freeze()
        await asyncio.sleep(_STORE_S)
        for each in gone:
            each.thaw()
        await self._goes_on("the first shard's store was away for 8 s")

    async def _while_primary_is_dead(self, shard: int, go_on: Callable[[], None]) -> None:
        if self._cluster is not None:
            # A replica takes over; it is repaired when all is done.
            self._primary(shard).kill()
            go_on()
            return
        self._store.kill()
        go_on()
        await asyncio.to_thread(self._store.start)

    @property
    def _store(self) -> ValkeyServer:
        assert self._hosts.store is not None
        return self._hosts.store

    def _primary(self, shard: int | None = None) -> Node:
        assert self._cluster is not None
        number = self._random.randrange(6) if shard is None else shard
        return self._cluster.owner_of(slot_of(tag_of("holdfast", number)))


def _send(pid: int, number: signal.Signals) -> None:
    # It may end by itself.
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
