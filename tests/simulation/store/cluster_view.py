"""What a server knows of its cluster: where the keys of each slot are."""

from functools import cache
from typing import TYPE_CHECKING

from holdfast.store.format.tags import slot_of
from tests.simulation.store.replies import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.store.node import Node

_TRY_AGAIN = "TRYAGAIN Multiple keys request during rehashing of slot"


@cache
def slot_of_key(key: bytes) -> int:
    """Return the slot of a key: that of its tag, if it has one."""
    _, begin, rest = key.partition(b"{")
    tag, end, _ = rest.partition(b"}")
    return slot_of((tag if begin and end and tag else key).decode())


class ClusterView:
    """The owners of all slots, as one server knows them."""

    def __init__(self, node: "Node") -> None:
        self._node = node
        # First and last slot, and who has them.
        self.ranges: list[tuple[int, int, Node]] = []
        # Slots that moved, and slots of which keys go to another server or come from one.
        self.moved: dict[int, Node] = {}
        self.going: dict[int, Node] = {}
        self.coming: dict[int, Node] = {}
        self.is_down = False

    def owner_of(self, slot: int) -> "Node | None":
        if slot in self.moved:
            return self.moved[slot]
        return next((node for first, last, node in self.ranges if first <= slot <= last), None)

    def learn(self, former: "Node", owner: "Node") -> None:
        """Another server has all slots that this one had."""
        self.ranges = [
            (first, last, owner if node is former else node) for first, last, node in self.ranges
        ]
        self.moved = {slot: owner if node is former else node for slot, node in self.moved.items()}

    def check(self, keys: "Sequence[bytes]", *, is_asking: bool) -> None:
        """Refuse keys that are elsewhere."""
        slot = slot_of_key(keys[0])
        if any(slot_of_key(key) != slot for key in keys):
            raise Refused("CROSSSLOT Keys in request don't hash to the same slot")
        owner = self.owner_of(slot)
        if self.is_down or owner is None:
            what = "The cluster is down" if self.is_down else "Hash slot not served"
            raise Refused(f"CLUSTERDOWN {what}")
        if owner is self._node:
            self._check_going(slot, keys)
        elif slot in self.coming and is_asking:
            if len({*keys}) > 1 and self._here(keys) < len(keys):
                raise Refused(_TRY_AGAIN)
        else:
            raise Refused(f"MOVED {slot} {owner.host}:{owner.port}")

    def _check_going(self, slot: int, keys: "Sequence[bytes]") -> None:
        there = self.going.get(slot)
        if there is None or (here := self._here(keys)) == len(keys):
            return
        raise Refused(_TRY_AGAIN if here else f"ASK {slot} {there.host}:{there.port}")

    def _here(self, keys: "Sequence[bytes]") -> int:
        return sum(key in self._node.keyspace.data for key in keys)
