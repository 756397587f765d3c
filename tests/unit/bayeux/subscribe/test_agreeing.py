"""Durable subscriptions are answered when all other shards know of them."""

from typing import Any

import pytest

from holdfast.bayeux.sessions.restoring import restore
from tests.unit.bayeux.harness import Client
from tests.unit.bayeux.publish.shards import Shard, World

REFUSED = "503:resource.cluster.notAvailable:shard_unavailable"


@pytest.fixture
def shard() -> Shard:
    """A shard whose others do not know of subscriptions until a test says so."""
    shard = World(2).shards[0]
    shard.is_agreeing = False
    return shard


def named(shard: Shard, name: str = "joe/1") -> Client:
    client = shard.server.guest()
    delivery = {"session": {"name": name, "timeout": 60_000}}
    client.handshake(ext={"delivery": delivery, "ack": True})
    return client


def agree(shard: Shard, is_known: bool = True) -> None:
    shard.unknown.pop(0)(is_known)
    shard.server.turn()


def held(client: Client) -> set[str]:
    found: Any = client.session.subscriptions
    return set(found)


def test_a_durable_subscribe_is_answered_when_all_shards_know_of_it(shard: Shard) -> None:
    asked = named(shard).subscribe("/news")
    shard.server.turn()
    assert asked.is_held
    agree(shard)
    assert asked.reply["successful"]


def test_a_plain_subscribe_is_answered_at_once(shard: Shard) -> None:
    assert shard.server.client().subscribe("/news").reply["successful"]
    assert shard.unknown == []


def test_what_other_shards_know_already_is_answered_once_the_store_has_it(shard: Shard) -> None:
    shard.is_agreeing = True
    asked = named(shard).subscribe("/news")
    assert asked.is_held
    shard.server.turn()
    assert asked.reply["successful"]


def test_a_subscribe_of_which_not_all_shards_learn_is_refused_and_changes_nothing(
    shard: Shard,
) -> None:
    shard.is_agreeing = True
    client = named(shard)
    client.subscribe("/old")
    shard.server.turn()
    shard.is_agreeing = False
    asked = client.subscribe("/old", "/news")
    agree(shard, is_known=False)
    assert asked.reply["error"] == REFUSED
    assert held(client) == {"/old"}
    assert shard.rows == {"/old": 1, "/news": 0}
    assert list(shard.keeper.sessions["joe/1"].subscriptions) == ["/old"]


def test_a_later_subscribe_that_is_refused_keeps_what_all_shards_know(shard: Shard) -> None:
    client = named(shard)
    first, second = client.subscribe("/news"), client.subscribe("/news")
    agree(shard)
    assert first.reply["successful"]
    agree(shard, is_known=False)
    assert second.reply["error"] == REFUSED
    assert held(client) == {"/news"}


def test_what_is_subscribed_to_again_is_known_when_the_later_subscribe_is(shard: Shard) -> None:
    client = named(shard)
    client.subscribe("/news")
    client.unsubscribe("/news")
    second = client.subscribe("/news")
    agree(shard)
    agree(shard, is_known=False)
    assert second.reply["error"] == REFUSED
    assert held(client) == set()


def test_a_later_subscribe_keeps_what_an_earlier_one_is_refused(shard: Shard) -> None:
    client = named(shard)
    first, second = client.subscribe("/news"), client.subscribe("/news")
    agree(shard, is_known=False)
    assert first.reply["error"] == REFUSED
    assert held(client) == {"/news"}
    agree(shard)
    assert second.reply["successful"]
    assert shard.rows == {"/news": 1}


def test_two_refused_subscribes_to_the_same_channel_leave_nothing(shard: Shard) -> None:
    client = named(shard)
    client.subscribe("/news"), client.subscribe("/news")
    agree(shard, is_known=False)
    agree(shard, is_known=False)
    assert held(client) == set()
    assert shard.rows == {"/news": 0}


def test_a_session_that_ends_while_its_subscribe_waits_stays_ended(shard: Shard) -> None:
    client = named(shard)
    client.subscribe("/news")
    shard.server.bayeux.life.ends.end_by_server(client.session, shard.server.now)
    shard.server.turn()
    agree(shard, is_known=False)
    assert shard.keeper.sessions == {}
    assert shard.rows == {"/news": 0}
    assert shard.server.balances()


def test_every_durable_subscription_is_counted_until_it_ends(shard: Shard) -> None:
    shard.is_agreeing = True
    joe, ann = named(shard), named(shard, "ann/1")
    for client in (joe, joe, ann):
        client.subscribe("/news", "/x/*")
        shard.server.turn()
    shard.server.client().subscribe("/news")
    assert shard.rows == {"/news": 2, "/x/*": 2}
    ann.unsubscribe("/news")
    shard.server.turn()
    assert shard.rows == {"/news": 1, "/x/*": 2}
    shard.server.advance(100.0)
    assert shard.rows == {"/news": 0, "/x/*": 0}


def test_subscriptions_of_restored_sessions_are_counted(shard: Shard) -> None:
    shard.is_agreeing = True
    named(shard).subscribe("/news")
    shard.server.turn()
    record = shard.keeper.sessions["joe/1"]
    other = World(1).shards[0]
    restore(other.server.bayeux.life, record, [], other.server.now)
    assert other.rows == {"/news": 1}


def test_a_publish_for_which_the_log_has_no_room_is_refused(shard: Shard) -> None:
    shard.refused = {"/news"}
    client = shard.server.client(ext={"delivery": {}})
    reply = client.publish("/news", 1).reply
    assert reply["error"] == "503:resource.overflow.log:shard_unavailable"
    assert client.publish("/other", 1).reply["successful"]
    passing = {"ext": {"delivery": {"persistent": False}}}
    assert client.publish("/news", 1, **passing).reply["successful"]
