"""How clients create, use and erase topics; the states follow the tests of xmlBlaster."""

import gc
from functools import partial
from typing import Any

import pytest

from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.wire.caller import Caller
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.topics.configured import Topic, TopicConfig, TopicRecord
from holdfast.delivery.topics.counting import topic_of
from holdfast.delivery.topics.states import TopicState
from holdfast.extensions.ack import Ack
from holdfast.extensions.delivery_wire import DeliveryWire
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import Asked, Client, Json, Server
from tests.unit.bayeux.second_lives import RestartableServer

RULE = {"/topic/**": ChannelSettings(topic=True, destroy_delay=6000)}
NAME = "/topic/a"
GONE = None


def server(**options: Any) -> Server:
    return Server(partial(Ack, announces_batch=True), DeliveryWire, **{"channels": RULE, **options})


def state_of(server: Server, name: str = NAME) -> TopicState | None:
    server.turn()
    topic = server.bayeux.state.topics.get(name)
    return None if topic is None else topic.state


def publish(client: Client, data: Any = 1, channel: str = NAME, **qos: Any) -> Json:
    asked = client.send({"channel": channel, "data": data, "ext": {"delivery": qos}})
    client.server.turn()
    return asked.reply


def receiver(server: Server, *channels: str, name: str = "", **qos: Any) -> Client:
    """A client with acks and verdicts, subscribed to these channels."""
    delivery = {"session": name} if name else True
    client = server.client(ext={"ack": True, "delivery": delivery})
    for channel in channels:
        message = {"channel": "/meta/subscribe", "subscription": channel}
        asked = client.send({**message, "ext": {"delivery": qos}})
        server.turn()
        assert asked.reply["successful"]
    client.connect()
    return client


def unsubscribe(client: Client, channel: str = NAME) -> None:
    asked = client.send({"channel": "/meta/unsubscribe", "subscription": channel})
    client.server.turn()
    assert asked.reply["successful"]


def erase(server: Server, name: str = NAME, *, is_forced: bool = False) -> None:
    topic = server.bayeux.state.topics.get(name)
    assert topic is not None
    server.bayeux.life.topics.erase(topic, is_forced=is_forced, now=server.now)


def take(client: Client, batch: int = 1) -> Asked:
    """Connect and ack this batch."""
    asked = client.connect(ext={"ack": batch}, advice={"timeout": 0})
    client.server.turn()
    return asked


def states(asked: Asked) -> list[str]:
    return [event["ext"]["delivery"]["state"] for event in asked.events]


def test_an_ordinary_channel_is_no_topic() -> None:
    here = server()
    publish(receiver(here, "/plain"), channel="/plain")
    assert state_of(here, "/plain") is GONE
    assert len(here.bayeux.state.topics) == 0


def test_a_server_without_topics_does_not_look_for_them() -> None:
    here = server(channels={})
    publish(receiver(here, NAME))
    assert not here.bayeux.state.topics.are_used
    assert state_of(here) is GONE


def test_a_topic_without_references_lives_for_its_destroy_delay() -> None:
    here = server()
    publish(here.client())
    assert state_of(here) is TopicState.UNREFERENCED
    here.advance(5.5)
    assert state_of(here) is TopicState.UNREFERENCED
    here.advance(1)
    assert state_of(here) is GONE


def test_a_publish_begins_the_destroy_delay_anew() -> None:
    here = server()
    client = here.client()
    publish(client)
    here.advance(5)
    publish(client)
    here.advance(5)
    assert state_of(here) is TopicState.UNREFERENCED
    here.advance(1.5)
    assert state_of(here) is GONE


def test_a_volatile_message_without_receivers_leaves_no_topic() -> None:
    here = server()
    publish(here.client(), expiration={"lifeTime": 0}, topic={"destroyDelay": 0})
    assert state_of(here) is GONE
    assert len(here.bayeux.state.topics) == 0


def test_a_pattern_does_not_keep_a_topic_alive_and_survives_it() -> None:
    here = server()
    watcher = receiver(here, "/topic/*")
    sender = here.client()
    publish(sender, 1, expiration={"lifeTime": 0}, topic={"destroyDelay": 0})
    assert state_of(here) is TopicState.ALIVE
    assert take(watcher, 1).data == [1]
    take(watcher, 2)
    assert state_of(here) is GONE
    publish(sender, 2)
    assert take(watcher, 2).data == [2]


def test_an_exact_subscription_keeps_a_topic_alive_until_it_ends() -> None:
    here = server()
    one = receiver(here, NAME)
    assert state_of(here) is TopicState.UNCONFIGURED
    publish(here.client(), 1, expiration={"lifeTime": 0}, topic={"destroyDelay": 0})
    assert take(one).data == [1]
    take(one, 2)
    assert state_of(here) is TopicState.ALIVE
    unsubscribe(one)
    assert state_of(here) is GONE


def test_the_last_unsubscribe_ends_a_topic_that_was_never_published_to() -> None:
    here = server()
    one, other = receiver(here, NAME), receiver(here, NAME)
    unsubscribe(one)
    assert state_of(here) is TopicState.UNCONFIGURED
    unsubscribe(other)
    assert state_of(here) is GONE


def test_the_end_of_a_session_ends_an_unconfigured_topic() -> None:
    here = server()
    one = receiver(here, NAME)
    one.send({"channel": "/meta/disconnect"})
    assert state_of(here) is GONE


def test_the_erasure_of_an_unconfigured_topic_is_told_to_all_its_subscribers() -> None:
    here = server()
    one, other = receiver(here, NAME), receiver(here, NAME)
    erase(here)
    assert state_of(here) is GONE
    for client in (one, other):
        (event,) = take(client).events
        assert event["channel"] == NAME
        assert event["data"] is None
        assert event["ext"]["delivery"]["state"] == "ERASED"
        assert event["ext"]["delivery"]["subscription"] == NAME
        assert client.session.subscriptions == set()
    assert here.balances()


def test_a_message_in_a_queue_is_still_delivered_after_a_soft_erasure() -> None:
    here = server()
    one = receiver(here, NAME)
    publish(here.client())
    assert take(one).data == [1]
    assert state_of(here) is TopicState.ALIVE
    erase(here)
    assert state_of(here) is TopicState.SOFTERASED
    assert states(take(one, 1)) == ["OK"]
    assert state_of(here) is TopicState.SOFTERASED
    assert states(take(one, 3)) == ["ERASED"]
    assert state_of(here) is GONE
    assert here.balances()


def test_a_publish_revives_a_topic_whose_messages_still_wait() -> None:
    here = server()
    one, watcher = receiver(here, NAME), receiver(here, "/topic/**")
    sender = here.client()
    publish(sender, "before")
    erase(here)
    assert state_of(here) is TopicState.SOFTERASED
    publish(sender, "after")
    assert state_of(here) is TopicState.ALIVE
    assert take(one).data == ["before", None]
    assert take(watcher).data == ["before", None, "after"]


def test_a_subscription_revives_a_topic_whose_messages_still_wait() -> None:
    here = server()
    receiver(here, NAME)
    publish(here.client())
    erase(here)
    receiver(here, NAME)
    assert state_of(here) is TopicState.ALIVE


def test_a_forced_erasure_discards_waiting_messages_and_those_in_flight() -> None:
    here = server()
    one, other = receiver(here, NAME, "/plain"), receiver(here, NAME)
    sender = here.client()
    publish(sender, "in flight")
    take(one)
    publish(sender, "waits")
    publish(sender, "plain", channel="/plain")
    erase(here, is_forced=True)
    assert state_of(here) is GONE
    assert take(one, 1).data == ["plain", None]
    assert take(other).data == [None]
    assert here.bayeux.state.counters.discarded[Reason.ERASED] == 4
    assert here.keeper.letters == []
    assert here.balances()


def test_a_forced_erasure_leaves_other_topics_alone() -> None:
    here = server()
    aside = receiver(here, "/topic/b")
    sender = here.client()
    publish(sender, 1)
    publish(sender, 2, channel="/topic/b")
    receiver(here, NAME)
    publish(sender, 3)
    erase(here, is_forced=True)
    assert take(aside).data == [2]
    assert state_of(here, "/topic/b") is TopicState.ALIVE


def test_a_forced_erasure_reaches_subject_queues() -> None:
    here = server()
    destinations = [{"name": "joe", "forceQueuing": True}]
    reply = publish(here.client(), destinations=destinations)
    assert reply["successful"]
    assert state_of(here) is TopicState.ALIVE
    erase(here, is_forced=True)
    assert state_of(here) is GONE
    assert here.bayeux.state.subjects.queues() == []
    assert here.balances()


@pytest.mark.slow
@pytest.mark.parametrize("has_sibling", [False, True])
def test_a_forced_erasure_reaches_messages_that_are_returning_to_their_subject(
    *, has_sibling: bool
) -> None:
    here = server()
    joe = receiver(here, name="joe/1")
    sender = here.client()
    for number in range(250):
        publish(sender, number, destinations=["joe"])
    if has_sibling:
        receiver(here, name="joe/2")
    # In one turn, 200 of them return.
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    erase(here, is_forced=True)
    publish(sender, "later", destinations=[{"name": "joe", "forceQueuing": True}])
    assert here.bayeux.state.counters.discarded[Reason.ERASED] == 250
    assert here.balances()
    state = here.bayeux.state
    places = [*state.sessions, *state.waiting_places.queues()]
    (left,) = [message for each in places for message in each.queue.messages()]
    assert b"later" in left.wire


@pytest.mark.slow
def test_a_forced_erasure_reaches_messages_that_leave_a_queue_before_it_is_searched() -> None:
    over = [False]
    here = server(is_turn_over=lambda: over[0])
    for _ in range(201):
        receiver(here, "/topic/*")
    joe = receiver(here, name="joe/1")
    sender = here.client()
    publish(sender, "for joe", destinations=["joe"])
    over[0] = True
    erase(here, is_forced=True)
    over[0] = False
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert state_of(here) is GONE
    assert here.bayeux.state.subjects.queues() == []
    assert here.balances()


def test_messages_that_move_between_queues_of_a_subject_keep_their_topic() -> None:
    here = server()
    publish(here.client(), destinations=[{"name": "joe", "forceQueuing": True}])
    joe = receiver(here, name="joe/1")
    here.turn()
    assert state_of(here) is TopicState.ALIVE
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.queued == 1
    joe.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert state_of(here) is TopicState.ALIVE
    assert topic.queued == 1
    joe = receiver(here, name="joe/1")
    assert topic.queued == joe.session.queue.count == 1
    take(joe)
    assert state_of(here) is TopicState.UNREFERENCED


@pytest.mark.slow
def test_an_erasure_of_many_subscriptions_takes_several_turns() -> None:
    over = [False]
    here = server(is_turn_over=lambda: over[0])
    clients = [receiver(here, NAME) for _ in range(201)]
    publish(here.client())
    over[0] = True
    erase(here, is_forced=True)
    assert len(here.bayeux.state.routes.subscribers(NAME)) == 101
    assert state_of(here) is GONE
    assert here.bayeux.state.counters.discarded[Reason.ERASED] == 201
    assert states(take(clients[200])) == ["ERASED"]
    assert here.balances()


def test_an_erasure_is_told_once_to_each_session_that_wants_to_be_notified() -> None:
    here = server()
    told = receiver(here, "/topic/**")
    both = receiver(here, NAME, "/topic/*")
    silent = receiver(here, NAME, notify=False)
    aside = receiver(here, "/topic/**", notify=False)
    plain = here.client()
    plain.subscribe(NAME)
    erase(here)
    here.turn()
    assert [event["ext"]["delivery"]["subscription"] for event in take(told).events] == [
        "/topic/**"
    ]
    assert [event["ext"]["delivery"]["subscription"] for event in take(both).events] == ["/topic/*"]
    assert take(silent).events == []
    assert take(aside).events == []
    assert plain.connect(advice={"timeout": 0}).events == []
    assert plain.session.subscriptions == set()


@pytest.mark.slow
def test_an_erasure_completes_though_its_sessions_end_meanwhile() -> None:
    over = [False]
    here = server(is_turn_over=lambda: over[0])
    clients = [receiver(here, NAME) for _ in range(101)]
    over[0] = True
    erase(here)
    for client in clients:
        client.send({"channel": "/meta/disconnect"})
    assert state_of(here) is GONE
    assert here.balances()


def test_only_the_first_publish_configures_a_topic() -> None:
    here = server(channels={})
    client = receiver(here, NAME)
    publish(client, topic={"destroyDelay": 0})
    publish(client, topic={"destroyDelay": 5000, "readonly": True})
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.config == TopicConfig(destroy_delay_ms=0)


def test_an_administrative_publish_configures_and_delivers_nothing() -> None:
    here = server(channels={})
    one = receiver(here, "/topic/*")
    reply = publish(here.client(), administrative=True, topic={"destroyDelay": -1})
    assert reply["ext"] == {"delivery": {"state": "OK"}}
    assert take(one).events == []
    assert state_of(here) is TopicState.UNREFERENCED
    here.advance(100)
    assert state_of(here) is TopicState.UNREFERENCED
    publish(here.client(), administrative=True, topic={"readonly": True})
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.config == TopicConfig(destroy_delay_ms=-1, is_readonly=True)
    erase(here)
    assert state_of(here) is GONE


def test_a_readonly_topic_refuses_a_second_message_while_the_first_is_pending() -> None:
    here = server(channels={})
    receiver(here, NAME, name="joe/1")
    client = here.client()
    here.keeper.is_silent = True
    readonly_publish = {
        "channel": NAME,
        "data": 1,
        "ext": {"delivery": {"topic": {"readonly": True}}},
    }
    client.send({"channel": NAME, "data": 0, "ext": {"delivery": {"administrative": True}}})
    client.send({**readonly_publish, "ext": {"delivery": {"administrative": True, **READONLY}}})
    client.send({"channel": NAME, "data": 1})
    refused = client.send({"channel": NAME, "data": 2}).reply
    assert refused["error"] == f"403:user.publish.readonly,{NAME}:topic_readonly"


@pytest.mark.parametrize("is_by_rule", [True, False])
def test_a_readonly_topic_is_not_made_twice_while_its_first_message_is_pending(
    is_by_rule: bool,
) -> None:
    rules = {NAME: ChannelSettings(topic=True, readonly=True)} if is_by_rule else {}
    here = server(channels=rules)
    receiver(here, NAME, name="joe/1")
    client = here.client()
    here.keeper.is_silent = True
    made = {"channel": NAME, "data": 1, "ext": {"delivery": {} if is_by_rule else READONLY}}
    client.send(made)
    refused = client.send({**made, "data": 2}).reply
    assert refused["error"] == f"403:user.publish.readonly,{NAME}:topic_readonly"


READONLY: Json = {"topic": {"readonly": True}}


def test_a_publish_that_the_store_refuses_creates_no_topic() -> None:
    here = server()
    receiver(here, "/topic/*", name="joe/1")
    here.keeper.outcome = PersistOutcome.REFUSED
    reply = publish(here.client())
    assert not reply["successful"]
    assert state_of(here) is GONE


def test_a_publish_that_would_exceed_the_limit_of_topics_is_refused() -> None:
    here = server(max_topics=1)
    client = here.client()
    assert publish(client)["successful"]
    refused = publish(client, channel="/topic/b")
    assert refused["error"] == "503:resource.exhaust,/topic/b:topics_used_up"
    assert publish(client, channel="/plain")["successful"]


def test_subscriptions_alone_use_up_no_topics() -> None:
    here = server(max_topics=1)
    receiver(here, "/topic/a", "/topic/b")
    assert len(here.bayeux.state.topics) == 1
    assert publish(here.client(), channel="/topic/c")["successful"]
    refused = publish(here.client(), channel="/topic/a")
    assert refused["error"] == "503:resource.exhaust,/topic/a:topics_used_up"


def remote(server: Server, network: str, name: str = "") -> Client:
    ext = {"delivery": {"session": name} if name else True}
    return server.client(caller=Caller(address=network, network=network), ext=ext)


def test_an_address_may_create_a_limited_number_of_topics() -> None:
    here = server(quota_topics=1)
    one, other, joe = remote(here, "10.0.0.1"), remote(here, "10.0.0.2"), here.client()
    assert publish(one)["successful"]
    refused = publish(one, channel="/topic/b")
    assert refused["error"] == "429:topics:budget_exceeded"
    assert refused["advice"] == {"reconnect": "retry", "interval": 5000, "timeout": 30000}
    assert here.bayeux.state.sessions.usages.exceeded["topics"] == 1
    assert publish(one)["successful"], "the topic exists"
    assert publish(other, channel="/topic/b")["successful"]
    assert publish(joe, channel="/topic/c")["successful"], "this machine is not counted"
    assert publish(joe, channel="/topic/d")["successful"]
    erase(here)
    assert state_of(here) is GONE
    assert publish(one, channel="/topic/e")["successful"]


def test_the_topics_of_a_subject_count_from_all_its_addresses() -> None:
    here = server(quota_topics=1)
    receiver(here, NAME)
    assert publish(remote(here, "10.0.0.1", "joe/1"))["successful"]
    refused = publish(remote(here, "10.0.0.2", "joe/2"), channel="/topic/b")
    assert refused["error"] == "429:topics:budget_exceeded"


def test_a_revived_topic_counts_for_the_address_that_revived_it() -> None:
    here = server(quota_topics=1)
    receiver(here, NAME)
    one = remote(here, "10.0.0.1")
    publish(one)
    erase(here)
    assert state_of(here) is TopicState.SOFTERASED
    assert publish(one)["successful"]
    assert publish(one, channel="/topic/b")["error"] == "429:topics:budget_exceeded"


@pytest.mark.slow
def test_topics_that_have_ended_leave_nothing_in_memory_or_the_store() -> None:
    rule = ChannelSettings(topic=True, destroy_delay=1000, history=3, durable=True)
    here = RestartableServer(channels={"/topic/**": rule})
    sender = remote(here, "10.0.0.1")
    for n in range(50):
        publish(sender, n, channel=f"/topic/{n}", expiration={"lifeTime": 500})
    topics = here.bayeux.state.topics
    assert len(topics) == 50
    here.advance(1.0)
    here.advance(2.0)
    here.turn()
    assert (len(topics), topics.states.total()) == (0, 0)
    assert here.store.topics == {}
    assert not any(here.store.queues.values())
    # This store never removes messages.
    here.store.bodies.clear()
    gc.collect()
    left = [each for each in gc.get_objects() if isinstance(each, Topic)]
    assert not [each for each in left if each.topics is topics]


@pytest.mark.parametrize("qos", [{"topic": {}}, {"administrative": True}])
def test_a_publish_to_a_service_with_options_of_topics_is_refused(qos: Json) -> None:
    here = server()
    refused = publish(here.client(), channel="/service/x", **qos)
    (name,) = qos
    assert refused["error"] == f"400:user.publish,{name}:delivery_invalid"


def test_a_message_that_finds_no_room_does_not_count_as_queued() -> None:
    here = server()
    client = here.client(ext={"ack": True, "delivery": {"queue": {"maxEntries": 1}}})
    client.subscribe(NAME)
    sender = here.client()
    publish(sender, 1)
    publish(sender, 2)
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.queued == 1
    assert here.balances()


def test_a_message_that_expires_at_a_full_queue_does_not_count_as_queued() -> None:
    here = server()
    client = here.client(ext={"ack": True, "delivery": {"queue": {"maxEntries": 1}}})
    client.subscribe(NAME)
    sender = here.client()
    publish(sender, 1)
    publish(sender, 2, expiration={"lifeTime": 0, "forceDestroy": True})
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.queued == 1
    assert here.balances()


def test_a_message_sent_to_a_plain_session_no_longer_counts_as_queued() -> None:
    here = server()
    client = here.connected()
    client.subscribe(NAME)
    held = client.connect()
    publish(here.client())
    assert held.data == [1]
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.queued == 0


def test_a_topic_is_unreferenced_when_the_queue_with_its_message_is_cleared() -> None:
    here = server()
    client = receiver(here, "/topic/*")
    publish(here.client())
    here.bayeux.life.clear(client.session)
    assert state_of(here) is TopicState.UNREFERENCED


def test_a_message_through_the_ptp_service_creates_no_topic_whatever_the_rules() -> None:
    here = server(channels={"/**": RULE["/topic/**"]})
    joe = receiver(here, name="joe/1")
    here.client().publish("/service/ptp", {"destinations": [{"name": "joe"}], "content": 1})
    here.turn()
    assert joe.session.queue.count == 1
    assert state_of(here, "/service/ptp") is GONE
    assert here.balances()


def test_a_message_through_the_ptp_service_creates_no_topic_at_a_restart() -> None:
    here = restartable_server(channels={"/**": RULE["/topic/**"]})
    receiver(here, name="joe/1")
    here.client().publish("/service/ptp", {"destinations": [{"name": "joe"}], "content": 1})
    here.turn()
    new = here.reborn()
    assert len(new.bayeux.state.topics) == 0


# Histories

KEPT = {"/topic/**": ChannelSettings(topic=True, destroy_delay=6000, history=2, durable=True)}


def test_a_message_in_the_history_keeps_a_topic_until_its_lifetime_ends() -> None:
    here = server(channels=KEPT)
    publish(here.client(), expiration={"lifeTime": 3000})
    assert state_of(here) is TopicState.ALIVE
    here.advance(3.5)
    assert state_of(here) is TopicState.UNREFERENCED
    here.advance(6.5)
    assert state_of(here) is GONE


def test_a_volatile_message_is_not_in_the_history_and_keeps_no_topic() -> None:
    here = server(channels=KEPT)
    publish(here.client(), expiration={"lifeTime": 0})
    assert state_of(here) is TopicState.UNREFERENCED


def test_a_history_with_a_smaller_depth_shrinks_at_once() -> None:
    here = server(channels=KEPT)
    sender = here.client()
    for number in range(3):
        publish(sender, number)
    histories = here.bayeux.state.hub.histories
    publish(sender, administrative=True, topic={"history": {"maxEntries": 1}})
    assert [each.wire.endswith(b":2}") for each in histories.get(NAME) or ()] == [True]
    publish(sender, administrative=True, topic={"history": {"maxEntries": 5}})
    assert len(histories) == 1
    publish(sender, administrative=True, topic={"history": {"maxEntries": 0}})
    assert len(histories) == 0


def test_the_store_keeps_a_volatile_message_for_its_receivers_only() -> None:
    here = server(channels=KEPT)
    receiver(here, NAME, name="joe/1")
    publish(here.client(), expiration={"lifeTime": 0})
    assert len(here.keeper.queues["joe/1"]) == 1
    assert NAME not in here.keeper.queues


def test_a_publish_makes_an_unreferenced_topic_alive_again() -> None:
    here = server(channels=KEPT)
    publish(here.client(), expiration={"lifeTime": 3000})
    here.advance(3.5)
    publish(here.client())
    assert state_of(here) is TopicState.ALIVE
    erase(here, is_forced=True)
    assert state_of(here) is GONE
    assert here.bayeux.state.hub.histories.get(NAME) is None


def test_a_revived_topic_has_no_history_from_before() -> None:
    here = server(channels=KEPT)
    receiver(here, NAME)
    publish(here.client(), "before")
    erase(here)
    assert state_of(here) is TopicState.SOFTERASED
    publish(here.client(), "after")
    kept = here.bayeux.state.hub.histories.get(NAME)
    assert kept is not None
    assert [b"after" in each.wire for each in kept] == [True]


def test_a_topic_counts_only_messages_that_its_history_still_keeps() -> None:
    here = server(channels=KEPT)
    client = here.client()
    for n in range(5):
        publish(client, n)
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.kept == 2


def test_a_readonly_topic_takes_one_message() -> None:
    here = server(channels=KEPT)
    one, sender = receiver(here, NAME), here.client()
    publish(sender, 1, topic={"readonly": True})
    refused = publish(sender, 2)
    assert refused["error"] == f"403:user.publish.readonly,{NAME}:topic_readonly"
    assert take(one).data == [1]


def test_a_repeat_of_the_same_data_is_not_delivered_unless_force_update_is_true() -> None:
    here = server(channels=KEPT)
    one, sender = receiver(here, NAME), here.client()
    for n, is_forced in enumerate((True, True, False, False, True), 1):
        reply = publish(sender, {"a": 1}, forceUpdate=is_forced)
        assert reply["ext"]["delivery"]["state"] == "OK"
        assert one.session.queue.count == (1, 2, 2, 2, 3)[n - 1]
    publish(sender, {"a": 1.0}, forceUpdate=False)
    assert one.session.queue.count == 4


def test_a_repeat_of_the_same_data_is_not_delivered_while_the_first_is_pending() -> None:
    here = RestartableServer(channels={NAME: ChannelSettings(history=2, durable=True)})
    one, sender = receiver(here, NAME), here.client()
    message = {"channel": NAME, "data": 1, "ext": {"delivery": {"forceUpdate": False}}}
    asked = [sender.send(message) for _ in range(3)]
    assert all(each.is_held for each in asked)
    here.turn()
    assert all(each.reply["successful"] for each in asked)
    assert one.session.queue.count == 1


def test_a_repeat_of_the_same_data_is_refused_if_the_store_refuses_the_first() -> None:
    here = RestartableServer(channels={NAME: ChannelSettings(history=2, durable=True)})
    sender = here.client()
    here.store.outcome = PersistOutcome.REFUSED
    here.for_extensions.publish(NAME, 1)
    asked = sender.send({"channel": NAME, "data": 1, "ext": {"delivery": {"forceUpdate": False}}})
    here.for_extensions.publish(NAME, 1, qos=Qos(force_update=False))
    here.turn()
    assert asked.reply["error"].startswith("503:")


def test_a_repeat_of_the_same_data_is_delivered_if_there_is_no_history() -> None:
    here = server(channels={})
    one, sender = receiver(here, NAME), here.client()
    publish(sender, 1, forceUpdate=False)
    publish(sender, 1, forceUpdate=False)
    assert one.session.queue.count == 2


def test_messages_kept_before_a_channel_became_a_topic_go_with_the_topic() -> None:
    rule = ChannelSettings(history=2)
    here = server(channels={"/plain": rule})
    sender = here.client()
    publish(sender, 1, channel="/plain")
    publish(sender, 2, channel="/plain", administrative=True, topic={"destroyDelay": 0})
    assert state_of(here, "/plain") is GONE
    assert here.bayeux.state.hub.histories.get("/plain") is None


def test_an_initial_update_counts_as_queued_in_its_topic() -> None:
    here = server(channels=KEPT)
    publish(here.client())
    one = receiver(here, NAME, initialUpdate=True)
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.queued == one.session.queue.count == 1


# Restarts


def restartable_server(**options: Any) -> RestartableServer:
    return RestartableServer(**{"channels": RULE, **options})


def test_a_topic_is_in_the_store_until_it_ends() -> None:
    here = restartable_server()
    publish(here.client())
    assert here.store.topics == {NAME: TopicRecord()}
    here.advance(6.5)
    assert here.store.topics == {}


def test_a_topic_of_one_turn_is_never_stored() -> None:
    here = restartable_server()
    saved: list[Any] = []
    here.store.save_topics = saved.append  # type: ignore[assignment, method-assign]
    publish(here.client(), expiration={"lifeTime": 0}, topic={"destroyDelay": 0})
    receiver(here, NAME)
    assert saved == []


def test_a_restart_keeps_topics_and_their_own_configurations() -> None:
    here = restartable_server()
    publish(here.client(), topic={"destroyDelay": -1})
    publish(here.client(), channel="/plain", topic={"readonly": True})
    new = here.reborn()
    assert state_of(new) is TopicState.UNREFERENCED
    topics = new.bayeux.state.topics
    found = [topics.get(NAME), topics.get("/plain")]
    assert [each and each.config for each in found] == [
        TopicConfig(destroy_delay_ms=-1),
        TopicConfig(is_readonly=True),
    ]


def test_a_topic_that_its_rule_configures_follows_a_new_rule_after_a_restart() -> None:
    here = restartable_server()
    publish(here.client())
    rule = ChannelSettings(topic=True, destroy_delay=1000)
    new = here.reborn(channels={"/topic/**": rule})
    new.advance(1.5)
    assert state_of(new) is GONE
    assert here.store.topics == {}


def test_the_destroy_delay_starts_anew_after_a_restart() -> None:
    here = restartable_server()
    publish(here.client())
    here.advance(5)
    new = here.reborn()
    new.advance(5.5)
    assert state_of(new) is TopicState.UNREFERENCED
    new.advance(1)
    assert state_of(new) is GONE


def test_waiting_messages_and_subscriptions_keep_a_topic_alive_over_a_restart() -> None:
    here = restartable_server()
    joe = receiver(here, NAME, name="joe/1")
    receiver(here, "/topic/*", name="ann/1")
    publish(here.client())
    new = here.reborn()
    assert state_of(new) is TopicState.ALIVE
    topic = new.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.queued == 2
    assert topic.is_subscribed
    assert joe.session.queue.count == 1


def test_a_soft_erased_topic_survives_a_restart_until_its_messages_are_settled() -> None:
    here = restartable_server()
    receiver(here, NAME, name="joe/1")
    publish(here.client())
    erase(here)
    assert state_of(here) is TopicState.SOFTERASED
    assert here.store.topics == {NAME: TopicRecord(is_erased=True)}
    new = here.reborn()
    assert state_of(new) is TopicState.SOFTERASED
    joe = receiver(new, name="joe/1")
    take(joe)
    take(joe, 2)
    assert state_of(new) is GONE
    assert here.store.topics == {}


def test_the_record_of_an_erased_topic_without_messages_is_removed_at_the_start() -> None:
    here = restartable_server()
    here.store.topics[NAME] = TopicRecord(is_erased=True)
    new = here.reborn()
    assert state_of(new) is GONE
    assert here.store.topics == {}


def test_a_new_rule_makes_topics_of_channels_with_waiting_messages() -> None:
    here = restartable_server(channels={})
    receiver(here, NAME, "/plain", name="joe/1")
    publish(here.client())
    publish(here.client(), channel="/plain")
    new = here.reborn(channels=RULE)
    assert state_of(new) is TopicState.ALIVE
    assert state_of(new, "/plain") is GONE
    assert here.reborn(channels={}).bayeux.state.topics.get("/plain") is None


def test_topics_are_stored_again_in_a_store_that_has_lost_them() -> None:
    here = restartable_server()
    receiver(here, NAME)
    assert here.bayeux.life.topics.records() == {}
    publish(here.client())
    assert here.bayeux.life.topics.records() == {NAME: TopicRecord()}


def test_a_history_keeps_its_topic_alive_over_a_restart() -> None:
    here = restartable_server(channels=KEPT)
    publish(here.client(), topic={"destroyDelay": 0})
    new = here.reborn()
    assert state_of(new) is TopicState.ALIVE
    topic = new.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert topic.kept == 1
    assert topic.config == TopicConfig(destroy_delay_ms=0)


def test_a_kept_message_outweighs_the_older_record_of_an_erasure() -> None:
    here = restartable_server(channels=KEPT)
    publish(here.client())
    here.store.topics[NAME] = TopicRecord(is_erased=True)
    assert state_of(here.reborn()) is TopicState.ALIVE


def test_histories_of_ordinary_channels_are_no_topics_after_a_restart() -> None:
    here = restartable_server(channels={"/plain": ChannelSettings(history=2, durable=True)})
    publish(here.client(), channel="/plain")
    here.store.topics[NAME] = TopicRecord()
    new = here.reborn()
    assert state_of(new, "/plain") is GONE
    assert new.bayeux.state.hub.histories.get("/plain") is not None


def test_old_and_new_subscribers_of_a_topic_get_their_messages_after_a_restart() -> None:
    here = restartable_server(channels=KEPT)
    joe = receiver(here, NAME, name="joe/1")
    publish(here.client(), 1)
    assert take(joe).data == [1]
    publish(here.client(), 2)
    new = here.reborn()
    joe = new.client(ext={"ack": True, "delivery": {"session": "joe/1"}})
    asked = joe.connect()
    new.turn()
    assert asked.data == [1]
    ann = new.client(ext={"ack": True, "delivery": True})
    subscribe = {"channel": "/meta/subscribe", "subscription": NAME}
    ann.send({**subscribe, "ext": {"delivery": {"initialUpdate": True}}})
    new.turn()
    assert ann.connect().data == [2]
    topic = new.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert (topic.kept, topic.queued) == (2, 3)


def test_an_initial_update_is_marked_and_has_the_properties_of_its_message() -> None:
    here = server(channels=KEPT)
    properties = {"oneKey": "one", "twoKey": "two", "threeKey": 55}
    publish(here.client(), properties=properties)
    client = here.client(ext={"ack": True, "delivery": True})
    subscribe = {"channel": "/meta/subscribe", "subscription": NAME}
    client.send({**subscribe, "ext": {"delivery": {"initialUpdate": True}}})
    (event,) = client.connect().events
    assert event["ext"]["delivery"]["properties"] == properties
    assert event["ext"]["delivery"]["initial"] is True


def test_a_topic_with_a_history_depth_of_its_own_keeps_it_over_a_restart() -> None:
    here = restartable_server(channels={"/plain": ChannelSettings(durable=True)})
    client = here.client()
    publish(client, 0, channel="/plain", topic={"history": {"maxEntries": 2}})
    for n in (1, 2, 3):
        asked = client.publish("/plain", n)
        here.turn()
        assert asked.reply["successful"]
    new = here.reborn()
    topic = new.bayeux.state.topics.get("/plain")
    assert topic is not None
    assert topic.config.depth == HistoryDepth(2)
    assert topic.kept == 2
    assert new.bayeux.state.keeps_history
    assert len(here.store.queues["/plain"]) == 2


def test_a_topic_may_keep_no_history_although_its_rule_does() -> None:
    here = server(channels=KEPT)
    publish(here.client(), topic={"history": {"maxEntries": 0}})
    assert here.bayeux.state.hub.histories.get(NAME) is None


def test_a_work_queue_may_be_a_topic() -> None:
    rule = ChannelSettings(topic=True, destroy_delay=0, work_queue=True)
    here = server(channels={NAME: rule})
    publish(here.client())
    topic = here.bayeux.state.topics.get(NAME)
    assert topic is not None
    assert (topic.state, topic.queued) == (TopicState.ALIVE, 1)
    one = receiver(here, NAME)
    assert here.balances()
    # Only receivers with contact get work.
    assert take(one, 1).data == []
    assert take(one, 2).data == [1]
    take(one, 3)
    unsubscribe(one)
    assert here.balances()
    assert state_of(here) is GONE


def test_a_forced_erasure_reaches_work_queues() -> None:
    rule = ChannelSettings(topic=True, destroy_delay=0, work_queue=True)
    here = server(channels={NAME: rule})
    publish(here.client())
    erase(here, is_forced=True)
    assert state_of(here) is GONE
    assert here.balances()


def test_a_replayed_message_creates_no_topic_at_a_restart() -> None:
    here = restartable_server()
    joe = receiver(here, "/topic/*")
    letter = Message(b"{}", id=1, channel=NAME)
    letter.generation = 1
    here.bayeux.state.hub.replay(joe.session, letter, 1)
    here.bayeux.life.topics.restore()
    assert topic_of(letter) is None
    assert state_of(here) is GONE
