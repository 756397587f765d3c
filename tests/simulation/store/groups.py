"""Primaries and their replicas, as Sentinels or a cluster manage them."""

from collections.abc import Callable, Sequence
from functools import partial

from holdfast.store.format.tags import SLOTS
from tests.simulation.store.cluster_view import ClusterView, slot_of_key
from tests.simulation.store.command import UnknownCommand, Words
from tests.simulation.store.connection import Connection
from tests.simulation.store.node import Later, Node
from tests.simulation.store.on_keys import dump
from tests.simulation.store.replies import Refused, Reply, Status
from tests.simulation.store.server_commands import greeting

Place = tuple[str, int]
# How long a primary that comes back takes itself for one: measured with Valkey.
_STALE_S = 0.02
# How long news takes to come to all servers of a cluster.
_GOSSIP_S = 0.05


class Group:
    """A primary and its replicas; the first place is that of the primary.

    Args:
        ends_connections: Whether a former primary ends its connections when it learns that it is
            none any more, as Sentinels make it do.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        later: Later,
        places: Sequence[Place],
        *,
        ends_connections: bool = True,
    ) -> None:
        self._later = later
        self._ends_connections = ends_connections
        self.nodes = [Node(clock, later, host=host, port=port) for host, port in places]
        # The one to which clients are sent.
        self.primary = self.nodes[0]
        for node in self.nodes:
            node.on_back = partial(self._is_back, node)
        for replica in self.nodes[1:]:
            replica.follow(self.primary)

    @property
    def replicas(self) -> list[Node]:
        """Those that can take the place of the primary."""
        return [each for each in self.nodes if each.leader is self.primary and each.is_reachable]

    def fail_over(self, position: int | None = None, *, to: Node | None = None) -> Node:
        """Let a replica take the place of the primary. Returns the former one.

        That one may run, be frozen, cut off or ended. If it runs, it serves its clients until it
        learns of this.

        Args:
            position: How much of the history the replica has; by default what has arrived. It has
                at least what it has confirmed.
        """
        former, new = self.primary, to or self.replicas[0]
        new.lead(new.position if position is None else position)
        self.primary = new
        for node in self.nodes:
            if node is not new and node.is_reachable:
                self._is_back(node)
        return former

    def _is_back(self, node: Node) -> None:
        """A server can be reached, and learns who is the primary."""
        if node.is_primary is (node is self.primary) and node.leader in (None, self.primary):
            (node.leader or node).replication.go_on()
        else:
            self._later(_STALE_S, partial(self._correct, node))

    def _correct(self, node: Node) -> None:
        if node is not self.primary and node.leader is not self.primary and node.is_reachable:
            node.follow(self.primary, ends_connections=self._ends_connections)


class Cluster:
    """Groups that share all slots evenly. The first place of each group is that of its primary."""

    def __init__(
        self, clock: Callable[[], float], later: Later, places: Sequence[Sequence[Place]]
    ) -> None:
        self._later = later
        self.groups = [Group(clock, later, each, ends_connections=False) for each in places]
        count = len(places)
        ranges = [
            (SLOTS * n // count, SLOTS * (n + 1) // count - 1, group.primary)
            for n, group in enumerate(self.groups)
        ]
        for node in self.nodes:
            view = node.view = ClusterView(node)
            view.ranges = [*ranges]

    @property
    def nodes(self) -> list[Node]:
        return [node for group in self.groups for node in group.nodes]

    def group_of(self, key: bytes) -> Group:
        """Return the servers that have a key."""
        slot = slot_of_key(key)
        primaries = {each.primary: each for each in self.groups}
        owners = (_view(each).owner_of(slot) for each in primaries)
        return next(primaries[each] for each in owners if each in primaries)

    def fail_over(self, group: Group, position: int | None = None) -> Node:
        """Let a replica take the place of the group's primary. Returns the former one."""
        if group.primary.is_cut_off:
            # It has stopped by itself before.
            _view(group.primary).is_down = True
        former = group.fail_over(position)
        new = group.primary
        _view(new).learn(former, new)
        for node in self.nodes:
            if node is not new:
                self._later(_GOSSIP_S, partial(self._hear, node, former, new))
        return former

    def _hear(self, node: Node, former: Node, new: Node) -> None:
        """Learn of a new primary, as soon as the server can be reached."""
        if node.is_reachable:
            _view(node).learn(former, new)
            _view(node).is_down = False
        else:
            self._later(_GOSSIP_S, partial(self._hear, node, former, new))

    # Slots that move

    def migrate(self, key: bytes, there: Group) -> None:
        """Move a slot at once, as Valkey does since 9.0."""
        here, slot = self.group_of(key).primary, slot_of_key(key)
        for each in [*here.keyspace.data]:
            if slot_of_key(each) == slot:
                self._move(each, here, there.primary)
        self._give(slot, here, there.primary)

    def begin_moving(self, key: bytes, there: Group) -> None:
        """Let the keys of a slot move one by one."""
        here, slot = self.group_of(key).primary, slot_of_key(key)
        _view(there.primary).coming[slot] = here
        _view(here).going[slot] = there.primary

    def move_key(self, key: bytes) -> None:
        """Move a key of a slot that is on its way."""
        here = self.group_of(key).primary
        self._move(key, here, _view(here).going[slot_of_key(key)])

    def end_moving(self, key: bytes) -> None:
        """Move all other keys of the slot, and then the slot."""
        here, slot = self.group_of(key).primary, slot_of_key(key)
        there = _view(here).going.pop(slot)
        del _view(there).coming[slot]
        for each in [*here.keyspace.data]:
            if slot_of_key(each) == slot:
                self._move(each, here, there)
        self._give(slot, here, there)

    @staticmethod
    def _move(key: bytes, here: Node, there: Node) -> None:
        value = dump(here.keyspace, [b"DUMP", key])
        assert isinstance(value, bytes)
        there.do(b"RESTORE", key, b"0", value)
        here.do(b"DEL", key)

    def _give(self, slot: int, here: Node, there: Node) -> None:
        for node in (there, here):
            _view(node).moved[slot] = there
        for node in self.nodes:
            self._later(_GOSSIP_S, partial(_view(node).moved.__setitem__, slot, there))


def _view(node: Node) -> ClusterView:
    assert node.view is not None
    return node.view


class Sentinel(Node):
    """Tells clients where the primary of a group is."""

    def __init__(
        self,
        clock: Callable[[], float],
        later: Later,
        group: Group,
        service: str,
        *,
        host: str = "127.0.0.1",
        port: int = 26379,
    ) -> None:
        super().__init__(clock, later, host=host, port=port)
        self._group = group
        self._service = service.encode()
        self.down_after_ms = 500

    def _do(self, connection: Connection, words: Words) -> Reply:
        match [words[0].upper(), *words[1:]]:
            case [b"HELLO", *_]:
                found: dict[Reply, Reply] = {**greeting(connection, words), b"mode": b"sentinel"}
                return {name: value for name, value in found.items() if name != b"role"}
            case [b"PING"]:
                return Status(b"PONG")
            case [b"SENTINEL", question, service]:
                return self._answer(question.upper(), service)
            case _:
                raise UnknownCommand(words)

    def _answer(self, question: bytes, service: bytes) -> Reply:
        is_known, primary = service == self._service, self._group.primary
        host, port = primary.host.encode(), b"%d" % primary.port
        match question:
            case b"GET-MASTER-ADDR-BY-NAME":
                return [host, port] if is_known else None
            case b"MASTER":
                if not is_known:
                    raise Refused("ERR No such master with that name")
                down_after = b"%d" % self.down_after_ms
                return {
                    b"name": service,
                    b"ip": host,
                    b"port": port,
                    b"down-after-milliseconds": down_after,
                }
            case _:
                raise UnknownCommand([question])
