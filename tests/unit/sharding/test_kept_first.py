"""Durable sessions get what is not stored behind what is, but do not wait long for that."""

from typing import Any

from holdfast.bayeux.publish.tap import Arrived
from holdfast.cluster.places import Place
from holdfast.cluster.reading import LogReader
from holdfast.delivery.messages.message import Message
from holdfast.sharding.early import Cause, Early
from holdfast.sharding.kept_first import KeptFirst
from tests.unit.cluster.test_reading import Shard

NONCE = "xxxxxxxx"


class World:
    """A shard whose store takes nothing."""

    def __init__(self) -> None:
        self.now = 0.0
        self.shown: list[int] = []
        self.early = Early(lambda *_: None)
        self.kept_first = KeptFirst(
            lambda: self.now, self.early, lambda each: self.shown.append(each.message.id)
        )
        port: Any = Shard()
        self.kept_first.reader = LogReader(port, own=0, place=f"{NONCE} 1-1 1", passed="")

    def comes(self, id: int, channel: str, behind: int) -> None:
        message = Message(b"{}", id=id, channel=channel)
        arrived = Arrived(message, (), (), is_durable=False, has_durable=True)
        assert self.kept_first.holds(arrived, Place(NONCE, 1, behind, behind))


def test_what_waits_for_the_same_or_for_what_came_before_it_is_shown_together() -> None:
    world = World()
    world.comes(1, "/a", behind=3)
    world.now = 1.0
    world.comes(2, "/b", behind=2)
    world.comes(3, "/c", behind=4)
    world.comes(4, "/a", behind=4)
    world.now = 4.9
    world.kept_first.tick()
    assert world.shown == []
    world.now = 5.0
    world.kept_first.tick()
    assert world.shown == [1, 2]
    world.now = 6.0
    world.kept_first.tick()
    assert world.shown == [1, 2, 3, 4]
    assert world.early.counts == {Cause.OWN_STORE: 4}
