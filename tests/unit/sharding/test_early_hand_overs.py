"""Messages of other shards are stored with the hand-over that follows at once."""

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

from holdfast.delivery.messages.marks import BatchMark, Mark
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.delivery.fake_keeper import FakeKeeper
from tests.unit.sharding.member_world import World

JOE = "joe/1"


class Scene:
    """A named session at one shard, and a publisher at another one."""

    def __init__(self) -> None:
        self.world = World(0, has_faults=False)
        self.here, self.there = self.world.shards[1], self.world.shards[0]
        self.store = self.here.store
        delivery = {"session": {"name": JOE, "timeout": 600_000}}
        self.joe: Client = self.here.server.client(ext={"delivery": delivery, "ack": True})
        # The hand-overs that were stored when they happened.
        self.written: list[BatchMark] = []
        asked = self.joe.subscribe("/a")
        self.pass_time()
        assert asked.reply["successful"]
        self.ack = 0
        self.listen()

    def pass_time(self) -> None:
        for _ in range(20):
            self.world.now += 0.1
            for shard in self.world.shards.values():
                for other in self.world.stores:
                    if other != shard.number:
                        shard.read(other, 100)
                shard.tick()
                shard.turn()

    def hold(self, **fields: Any) -> Asked:
        return self.joe.connect(ext={"ack": self.ack}, **fields)

    def listen(self) -> Asked:
        """Connect without waiting."""
        asked = self.hold(advice={"timeout": 0})
        self.here.turn()
        self.ack = asked.replies[0]["ext"]["ack"]
        return asked

    def publish(self, data: object = "hello", **fields: Any) -> None:
        self.there.publisher.publish("/a", data, **fields)
        self.there.turn()

    def read(self) -> None:
        """Read what was published. The store has it, and has not answered."""
        self.here.read(0, 10)
        self.written.clear()

    def publish_here(self) -> None:
        """Publish something at the same shard that is not stored. The turn ends."""
        options = {"delivery": {"persistent": False}}
        self.here.publisher.publish("/a", "passing", ext=options)
        self.here.server.flush()

    def marks(self) -> list[Mark]:
        return [*self.store.queues[JOE].values()]


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene, written = Scene(), FakeKeeper.mark_batch

    def mark_batch(keeper: FakeKeeper, receiver: str, batch: BatchMark) -> None:
        scene.written.append(batch)
        written(keeper, receiver, batch)

    with patch.object(FakeKeeper, "mark_batch", mark_batch):
        yield scene


def test_a_session_that_waits_gets_a_message_whose_hand_over_is_stored(scene: Scene) -> None:
    held = scene.hold()
    scene.publish()
    scene.read()
    [mark] = scene.marks()
    assert mark.is_in_flight
    assert held.is_held
    scene.here.turn()
    assert held.data == ["hello"]
    assert mark.batch == held.replies[0]["ext"]["ack"]
    # Nothing more was written.
    assert (scene.written, scene.store.early) == ([], {})
    assert scene.marks() == [mark]


def test_messages_that_are_shown_together_are_one_hand_over(scene: Scene) -> None:
    held = scene.hold()
    scene.publish(1)
    scene.publish(2)
    scene.read()
    scene.here.turn()
    assert held.data == [1, 2]
    assert (scene.written, scene.store.early) == ([], {})
    assert {mark.batch for mark in scene.marks()} == {held.replies[0]["ext"]["ack"]}


def test_a_session_that_does_not_wait_gets_none(scene: Scene) -> None:
    scene.publish()
    scene.read()
    assert scene.store.early == {}
    scene.here.turn()
    assert [mark.is_in_flight for mark in scene.marks()] == [False]


def test_nor_does_one_that_has_not_acknowledged_the_last_message(scene: Scene) -> None:
    scene.publish(1)
    scene.read()
    scene.here.turn()
    assert scene.listen().data == [1]
    scene.ack -= 1
    scene.publish(2)
    scene.read()
    assert scene.store.early == {}


def test_nor_does_one_that_is_about_to_get_an_earlier_message(scene: Scene) -> None:
    """Else the store would have the later one in flight alone, and restore it first."""
    scene.publish(1)
    scene.read()
    held = scene.hold()
    scene.publish(2)
    scene.read()
    assert scene.store.early == {}
    scene.here.turn()
    assert held.data == [1, 2]
    scene.ack = held.replies[0]["ext"]["ack"]
    scene.hold()
    scene.publish(3)
    scene.read()
    assert [*scene.store.early] == [JOE]


def test_nor_does_a_message_that_the_store_has_not_taken_count_for_ever(scene: Scene) -> None:
    scene.publish(1)
    scene.store.is_available = False
    scene.read()
    scene.here.turn()
    scene.store.is_available = True
    held = scene.hold()
    scene.pass_time()
    assert held.data == [1]
    scene.ack = held.replies[0]["ext"]["ack"]
    scene.hold()
    scene.publish(2)
    scene.read()
    assert [*scene.store.early] == [JOE]


def test_a_reply_without_the_message_waits_until_the_store_has_taken_it_back(
    scene: Scene,
) -> None:
    """Else its acknowledgement would settle the message, if the process were killed now."""
    scene.hold()
    scene.publish()
    scene.read()
    asked = scene.hold(advice={"timeout": 0})
    assert asked.is_held
    assert [mark.is_in_flight for mark in scene.marks()] == [False]
    scene.here.turn()
    assert asked.data == []
    scene.ack = asked.replies[0]["ext"]["ack"]
    assert scene.listen().data == ["hello"]


def test_nor_does_another_message_take_its_place_before(scene: Scene) -> None:
    held = scene.hold()
    scene.publish()
    scene.read()
    scene.publish_here()
    assert held.is_held
    assert [mark.is_in_flight for mark in scene.marks()] == [False]
    scene.here.turn()
    assert held.data == ["passing"]
    scene.ack = held.replies[-1]["ext"]["ack"]
    assert scene.listen().data == ["hello"]
