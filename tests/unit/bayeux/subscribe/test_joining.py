"""Subscribes are answered when no other shard leaves out what their sessions must get."""

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.bayeux import exchanges
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.publish.shards import Shard, World

if TYPE_CHECKING:
    from collections.abc import Callable

RULES = {"/home/**": ChannelSettings(history=100, history_bytes=100_000)}


@pytest.fixture
def world() -> World:
    return World(2, channels=RULES)


@pytest.fixture
def shard(world: World) -> Shard:
    """A shard for which others leave out channels until a test says so."""
    world.shards[0].is_joining = []
    return world.shards[0]


def join(shard: Shard) -> None:
    waiting: list[Callable[[], None]] = shard.is_joining or []
    shard.is_joining = None
    for done in waiting:
        done()
    shard.server.turn()


def test_a_subscribe_waits_until_others_leave_nothing_out(shard: Shard) -> None:
    asked = shard.server.client().subscribe("/news", "/weather/*")
    shard.server.turn()
    assert asked.is_held
    assert shard.joined == ["/news", "/weather/*"]
    join(shard)
    assert asked.reply["successful"]


def test_an_unsubscribe_and_a_refused_subscribe_wait_for_nothing(shard: Shard) -> None:
    client = shard.server.client()
    asked = client.subscribe("/news")
    join(shard)
    assert asked.reply["successful"]
    shard.is_joining = []
    assert client.unsubscribe("/news").reply["successful"]
    assert not client.subscribe("/meta/unheard").reply["successful"]


def test_what_comes_meanwhile_follows_the_reply(shard: Shard) -> None:
    client = shard.server.connected()
    held = client.connect()
    asked = client.subscribe("/news")
    shard.server.client().publish("/news", "hello")
    shard.server.turn()
    assert (asked.is_held, held.is_held) == (True, True)
    join(shard)
    assert asked.reply["successful"]
    assert [*asked.data, *held.data] == ["hello"]


def test_a_session_that_ends_meanwhile_is_answered_all_the_same(shard: Shard) -> None:
    client = shard.server.client()
    asked = client.subscribe("/news")
    client.disconnect()
    join(shard)
    assert not asked.is_held


def test_a_subscribe_that_reads_the_history_of_another_shard_waits_as_well(
    world: World, shard: Shard
) -> None:
    replay: dict[str, Any] = {"ext": {"replay": -2}}
    # Its home is the other shard.
    asked = shard.server.client().send(
        {"channel": "/meta/subscribe", "subscription": "/home/a", **replay}
    )
    for _ in range(3):
        shard.server.turn()
        world.read_all()
    shard.server.turn()
    assert asked.is_held
    join(shard)
    assert asked.reply["successful"]


@pytest.mark.interpreted
def test_few_subscribes_of_a_session_wait(shard: Shard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "_MOST_DELAYED", 3)
    client = shard.server.client()
    held = [client.subscribe("/news") for _ in range(3)]
    assert all(asked.is_held for asked in held)
    refused = client.subscribe("/news")
    assert refused.reply["error"].startswith("503:")
    # What cannot wait goes on.
    assert client.publish("/other", 1).reply["successful"]
    join(shard)
    assert all(asked.reply["successful"] for asked in held)
    assert client.subscribe("/weather").reply["successful"]
