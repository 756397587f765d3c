"""The machines of the store in a simulated world."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from math import inf
from random import Random

from holdfast.store.format.deployment import Division
from holdfast.store.format.keys import RedisKeys
from tests.simulation.host import Host
from tests.simulation.store.cluster_view import slot_of_key
from tests.simulation.store.groups import Cluster, Group, Sentinel
from tests.simulation.store.keyspace import Keyspace
from tests.simulation.store.node import Node
from tests.simulation.world import World

_PORT, _SENTINEL_PORT = 6379, 26379
_SERVICE = "shop"
# When to go on moving a slot if a server is not there.
_RETRY_S = 0.1
_MOST_SHARDS = 3
# The keys of all shards but the first one.
_SHARD = re.compile(r"\{holdfast/(\d+)")
_NAMESPACE = "holdfast"
_META = RedisKeys(_NAMESPACE).meta.encode()


class Kind(Enum):
    """How many servers the store has, and who manages them."""

    SINGLE = "single"
    # One for each shard, as those that servers start.
    OWN = "own"
    # One for each shard, which its server starts.
    EMBEDDED = "embedded"
    # A primary and a replica, behind three Sentinels.
    PAIR = "pair"
    # Three primaries, each with a replica.
    CLUSTER = "cluster"

    @property
    def has_replicas(self) -> bool:
        return self in (Kind.PAIR, Kind.CLUSTER)


# Those with a server for each shard.
_OWN = (Kind.OWN, Kind.EMBEDDED)


def own_store(shard: int) -> str:
    """Return the host of the store that one shard has for itself."""
    return f"store-of-{shard}"


@dataclass(slots=True)
class Tail:
    """What a server of the store has lost, by the true time."""

    # When it wrote that.
    begin: float
    end: float
    # The shard whose store it was; None if it was that of several.
    shard: int | None
    # When servers could tell the store again what they know.
    back_at: float


class StoreSite:
    """The servers of the store, each on a machine of its own.

    Args:
        clock: The wall clock of all of them.
    """

    def __init__(self, world: World, kind: Kind, clock: Callable[[], float]) -> None:
        self._world = world
        self.kind = kind
        self.cluster: Cluster | None = None
        self.url: str | None
        self._clock = clock
        # How many shards there are.
        self.shards = 1
        # Called when a primary has ended.
        self.on_lost: Callable[[], None] = lambda: None
        self._hosts: dict[Node, Host] = {}
        # Since when former primaries wrote what no other server has.
        self._tails: list[tuple[float, Node]] = []
        # What servers have lost with their machines.
        self._cut: dict[Node, list[Tail]] = {}
        if kind is Kind.CLUSTER:
            self.cluster = Cluster(
                clock, world.later, [[(f"store{n}{m}", _PORT) for m in "ab"] for n in range(3)]
            )
            self._group = self.cluster.group_of(_META)
            self.url = f"redis+cluster://{','.join(node.host for node in self.cluster.nodes)}"
            self._place(*self.cluster.nodes)
        elif kind in _OWN:
            places = [(own_store(shard), _PORT) for shard in range(_MOST_SHARDS)]
            self._own = [Group(clock, world.later, [place]) for place in places]
            self._place(*(node for group in self._own for node in group.nodes))
            self._group = self._own[0]
            self.url = None if kind is Kind.EMBEDDED else f"redis://{own_store(0)}:{_PORT}"
        else:
            names = ["store"] if kind is Kind.SINGLE else ["store", "store2"]
            self._group = Group(clock, world.later, [(name, _PORT) for name in names])
            self.url = f"redis://store:{_PORT}"
            self._place(*self._group.nodes)
        if kind is Kind.PAIR:
            names = [f"sentinel{n}" for n in range(3)]
            for name in names:
                self._place(
                    Sentinel(
                        *(clock, world.later, self._group, _SERVICE), host=name, port=_SENTINEL_PORT
                    )
                )
            self.url = f"redis+sentinel://{','.join(names)}/{_SERVICE}"

    def _place(self, *nodes: Node) -> None:
        for node in nodes:
            host = self._hosts[node] = Host(self._world, (node.host, node.port), node.connect)
            node.on_command = self._world.coverage.command
            node.on_crashed = partial(self._crashed, node)
            if self.kind is Kind.EMBEDDED:
                node.is_running = False
            else:
                host.start()
            node.settings.set("appendonly", "yes")
            if self.kind.has_replicas:
                node.settings.set("appendfsync", "always")

    def _crashed(self, node: Node) -> None:
        if self.is_primary(node.host):
            self.on_lost()

    @property
    def durability(self) -> str:
        """The one with which no failover loses a message that was accepted."""
        return "replicas:1" if self.kind.has_replicas else "everysec"

    @property
    def groups(self) -> Sequence[Group]:
        """The servers that have data of the deployment."""
        if self.shards == 1 or self.kind in (Kind.SINGLE, Kind.PAIR):
            return [self.first]
        return self._own[: self.shards] if self.cluster is None else self.cluster.groups

    @property
    def machines(self) -> Sequence[str]:
        """The names of all machines, also those of Sentinels."""
        return [node.host for node in self._hosts]

    @property
    def first(self) -> Group:
        """The servers that have the data of the first shard."""
        return self._group if self.cluster is None else self.cluster.group_of(_META)

    @property
    def has_own(self) -> bool:
        """Whether each of several shards has a store of its own."""
        return self.kind in _OWN and self.shards > 1

    def store_of(self, shard: int) -> Group:
        """Return the servers that have the data of a shard."""
        return self._own[shard] if self.has_own else self.first

    def own_node(self, shard: int) -> Node:
        """Return the server of the store that one shard has for itself."""
        return self._own[shard].primary

    def url_of(self, shard: int) -> str | None:
        """Return where a shard has its store; None if its server starts one."""
        return self.url and self.url.replace(own_store(0), own_store(shard))

    def is_primary(self, host: str) -> bool:
        """Return whether the host has data of the deployment and serves its clients."""
        return any(group.primary.host == host for group in self.groups)

    def keyspace_with(self, key: str) -> Keyspace:
        """Return what the primary has that has this key."""
        return self._group_with(key).primary.keyspace

    def _group_with(self, key: str) -> Group:
        if self.cluster is not None:
            return self.cluster.group_of(key.encode())
        shard = _SHARD.match(key) if self.kind in _OWN else None
        return self._group if shard is None else self._own[int(shard[1])]

    def group_at(self, host: str) -> Group:
        """Return the servers to whose primary this host belongs."""
        return next(group for group in self.groups if group.primary.host == host)

    def lost_tails(self) -> list[Tail]:
        """Return what servers wrote that a failover or a loss of power lost."""
        true_s = self._world.now - self._clock()
        ends = [(begin + true_s, former.followed_at + true_s) for begin, former in self._tails]
        replaced = [Tail(begin, end, None, end) for begin, end in ends]
        return [*replaced, *(tail for tails in self._cut.values() for tail in tails)]

    def host_of(self, node: Node) -> Host:
        return self._hosts[node]

    # What happens to them

    def begin_in(self, layout: int, division: Division) -> None:
        """Let the stores be in an earlier layout, as an earlier release has left them.

        Args:
            division: How that release has divided the deployment.
        """
        for shard in range(self.shards):
            meta = RedisKeys(_NAMESPACE, shard).meta
            fields = [b"version", b"%d" % layout]
            if shard == 0 and self.shards > 1:
                fields += [b"shards", division.shards, b"homes", division.homes]
            self._group_with(meta).primary.do(b"HSET", meta.encode(), *fields)

    def end(self, node: Node) -> None:
        """End a server; nothing listens at its address."""
        node.crash()
        self.host_of(node).stop()

    def cut_power(self, node: Node, random: Random) -> None:
        """End a server with its machine: it loses some of what its file does not have yet.

        A frozen one also loses what has come since then.
        """
        frozen_at = node.frozen_at
        if node.is_running:
            self.end(node)
        history = node.history
        position = random.randint(node.replication.synced, history.end)
        begin = min(history.time_behind(position), frozen_at)
        if begin < inf:
            true_s, now = self._world.now - self._clock(), self._world.now
            tails = self._cut.setdefault(node, [])
            tails.append(Tail(begin + true_s, max(now, begin + true_s), self._shard_of(node), inf))
            node.go_back(position)

    def _shard_of(self, node: Node) -> int | None:
        """Return the only shard that has this server of the store."""
        own = [group.primary for group in self._own] if self.kind in _OWN else []
        return own.index(node) if node in own else None

    def start(self, node: Node) -> None:
        """Start a server that has ended; it has all that its file has."""
        if self.kind is Kind.EMBEDDED:
            # Its own server does.
            return
        node.crashes_in = None
        if not node.is_running:
            node.start(node.history.end)
        self.began(node)

    def began(self, node: Node) -> None:
        """Let clients come to a server that has begun."""
        for tail in self._cut.get(node, ()):
            tail.back_at = min(tail.back_at, self._world.now)
        self.host_of(node).start()

    def fail_over(self, group: Group, random: Random) -> None:
        """Let a replica take the primary's place, with any part of what it was sent."""
        # What operators do about a slot that moves away from a server that ends is left out.
        if not group.replicas or self._is_moving:
            return
        replica = group.replicas[0]
        former = group.primary
        position = random.randint(replica.confirmed, former.history.end)
        began_at = min(former.history.time_behind(position), self._clock())
        self._tails.append((began_at, former))
        if self.cluster is None:
            group.fail_over(position)
        else:
            self.cluster.fail_over(group, position)
        self._world.note(group.primary.host, "is the primary")

    @property
    def _is_moving(self) -> bool:
        return self.first.primary.view is not None and bool(self.first.primary.view.going)

    def move_slot(self, random: Random, duration_s: float) -> None:
        """Move the slot to other servers of the cluster, key by key, in this time."""
        cluster = self.cluster
        if cluster is None or self._is_moving or not self.first.primary.is_running:
            return
        there = random.choice([each for each in cluster.groups if each is not self.first])
        cluster.begin_moving(_META, there)
        slot = slot_of_key(_META)
        keys = [key for key in self.first.primary.keyspace.data if slot_of_key(key) == slot]
        random.shuffle(keys)
        moved = keys[: random.randint(0, len(keys))]
        for n, key in enumerate(moved):
            at_s = duration_s * (n + 1) / (len(moved) + 1)
            self._world.later(at_s, partial(self._move, cluster, key))
        self._world.later(duration_s, partial(self._end_moving, cluster))

    def _move(self, cluster: Cluster, key: bytes) -> None:
        if self.first.primary.is_reachable and key in self.first.primary.keyspace.data:
            cluster.move_key(key)

    def _end_moving(self, cluster: Cluster) -> None:
        if self.first.primary.is_reachable:
            cluster.end_moving(_META)
        else:
            self._world.later(_RETRY_S, partial(self._end_moving, cluster))
