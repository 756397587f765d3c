"""Channels with a home: one order for all, one history, and each publish once."""

from dataclasses import fields as fields_of
from typing import Any

import pytest

from holdfast.bayeux.publish.home_call import AS_THEY_ARE
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.wire.caller import Caller
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.topics.configured import TopicConfig, TopicRecord
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json
from tests.unit.bayeux.publish.addressing import forced, heard, named, reported
from tests.unit.bayeux.publish.shards import World

# Its home is the second of two shards, and the second of three.
NEWS = "/home/a"
RULES = {"/home/**": ChannelSettings(history=100, history_bytes=100_000)}
DURABLE = {"/home/**": ChannelSettings(history=100, history_bytes=100_000, durable=True)}


@pytest.fixture
def world() -> World:
    return World(2, channels=RULES)


def reader(world: World, name: str, **qos: Any) -> Client:
    client = named(world, name)
    ext = {"ext": {"delivery": qos}} if qos else {}
    client.send({"channel": "/meta/subscribe", "subscription": NEWS, **ext})
    client.server.turn()
    return client


def say(client: Client, data: object, **delivery: Any) -> Asked:
    fields = {"ext": {"delivery": delivery}} if delivery else {}
    asked = client.publish(NEWS, data, **fields)
    client.server.turn()
    return asked


def kept(world: World, shard: int) -> list[int]:
    found = world.shards[shard].server.bayeux.state.histories.get(NEWS)
    return [] if found is None else [message.id for message in found]


def told(asked: Asked) -> Json:
    [reply] = [each for each in asked.replies if each["channel"] == NEWS]
    return reply


def test_the_home_publishes_for_all_shards_and_keeps_the_history(world: World) -> None:
    here, there = reader(world, "bob/1"), reader(world, "ann/1")
    asked = say(world.client(0), "hello", priority=6)
    assert asked.is_held
    world.read_all()
    world.shards[0].server.turn()
    assert (heard(here), heard(there)) == (["hello"], ["hello"])
    assert kept(world, 0) == []
    [id] = kept(world, 1)
    assert told(asked)["ext"]["delivery"]["rcvTimestamp"] == str(id)
    assert all(shard.server.balances() for shard in world.shards)


def test_what_the_home_is_asked_by_its_own_clients_needs_no_call(world: World) -> None:
    assert told(say(world.client(1), "hello"))["successful"]
    assert len(kept(world, 1)) == 1


def test_deep_properties_of_an_addressed_message_arrive_at_home(world: World) -> None:
    reader(world, "ann/1")
    deep: Any = [[[[[[[[[123456789012345678]]]]]]]]]
    asked = say(named(world, "bob/1"), "hello", destinations=["ann"], properties={"tenant": deep})
    world.read_all()
    world.shards[0].server.turn()
    assert told(asked)["successful"]
    history = world.shards[1].server.bayeux.state.histories.get(NEWS)
    assert history is not None
    assert [each.properties for each in history] == [{"tenant": deep}]


def test_a_publish_without_options_is_only_confirmed(world: World) -> None:
    asked = say(world.client(0), "hello")
    world.read_all()
    world.shards[0].server.turn()
    assert told(asked).keys() == {"channel", "id", "successful"}


def test_a_publish_key_is_known_at_home(world: World) -> None:
    ann, bob = reader(world, "ann/1"), named(world, "bob/1")
    replies = []
    for _ in range(2):
        asked = say(bob, "hello", key="k")
        world.read_all()
        bob.server.turn()
        replies.append(told(asked)["ext"]["delivery"]["id"])
    assert replies[0] == replies[1]
    assert heard(ann) == ["hello"]
    assert bob.server.bayeux.state.counters.repeated == 1


def test_a_publisher_that_wants_no_echo_gets_none() -> None:
    rules = {"/home/**": ChannelSettings(broadcast_to_publisher=False)}
    world = World(2, channels=rules)
    bob, dan = reader(world, "bob/1"), reader(world, "dan/1")
    say(bob, "hello")
    world.read_all()
    assert (heard(bob), heard(dan)) == ([], ["hello"])


def test_filters_know_the_sender_and_the_options_of_the_publisher(world: World) -> None:
    ann = reader(world, "ann/1", filter="sender = 'client/bob/1' AND priority > 5")
    bob, dan = named(world, "bob/1"), named(world, "dan/1")
    for client, priority in ((bob, 4), (bob, 6), (dan, 6)):
        say(client, [client.session.key, priority], priority=priority)
    world.read_all()
    assert heard(ann) == [["bob/1", 6]]


def test_a_message_may_end_before_it_is_read(world: World) -> None:
    ann = reader(world, "ann/1")
    say(world.client(0), "late", expiration={"lifeTime": 10, "forceDestroy": True})
    world.read_all()
    ann.server.advance(0.5)
    assert heard(ann) == []


def test_the_history_counts_for_the_publisher_wherever_it_is(world: World) -> None:
    caller = Caller(network="192.0.2.1")
    say(world.client(0, caller=caller), "hello")
    say(named(world, "bob/1", caller), "hello")
    world.read_all()
    kept = list(world.shards[1].server.bayeux.state.histories)
    accounts = [message.keeping and message.keeping.account for message in kept]
    assert accounts == ["192.0.2.1", "client/bob"]


def test_what_the_home_refuses_is_refused(world: World) -> None:
    world.shards[1].refused.add(NEWS)
    asked = say(world.client(0), "hello", persistent=True)
    world.read_all()
    world.shards[0].server.turn()
    assert told(asked)["error"].startswith("503:resource.overflow.log")
    assert world.shards[1].keeper.inbox == {}


def test_a_store_of_the_home_that_refuses_is_unavailable(world: World) -> None:
    reader(world, "ann/1")
    world.shards[1].keeper.outcome = PersistOutcome.REFUSED
    asked = say(world.client(0), "hello")
    world.read_all()
    world.shards[0].server.turn()
    assert told(asked)["error"] == "503:communication.noConnection:store_unavailable"


def test_without_an_answer_of_the_home_the_outcome_is_unknown(world: World) -> None:
    client = world.client(0)
    asked = say(client, "hello")
    world.shards[0].give_up()
    client.server.turn()
    assert "unknown" in told(asked)["error"]


def test_an_unreadable_call_or_answer_is_a_fault(world: World) -> None:
    asked = [say(world.client(0), number) for number in range(2)]
    [(first, shard), (second, _)] = world.shards[0].keeper.log
    world.shards[0].keeper.log[0] = (first._replace(data=b"?"), shard)
    world.shards[0].keeper.log[1] = (second._replace(channel="other"), shard)
    world.read_all()
    world.shards[0].server.turn()
    assert [told(each)["error"][:4] for each in asked] == ["500:", "500:"]


def test_a_delayed_message_goes_home_when_it_is_due(world: World) -> None:
    ann, client = reader(world, "ann/1"), world.client(0)
    say(client, "hello", delay=1000)
    client.server.advance(1.2)
    world.read_all()
    client.server.advance(0.2)
    assert heard(ann) == ["hello"]
    assert not client.server.bayeux.state.waiting_places.queues()


@pytest.mark.parametrize("shard", [0, 1, 2])
@pytest.mark.parametrize("persistent", [True, False])
def test_the_home_sends_to_destinations_at_all_shards(shard: int, persistent: bool) -> None:
    world = World(3, channels=RULES)
    people = [named(world, name) for name in ("ann/1", "bob/1", "carl/1")]
    # Who is a destination and a subscriber gets it once.
    readers = [people[1], *[reader(world, name) for name in ("dan/1", "eve/1", "fay/1")]]
    readers[0].subscribe(NEWS)
    client = world.client(shard)
    asked = say(client, "hello", destinations=["ann", "bob", "carl"], persistent=persistent)
    world.read_all()
    client.server.turn()
    assert reported(told(asked)) == [(f"client/{name}", "OK") for name in ("ann", "bob", "carl")]
    [id] = kept(world, 1)
    assert told(asked)["ext"]["delivery"]["rcvTimestamp"] == str(id)
    assert [heard(each) for each in [*people, *readers[1:]]] == [["hello"]] * 6
    assert all(shard.keeper.inbox == {} for shard in world.shards)
    assert all(shard.server.balances() for shard in world.shards)


@pytest.mark.parametrize("is_subscribable", [True, False])
def test_publishers_hear_what_became_of_all_destinations(is_subscribable: bool) -> None:
    world = World(3, channels=RULES)
    ann, carl = named(world, "ann/1"), world.client(0)
    qos = {"subscribable": is_subscribable, "forceUpdate": False}
    for names, reports in (
        (["bob"], [("client/bob", "user.ptp.unknownDestination")]),
        (["ann", "bob"], [("client/ann", "OK"), ("client/bob", "user.ptp.unknownDestination")]),
        ([forced("joe")], [("client/joe", "QUEUED")]),
    ):
        asked = say(carl, len(names), destinations=names, **qos)
        world.read_all()
        carl.server.turn()
        assert reported(told(asked)) == reports
        assert told(asked)["successful"] is (len(reports) > 1 or reports[0][1] == "QUEUED")
    assert heard(ann) == [2]
    assert all(shard.keeper.inbox == {} for shard in world.shards)


def test_without_an_answer_of_a_destinations_shard_the_outcome_is_unknown() -> None:
    world = World(3, channels=RULES)
    bob, ann, client = named(world, "bob/1"), reader(world, "ann/1"), world.client(0)
    asked = say(client, "hello", destinations=["bob"])
    home = world.shards[1]
    home.read(0, 10)
    home.give_up()
    home.server.turn()
    world.read_all()
    client.server.turn()
    assert "unknown" in told(asked)["error"]
    assert (heard(bob), heard(ann)) == (["hello"], [])
    assert home.keeper.inbox == {}


def test_a_store_that_refuses_what_others_have_taken_leaves_it_unknown() -> None:
    world = World(3, channels=DURABLE)
    bob, client = named(world, "bob/1"), world.client(0)
    asked = say(client, "hello", destinations=["bob"])
    world.shards[1].keeper.outcome = PersistOutcome.REFUSED
    world.read_all()
    client.server.turn()
    assert "unknown" in told(asked)["error"]
    assert heard(bob) == ["hello"]
    assert kept(world, 1) == []


def test_a_kill_of_the_home_midway_doubles_nothing() -> None:
    world = World(3, channels=DURABLE)
    bob, ann, client = named(world, "bob/1"), reader(world, "ann/1"), world.client(0)
    say(client, "hello", destinations=["bob"])
    world.shards[1].read(0, 10)
    # The destination has it, but the home does not hear so.
    world.shards[2].read(1, 10)
    world.shards[1].kill()
    ann = named(world, "ann/1")
    world.read_all()
    assert (heard(bob), heard(ann)) == (["hello"], ["hello"])
    assert len(kept(world, 1)) == 1
    assert world.shards[1].keeper.inbox == {}


def test_publishers_elsewhere_have_a_quota_of_addressed_messages() -> None:
    world = World(3, channels=RULES, quota_addressed=1)
    client = named(world, "carl/1", Caller(network="192.0.2.0/24"))
    replies = []
    for name in ("bob", "eve"):
        asked = say(client, "hello", destinations=[forced(name)])
        world.read_all()
        client.server.turn()
        replies.append(told(asked))
    assert replies[0]["successful"]
    assert replies[1]["error"] == "429:addressed:budget_exceeded"
    assert replies[1]["advice"]["interval"] > 0
    assert reported(replies[1]) == [("client/eve", "resource.exhaust")]


def test_a_refused_publish_leaves_the_stored_record_of_the_topic_that_another_made() -> None:
    rule = ChannelSettings(topic=True, history=100, history_bytes=100_000, durable=True)
    world = World(2, channels={"/home/**": rule})
    keeper = world.shards[1].keeper
    keeper.is_silent = True
    for delay, outcome in ((5000, PersistOutcome.KEPT), (7000, PersistOutcome.REFUSED)):
        keeper.outcome = outcome
        say(world.client(0), "hello", topic={"destroyDelay": delay})
        world.read_all()
    assert keeper.topics == {NEWS: TopicRecord(TopicConfig(destroy_delay_ms=7000))}
    first, second = keeper._silent
    first(PersistOutcome.KEPT)
    second(PersistOutcome.REFUSED)
    world.shards[1].server.turn()
    assert keeper.topics == {NEWS: TopicRecord(TopicConfig(destroy_delay_ms=5000))}


def test_work_has_no_destinations() -> None:
    world = World(2, channels={"/home/**": ChannelSettings(work_queue=True)})
    client = world.client(0)
    for fields in ({}, {"subscribable": False}):
        asked = say(client, "hello", destinations=["bob"], **fields)
        world.read_all()
        client.server.turn()
        assert told(asked)["error"] == "400:user.publish,destinations:delivery_invalid"


# What the home is told in another form, knows by itself, or need not know.
IN_ANOTHER_FORM = {"destinations", "key", "request", "topic"}
FOUND_OUT_THERE = {"message", "outcomes", "promised"}
# The shard of the publisher has obeyed it.
OBEYED_BEFORE = {"channel", "diversion", "generates_channel", "refuse_held"}


def test_the_home_is_told_every_option_of_a_publish() -> None:
    options = {each.name for each in fields_of(Qos)}
    assert options == {*AS_THEY_ARE} | IN_ANOTHER_FORM | FOUND_OUT_THERE | OBEYED_BEFORE
