"""A real cluster: three primaries with one replica each or more, on ports of this machine."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from typing import Any

from bench.processes import reserved_port
from holdfast.store.format.tags import SLOTS, slot_of
from tests.store.servers import TAG, ValkeyServer

# So short that a failover takes two seconds. Until a test lets a node fail, it is longer: no node
# is to replace another that has only waited for a processor.
NODE_TIMEOUT_MS = 1000
_CALM_MS = 5000
_PRIMARIES = 3
_WAIT_LIMIT_S = 60.0
SLOT = slot_of(TAG.strip("{}:"))


def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + _WAIT_LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Node(ValkeyServer):
    """A server in a cluster."""

    def __init__(self, port: int, bus: int, user: int | None, timeout_ms: int) -> None:
        self.port, self.bus, self.user, self.timeout_ms = port, bus, user, timeout_ms
        self.place = f"127.0.0.1:{port}"
        self.is_frozen = False
        # Called before it is killed or frozen.
        self.on_failing: Callable[[], None] = lambda: None
        settings = {
            "port": str(port),
            "cluster-enabled": "yes",
            "cluster-port": str(bus),
            "cluster-node-timeout": str(timeout_ms),
            "cluster-replica-validity-factor": "0",
            "cluster-allow-replica-migration": "no",
            "repl-diskless-sync-delay": "0",
            "appendonly": "yes",
            "appendfsync": "always",
        }
        super().__init__(**settings)
        self.id = self.ask("CLUSTER", "MYID").decode()

    @property
    def answers(self) -> bool:
        return self.is_running and not self.is_frozen

    def freeze(self) -> None:
        self.on_failing()
        super().freeze()
        self.is_frozen = True

    def kill(self) -> None:
        self.on_failing()
        super().kill()

    def thaw(self) -> None:
        if self.is_frozen:
            super().thaw()
            self.is_frozen = False

    @property
    def info(self) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("INFO", "replication")
        return found

    def sees_all(self, count: int) -> bool:
        """Whether it knows so many nodes, which are well."""
        info = self.ask("CLUSTER", "INFO")
        nodes = self.ask("CLUSTER", "NODES").decode()
        is_well = "fail" not in nodes and "handshake" not in nodes
        return is_well and b"cluster_state:ok" in info and nodes.count("\n") == count


class Cluster:
    """The nodes, and what operators and accidents do to them."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self._replicas = len(nodes) // _PRIMARIES - 1
        first, *others = nodes
        for number, node in enumerate(nodes[:_PRIMARIES]):
            begin, end = (SLOTS * each // _PRIMARIES for each in (number, number + 1))
            node.ask("CLUSTER", "ADDSLOTSRANGE", begin, end - 1)
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in others:
            first.ask("CLUSTER", "MEET", "127.0.0.1", node.port, self._bus(node))
        until(self._see_all)
        for primary, replica in zip(cycle(nodes[:_PRIMARIES]), nodes[_PRIMARIES:]):
            replica.ask("CLUSTER", "REPLICATE", primary.id)
        self.heal()
        for node in nodes:
            node.on_failing = self._hurry

    @staticmethod
    def _bus(node: Node) -> int:
        return int(node.ask("CONFIG", "GET", "cluster-port")[b"cluster-port"])

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(node.place for node in self.nodes)}"

    @property
    def owner(self) -> Node:
        """The primary that has the slot of the tests."""
        return self.owner_of(SLOT)

    def owner_of(self, slot: int) -> Node:
        """Return the primary that has a slot, as most see it."""
        seen = [self._owner_seen_by(node, slot) for node in self.nodes if node.answers]
        return max(seen, key=seen.count)

    def _owner_seen_by(self, node: Node, slot: int = SLOT) -> Node:
        for begin, end, (_, port, *_), *_ in node.ask("CLUSTER", "SLOTS"):
            if begin <= slot <= end:
                return next(each for each in self.nodes if each.port == port)
        raise AssertionError("the slot has no owner")

    @property
    def replica(self) -> Node:
        """The replica of the owner."""
        return self.replica_of(self.owner)

    def replica_of(self, owner: Node) -> Node:
        """Return the replica of a primary, or one of them."""
        return self.replicas_of(owner)[0]

    def replicas_of(self, owner: Node) -> list[Node]:
        """Return all replicas of a primary."""
        return [node for node in self.nodes if node.info.get("master_port") == owner.port]

    def other_primary(self) -> Node:
        owner = self.owner
        return next(each for each in self.nodes if each != owner and each.info["role"] == "master")

    def revive(self) -> None:
        """Start what was killed, and thaw what was frozen.

        The system ends a server with the thread that has started it.
        """
        for node in self.nodes:
            node.thaw()
            if not node.is_running:
                node.start()

    def heal(self) -> None:
        """Wait until each primary has its replicas, with all of its data."""
        self.revive()
        until(self.is_well)
        self._wait_for_each_other(_CALM_MS)

    def _hurry(self) -> None:
        self._wait_for_each_other(self.nodes[0].timeout_ms)

    def _wait_for_each_other(self, timeout_ms: int) -> None:
        for node in self.nodes:
            if node.answers:
                node.set(cluster_node_timeout=str(timeout_ms))

    def _see_all(self) -> bool:
        return all(node.sees_all(len(self.nodes)) for node in self.nodes)

    def let_end(self) -> None:
        """Whoever ends from now on is replaced by nobody."""
        for node in self.nodes:
            node.on_failing = lambda: None

    def is_well(self) -> bool:
        for node in self.nodes:
            node.refuse_end()
        infos = [node.info for node in self.nodes]
        primaries = [info for info in infos if info["role"] == "master"]
        return (
            self._see_all()
            and len(primaries) == _PRIMARIES
            and all(info["connected_slaves"] == self._replicas for info in primaries)
            and all(info.get("master_link_status", "up") == "up" for info in infos)
            and len({self._owner_seen_by(node).port for node in self.nodes}) == 1
        )

    # Slots that move

    def migrate(self, there: Node) -> None:
        """Move the slot at once, as Valkey does since 9.0."""
        owner = self.owner
        owner.ask("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", SLOT, SLOT, "NODE", there.id)
        until(lambda: self._owner_seen_by(owner) == there)

    def begin_moving(self, there: Node) -> Node:
        """Let keys of the slot move one by one. Returns the owner."""
        owner = self.owner
        there.ask("CLUSTER", "SETSLOT", SLOT, "IMPORTING", owner.id)
        owner.ask("CLUSTER", "SETSLOT", SLOT, "MIGRATING", there.id)
        return owner

    def move_key(self, owner: Node, there: Node, key: str) -> None:
        owner.ask("MIGRATE", "127.0.0.1", there.port, key, 0, 5000)

    def end_moving(self, owner: Node, there: Node) -> None:
        for key in owner.ask("CLUSTER", "GETKEYSINSLOT", SLOT, 1000):
            self.move_key(owner, there, key.decode())
        for node in (there, owner):
            node.ask("CLUSTER", "SETSLOT", SLOT, "NODE", there.id)


@contextmanager
def cluster(
    first_user: int | None = None, *, replicas: int = 1, timeout_ms: int = NODE_TIMEOUT_MS
) -> Iterator[Cluster]:
    """Run them; with a `first_user`, each node as a user of its own, from this number on."""
    with ExitStack() as stack:
        nodes = []
        for number in range((1 + replicas) * _PRIMARIES):
            port, bus = (stack.enter_context(reserved_port()) for _ in range(2))
            user = None if first_user is None else first_user + number
            nodes.append(stack.enter_context(Node(port, bus, user, timeout_ms)))
        found = Cluster(nodes)
        stack.callback(found.let_end)
        yield found
