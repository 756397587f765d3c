"""Publishes that repeat the newest message of a channel with a home, and need not be delivered."""

from typing import Any

import pytest

from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client
from tests.unit.bayeux.publish.addressing import heard, named
from tests.unit.bayeux.publish.shards import World
from tests.unit.bayeux.publish.test_at_home import DURABLE, RULES, kept, reader, say, told


def update(client: Client, data: object, **delivery: Any) -> Asked:
    return say(client, data, forceUpdate=False, **delivery)


def test_the_home_delivers_nothing_if_its_newest_message_has_the_same_data() -> None:
    world = World(2, channels=RULES)
    ann, bob = reader(world, "ann/1"), named(world, "bob/1")
    for data, confirmed in ((1, 3), (1, 1), (2, 3), (1, 3)):
        asked = update(bob, data)
        world.read_all()
        bob.server.turn()
        # Without a message there is no id.
        assert len(told(asked)["ext"]["delivery"]) == confirmed
    assert heard(ann) == [1, 2, 1]
    assert len(kept(world, 1)) == len([1, 2, 1])
    assert world.shards[1].keeper.inbox == {}


def test_any_shard_repeats_data_of_another() -> None:
    world = World(3, channels=RULES)
    ann = reader(world, "ann/1")
    for name in ("dan/1", "eve/1", "fay/1"):
        asked = update(named(world, name), "same")
        world.read_all()
        assert told(asked)["successful"]
    assert heard(ann) == ["same"]


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (PersistOutcome.KEPT, ""),
        (PersistOutcome.REFUSED, "503:communication.noConnection:store_unavailable"),
        (PersistOutcome.UNKNOWN, "503:communication.noConnection,unknown:store_unavailable"),
    ],
)
def test_a_repeat_has_the_outcome_of_the_message_that_is_not_stored_yet(
    outcome: PersistOutcome, error: str
) -> None:
    world = World(2, channels=DURABLE)
    world.shards[1].keeper.outcome = outcome
    first = say(named(world, "bob/1"), "same")
    second = update(named(world, "dan/1"), "same")
    world.read_all()
    for _ in range(2):
        world.shards[0].server.turn()
    assert told(second).get("error", "") == error
    if outcome is not PersistOutcome.UNKNOWN:
        assert told(first).get("error", "") == error


@pytest.mark.parametrize("shard", [0, 1, 2])
def test_a_message_for_destinations_only_is_compared_at_the_home(shard: int) -> None:
    world = World(3, channels=RULES)
    bob, client = named(world, "bob/1"), world.client(shard)
    say(world.client(1), 1)
    for data, confirmed in ((1, 1), (2, 4), (2, 4)):
        asked = update(client, data, destinations=["bob"], subscribable=False)
        world.read_all()
        client.server.turn()
        # What is only for destinations enters no history.
        assert len(told(asked)["ext"]["delivery"]) == confirmed
    assert heard(bob) == [2, 2]


def test_a_channel_without_a_home_has_no_message_to_compare_with() -> None:
    world = World(2, channels={"/home/**": ChannelSettings(history=2)})
    client = world.client(0)
    for _ in range(2):
        asked = client.publish("/news", 1, ext={"delivery": {"forceUpdate": False}})
        client.server.turn()
        assert "id" in asked.reply["ext"]["delivery"]


def test_a_publish_behind_one_that_waits_for_another_shard_is_answered() -> None:
    world = World(2, channels=RULES)
    ann, bob = reader(world, "ann/1"), named(world, "bob/1")
    first = say(ann, "first", destinations=["bob"], persistent=False)
    second = say(bob, "second", persistent=False)
    world.read_all()
    bob.server.turn()
    ann.server.turn()
    assert told(first)["successful"]
    assert told(second)["successful"]
    assert heard(ann) == ["first", "second"]
