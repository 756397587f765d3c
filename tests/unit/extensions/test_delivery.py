"""Verdicts: what receivers say of single messages, and everything that follows from it."""

from functools import partial
from typing import Any

import pytest

from app.bayeux.life import State
from app.bayeux.options import ChannelRule
from app.delivery.dispatcher import State as Contact
from app.delivery.guard import GuardLimits
from extensions.ack import Ack
from extensions.delivery import Delivery
from tests.unit.bayeux.harness import Asked, Client, House, Json

HOLDBACK = "user.update.holdback"


def house_of(**options: Any) -> House:
    return House(Delivery, partial(Ack, announces_batch=False), **options)


def receiver(house: House, *, ack: bool = True, **options: Any) -> Client:
    """A client with verdicts and, if nothing else is said, acknowledged batches."""
    ext: Json = {"delivery": options or True}
    if ack:
        ext["ack"] = True
    client = house.client(ext=ext)
    connect(client)
    client.subscribe("/a")
    house.turn()
    return client


def connect(client: Client, *verdicts: Any, **fields: Any) -> Asked:
    """A connect that does not wait; it acknowledges what came, if batches are acknowledged."""
    ext: Json = {"delivery": {"verdicts": list(verdicts), **fields.pop("delivery", {})}}
    ack = fields.pop("ack", client.session.queue.batch)
    if ack is not None:
        ext["ack"] = ack
    fields.setdefault("advice", {"timeout": 0})
    return client.connect(ext=ext, **fields)


def publish(house: House, *numbers: object, channel: str = "/a") -> None:
    for number in numbers:
        house.bayeux.publish(channel, number)


def ok(event: Json) -> Json:
    return {"seq": event["ext"]["delivery"]["seq"], "state": "OK"}


def no(event: Json, code: str, message: str = "", **fields: Any) -> Json:
    seq = event["ext"]["delivery"]["seq"]
    return {"seq": seq, "errorCode": code, "message": message, **fields}


def codes(house: House) -> list[str]:
    return [letter.code for letter in house.keeper.letters]


def data_of(house: House) -> list[Any]:
    return [letter.envelope()["content"] for letter in house.keeper.letters]


def redelivered(asked: Asked) -> list[int]:
    return [event["ext"]["delivery"].get("redelivered", 0) for event in asked.events]


# The agreement


def test_the_reply_has_the_effective_values() -> None:
    house = house_of()
    ext = {"ack": True, "delivery": {"session": "joe/1", "delay": 1000}}
    asked = house.guest().send(
        {
            "channel": "/meta/handshake",
            "version": "1.0",
            "supportedConnectionTypes": ["long-polling"],
            "ext": ext,
        }
    )
    assert asked.is_held, "what is promised to be kept is kept before it is promised"
    house.turn()
    told = asked.elements[0]["ext"]["delivery"]
    assert told["session"]["name"] == "client/joe/1"
    assert (told["retries"], told["delay"], told["resumed"], told["waiting"]) == (
        -1,
        1000,
        False,
        0,
    )
    assert house.keeper.sessions["joe/1"].client_id == asked.elements[0]["clientId"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"retries": "many"}, "retries"),
        ({"delay": -1}, "delay"),
        ({"session": "joe/0/1"}, "session"),
        ({"session": {"name": "joe/1", "timeout": True}}, "timeout"),
        ({"oneway": 1}, "oneway"),
        ({"onUserException": "panic"}, "onUserException"),
        ([], "delivery"),
    ],
)
def test_options_that_make_no_sense_fail_the_handshake_and_are_named(
    options: Any, named: str
) -> None:
    reply = house_of().guest().handshake(ext={"delivery": options}).reply
    assert reply["error"] == f"400:user.illegalArgument,{named}:delivery_invalid"


def test_events_say_what_their_receiver_is_to_know() -> None:
    house = house_of()
    client = receiver(house, secret="topsecret")
    other = house.connected()
    other.publish("/a", {"n": 1}, ext={"delivery": {"priority": 7, "properties": {"color": "red"}}})
    (event,) = connect(client).events
    told = event["ext"]["delivery"]
    assert event["data"] == {"n": 1}
    assert told["id"].startswith("test-17")
    assert told["rcvTimestamp"] == told["id"].removeprefix("test-")
    assert told["sender"] == other.session.name
    assert (told["seq"], told["state"], told["priority"]) == (1, "OK", 7)
    assert told["properties"] == {"color": "red"}
    assert told["queue"] == {"index": 0, "size": 1}
    assert (told["subscription"], told["cbSessionId"]) == ("/a", "topsecret")
    assert "redelivered" not in told


def test_a_client_without_the_agreement_sees_nothing_of_it() -> None:
    house = house_of()
    plain = house.connected()
    plain.subscribe("/a")
    house.connected().publish("/a", 1, ext={"delivery": {"priority": 7}, "mine": True})
    (event,) = plain.connect().events
    assert event["ext"] == {"mine": True}


def test_other_fields_of_ext_stay_beside_the_servers_own() -> None:
    house = house_of()
    client = receiver(house)
    house.connected().publish("/a", 1, ext={"mine": {"x": 1}})
    (event,) = connect(client).events
    assert event["ext"]["mine"] == {"x": 1}
    assert event["ext"]["delivery"]["seq"] == 1


# Verdicts


def test_ok_settles_one_message_and_leaves_the_others() -> None:
    house = house_of()
    client = receiver(house, ack=False)
    publish(house, 1, 2)
    first, _ = connect(client, ack=None).events
    connect(client, ok(first), ack=None)
    assert house.bayeux.hub.counters.acked == 1
    assert client.session.queue.count == 1
    assert house.balances()


@pytest.mark.parametrize(
    "code",
    ["user.update.error", "user.update.deadMessage", "user.clientCode", "user.illegalArgument"],
)
def test_a_refused_message_is_dead_and_the_next_ones_flow(code: str) -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2, 3)
    events = connect(client).events
    assert connect(client, no(events[1], code, "not mine")).events == []
    assert codes(house) == [code]
    assert data_of(house) == [2]
    assert "not mine" in house.keeper.letters[0].reason
    assert house.bayeux.hub.counters.acked == 2
    assert client.session.state is State.CONNECTED
    assert house.balances()


@pytest.mark.parametrize("code", ["resource.exhaust", "internal.unknown", "nonsense", None, 7])
def test_what_a_receiver_cannot_say_counts_as_its_internal_error(code: Any) -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client, no(connect(client).events[0], code))
    assert codes(house) == ["user.update.internalError"]


def test_a_verdict_on_nothing_is_counted_and_changes_nothing() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client)
    for element in ({"seq": 99, "state": "OK"}, {"state": "OK"}, "x", None, {"seq": True}):
        connect(client, element, ack=0, delivery={"pending": [1]})
    assert house.bayeux.hub.counters.verdicts_unknown == 5
    assert client.session.queue.count == 1


def test_verdicts_can_be_published_and_the_reply_waits_until_they_are_settled() -> None:
    house = house_of()
    client = receiver(house, ack=False, session="joe/1")
    publish(house, 1)
    house.turn()
    (event,) = connect(client, ack=None).events
    asked = client.publish("/service/delivery", [ok(event)])
    assert asked.is_held
    house.turn()
    assert asked.reply["successful"] is True
    assert house.keeper.queues["joe/1"] == {}


def test_a_receiver_that_shows_the_wrong_credentials_is_ended_with_all_that_waits() -> None:
    house = house_of()
    client = receiver(house, retries=-1)
    publish(house, 1, 2)
    events = connect(client).events
    publish(house, 3)
    reply = connect(client, no(events[0], "user.security.authentication.accessDenied")).reply
    assert reply["error"].startswith("402")
    assert data_of(house) == [1, 2, 3]
    assert client.session.is_gone
    assert house.balances()


def test_under_the_literal_table_a_refusal_ends_all_delivery_until_the_next_handshake() -> None:
    house = house_of()
    client = receiver(house, onUserException="dead")
    publish(house, 1, 2)
    events = connect(client).events
    connect(client, no(events[0], "user.update.error"))
    publish(house, 3)
    assert data_of(house) == [1, 2, 3]
    assert not client.session.is_gone
    assert connect(client).events == []
    assert house.balances()


# Holding back


def test_a_message_held_back_stays_first_and_all_behind_it_stays_too() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2, 3)
    events = connect(client).events
    assert connect(client, no(events[0], HOLDBACK, "disk full")).events == []
    publish(house, 4)
    session = client.session
    dispatcher = session.dispatcher
    assert dispatcher is not None
    assert not dispatcher.is_active
    assert dispatcher.state is Contact.ALIVE
    assert session.queue.count == 4
    assert codes(house) == []
    house.bayeux.resume(session)
    answer = connect(client)
    assert answer.data == [1, 2, 3, 4]
    assert redelivered(answer) == [1, 0, 0, 0]
    assert house.balances()


def test_what_was_done_before_the_message_held_back_is_done() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2, 3)
    events = connect(client).events
    connect(client, no(events[1], HOLDBACK), ok(events[2]))
    assert client.session.queue.count == 1
    house.bayeux.resume(client.session)
    assert connect(client).data == [2]


def test_a_holdback_is_not_counted_against_a_session_without_retries() -> None:
    house = house_of()
    client = receiver(house, retries=0)
    publish(house, 1)
    connect(client, no(connect(client).events[0], HOLDBACK))
    house.advance(60.0)
    assert not client.session.is_gone
    assert codes(house) == []


def test_a_holdback_can_end_by_itself() -> None:
    house = house_of()
    client = receiver(house)
    until_ms = house.bayeux.node.now_ms() + 2000
    house.bayeux.hold_back(client.session, "lunch", "operator", until_ms)
    publish(house, 1)
    asked = client.connect(ext={"ack": client.session.queue.batch})
    house.advance(1.9)
    assert asked.is_held
    house.advance(0.3)
    assert asked.data == [1]


def test_a_plain_receiver_can_be_held_back_by_an_operator() -> None:
    house = house_of()
    client = house.connected()
    client.subscribe("/a")
    house.bayeux.hold_back(client.session, "maintenance", "operator")
    asked = client.connect()
    publish(house, 1)
    house.turn()
    assert asked.is_held
    house.bayeux.resume(client.session)
    house.turn()
    assert asked.data == [1]
    assert house.balances()


# Connections that fail


def test_a_lost_session_without_retries_leaves_dead_letters_and_ends() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client)
    publish(house, 2)
    house.advance(11.0)
    assert codes(house) == ["communication.noConnection"] * 2
    assert data_of(house) == [1, 2]
    assert client.session.is_gone
    assert connect(client).reply["advice"]["reconnect"] == "handshake"
    assert house.balances()


def test_a_lost_session_with_retries_is_awaited_and_gets_everything() -> None:
    house = house_of()
    client = receiver(house, retries=3, delay=1000)
    publish(house, 1)
    connect(client)
    publish(house, 2)
    house.advance(11.0)
    dispatcher = client.session.dispatcher
    assert dispatcher is not None
    assert dispatcher.state.value == "polling"
    answer = connect(client, ack=1)
    assert answer.data == [1, 2]
    assert redelivered(answer) == [1, 0]
    assert dispatcher.state.value == "alive"
    assert house.balances()


def test_the_last_attempt_that_fails_ends_the_session() -> None:
    house = house_of(max_interval_s=1.0)
    client = receiver(house, retries=2, delay=1000)
    publish(house, 1)
    house.advance(1.2)
    assert not client.session.is_gone
    house.advance(1.2)
    assert not client.session.is_gone
    house.advance(0.4)
    assert client.session.is_gone
    assert codes(house) == ["communication.noConnection.dead"]


def test_a_receiver_that_cannot_now_is_asked_again_when_its_delay_is_over() -> None:
    house = house_of()
    client = receiver(house, retries=3, delay=1000)
    publish(house, 1, 2)
    events = connect(client).events
    refusal = no(events[0], "communication.noConnection")
    ext = {"ack": client.session.queue.batch, "delivery": {"verdicts": [refusal]}}
    asked = client.connect(ext=ext)
    house.advance(0.3)
    assert asked.is_held
    house.advance(0.2)
    assert asked.data == [1, 2]
    assert redelivered(asked) == [1, 0]
    connect(client, *map(ok, asked.events))
    assert house.balances()
    assert codes(house) == []


def test_a_receiver_that_cannot_and_has_no_retries_is_ended() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2)
    events = connect(client).events
    connect(client, no(events[0], "communication.timeout"))
    assert codes(house) == ["communication.timeout"] * 2
    assert client.session.is_gone


def test_a_receiver_that_says_nothing_in_time_has_failed() -> None:
    house = house_of()
    client = receiver(house, ack=False, responseTimeout=1000)
    publish(house, 1)
    (event,) = connect(client, ack=None).events
    house.advance(1.2)
    assert codes(house) == ["communication.responseTimeout"]
    assert client.session.is_gone
    assert connect(client, ok(event), ack=None).reply["successful"] is False


def test_what_a_receiver_still_works_on_is_not_sent_again_until_its_time_is_over() -> None:
    house = house_of()
    client = receiver(house, retries=-1, responseTimeout=5000)
    publish(house, 1, 2)
    connect(client)
    publish(house, 3)
    answer = connect(client, delivery={"pending": [1]})
    assert answer.data == [3]
    assert house.bayeux.hub.counters.acked == 1
    for _ in range(5):
        house.advance(0.9)
        assert connect(client, delivery={"pending": [1]}).data == []
    house.advance(1.0)
    assert connect(client, delivery={"pending": [1]}).data == [1]


def test_a_lost_reply_is_no_failure_but_is_told() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client)
    answer = connect(client, ack=1)
    assert answer.data == [1]
    assert redelivered(answer) == [1]
    assert answer.events[0]["ext"]["delivery"]["seq"] == 2
    assert codes(house) == []


def test_a_verdict_counts_for_the_last_hand_over_only() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    (event,) = connect(client).events
    connect(client, ack=1)
    connect(client, no(event, "user.update.error"), ack=2)
    assert codes(house) == []
    assert house.bayeux.hub.counters.verdicts_unknown == 1


# Order and bounds


def test_priority_orders_what_was_never_handed_over() -> None:
    house = house_of()
    client = receiver(house, dispatcherActive=False)
    sender = house.connected()
    for priority in (1, 5, 9, 5):
        sender.publish("/a", priority, ext={"delivery": {"priority": priority}})
    assert connect(client).events == []
    house.bayeux.resume(client.session)
    answer = connect(client)
    assert answer.data == [9, 5, 5, 1]
    assert [e["ext"]["delivery"]["queue"]["index"] for e in answer.events] == [0, 1, 2, 3]


def test_what_came_back_precedes_everything_that_waits_whatever_its_priority() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client, no(connect(client).events[0], HOLDBACK))
    house.connected().publish("/a", 2, ext={"delivery": {"priority": 9}})
    house.bayeux.resume(client.session)
    assert connect(client).data == [1, 2]


def test_a_batch_has_no_more_entries_than_was_agreed() -> None:
    house = house_of()
    client = receiver(house, maxEntries=2)
    publish(house, 1, 2, 3)
    assert connect(client).data == [1, 2]
    assert connect(client).data == [3]


def test_overflow_is_a_dead_letter_and_the_publisher_does_not_see_it() -> None:
    house = house_of()
    client = receiver(house, queue={"maxEntries": 2})
    other = house.connected()
    assert [other.publish("/a", n).reply["successful"] for n in range(3)] == [True] * 3
    assert codes(house) == ["resource.overflow.queue.entries"]
    assert data_of(house) == [2]
    assert connect(client).data == [0, 1]
    assert "/a" in client.session.subscriptions


def test_a_message_whose_life_is_over_leaves_the_queue_where_it_waits() -> None:
    house = house_of()
    client = receiver(house, dispatcherActive=False)
    sender = house.connected()
    expiration = {"lifeTime": 1000, "forceDestroy": True}
    sender.publish("/a", 1, ext={"delivery": {"expiration": expiration}})
    sender.publish("/a", 2, ext={"delivery": {"expiration": {"lifeTime": 1000}}})
    house.advance(2.0)
    house.bayeux.resume(client.session)
    answer = connect(client)
    assert answer.data == [2]
    told = answer.events[0]["ext"]["delivery"]["expiration"]
    assert told == {"lifeTime": 1000, "remainingLife": 0}
    assert house.bayeux.hub.counters.expired == 1
    assert house.balances()


def test_a_oneway_receiver_has_what_was_written_and_cannot_refuse() -> None:
    house = house_of()
    client = receiver(house, ack=False, oneway=True)
    publish(house, 1)
    (event,) = connect(client, ack=None).events
    connect(client, no(event, "user.update.error"), ack=None)
    assert codes(house) == []
    assert house.bayeux.hub.counters.acked == 1


def test_a_channel_can_do_without_dead_letters() -> None:
    house = house_of(channels={"/a": ChannelRule(dead_letters=False)})
    client = receiver(house)
    publish(house, 1)
    connect(client, no(connect(client).events[0], "user.update.error"))
    assert codes(house) == []
    assert house.balances()


def test_a_channel_can_have_refused_messages_tried_again_before_they_are_dead() -> None:
    house = house_of(channels={"/a": ChannelRule(attempts=3, backoff_s=1.0)})
    client = receiver(house)
    publish(house, 1, 2)
    (first, _) = connect(client).events
    assert connect(client, no(first, "user.update.error")).data == []
    house.advance(1.1)
    answer = connect(client)
    assert answer.data == [1, 2]
    connect(client, no(answer.events[0], "user.update.error"))
    house.advance(2.1)
    answer = connect(client)
    connect(client, no(answer.events[0], "user.update.error"))
    assert data_of(house) == [1]
    (letter,) = house.keeper.letters
    assert [attempt.outcome for attempt in letter.attempts] == ["user.update.error"] * 3
    assert house.balances()


# Dead letters


def test_dead_letters_are_told_to_those_who_listen_and_never_become_dead_letters() -> None:
    house = house_of()
    watcher = house.client(ext={"ack": True, "delivery": True})
    connect(watcher)
    assert watcher.subscribe("/sys/deadMessage").reply["error"].startswith("403")
    watcher.session.role = "operator"
    watcher.subscribe("/sys/deadMessage")
    client = receiver(house)
    publish(house, {"x": 1})
    connect(client, no(connect(client).events[0], "user.update.error", "broken"))
    house.turn()
    (event,) = connect(watcher).events
    told = event["data"]
    assert told["content"] == {"x": 1}
    assert (told["channel"], told["errorCode"]) == ("/a", "user.update.error")
    assert told["receiver"] == client.session.name
    assert "broken" in told["reason"]
    assert event["ext"]["delivery"]["properties"]["__oid"] == "/a"
    connect(watcher, no(event, "user.update.error"))
    house.turn()
    assert len(house.keeper.letters) == 1
    assert house.balances()


def test_a_wild_subscription_from_outside_does_not_reach_into_the_system() -> None:
    house = house_of()
    curious = house.connected()
    curious.subscribe("/**")
    client = receiver(house)
    publish(house, 1)
    connect(client, no(connect(client).events[0], "user.update.error"))
    house.turn()
    assert curious.connect().data == [1]


# Channels that most receivers refuse


def refuse_all(house: House, *clients: Client, count: int = 5) -> None:
    """Messages are published that none of these can take."""
    publish(house, *range(count))
    house.turn()
    for client in clients:
        asked = connect(client)
        house.turn()
        refusals = [no(event, "user.update.error") for event in asked.events]
        assert len(refusals) >= count
        connect(client, *refusals)
        house.turn()


def acknowledging(house: House) -> Client:
    """A client of the stock kind, that only acknowledges batches."""
    client = house.client(ext={"ack": True})
    client.connect(ext={"ack": 0}, advice={"timeout": 0})
    client.subscribe("/a")
    return client


def test_a_channel_that_most_receivers_refuse_is_held_back() -> None:
    house = house_of()
    watcher = house.connected()
    watcher.session.role = "operator"
    watcher.subscribe("/sys/alert")
    clients = [receiver(house) for _ in range(3)]
    refuse_all(house, *clients)
    (alert,) = watcher.connect().data
    assert alert["channel"] == "/a"
    assert alert["reason"] == "3 of 3 receivers refused 11 of 11 messages"
    assert house.keeper.held["/a"].reason == alert["reason"]
    publish(house, "later")
    assert connect(clients[0]).data == []
    house.bayeux.release_channel("/a")
    assert connect(clients[0]).data == ["later"]
    assert house.keeper.held == {}


def test_receivers_that_only_acknowledge_speak_for_a_channel_too() -> None:
    house = house_of()
    good = [acknowledging(house) for _ in range(3)]
    bad = [receiver(house) for _ in range(3)]
    refuse_all(house, *bad)
    assert not house.bayeux.guard.held
    connect(good[0])
    publish(house, "later")
    assert [connect(client).data[-1:] for client in good] == [["later"]] * 3
    worse = receiver(house)
    refuse_all(house, *bad, worse)
    assert house.bayeux.guard.held["/a"].reason.startswith("4 of 7 receivers")
    publish(house, "held back")
    assert connect(good[1], ack=good[1].session.queue.batch).data == []


def test_one_subject_cannot_stop_a_channel_however_many_sessions_it_has() -> None:
    house = house_of()
    acknowledging(house)
    bad = [receiver(house, session=f"joe/{number}") for number in range(1, 7)]
    refuse_all(house, *bad)
    assert not house.bayeux.guard.held


def test_one_browser_cannot_stop_a_channel_however_many_sessions_it_has() -> None:
    house = house_of()
    acknowledging(house)
    browser = house.connected().browser
    bad = []
    for _ in range(6):
        client = house.client(browser=browser, ext={"ack": True, "delivery": True})
        connect(client)
        client.subscribe("/a")
        bad.append(client)
    refuse_all(house, *bad)
    assert not house.bayeux.guard.held


def test_receivers_that_get_nothing_now_do_not_speak_for_a_channel() -> None:
    house = house_of()
    held, left, gone = (receiver(house, session=f"eve{n}/1") for n in range(3))
    house.bayeux.hold_back(held.session, "for a while", "operator")
    left.send({"channel": "/meta/disconnect"})
    house.turn()
    bad = [receiver(house) for _ in range(3)]
    house.advance(9)
    for client in bad:
        connect(client)
    house.advance(5)
    assert gone.session.dispatcher is not None
    assert gone.session.dispatcher.state is Contact.POLLING
    refuse_all(house, *bad)
    assert house.bayeux.guard.is_held("/a")


def test_how_many_must_refuse_how_much_is_the_operators_choice() -> None:
    house = house_of(guard=GuardLimits(window_s=5.0, min_receivers=1, min_messages=7))
    client = receiver(house)
    refuse_all(house, client, count=6)
    house.advance(5)
    refuse_all(house, client, count=6)
    assert not house.bayeux.guard.held
    refuse_all(house, client, count=1)
    assert house.bayeux.guard.is_held("/a")


def test_nothing_is_held_back_from_receivers_that_cannot_refuse() -> None:
    house = house_of()
    plain = house.connected()
    plain.subscribe("/a")
    oneway = receiver(house, ack=False, oneway=True)
    refuse_all(house, *(receiver(house) for _ in range(3)))
    assert house.bayeux.guard.is_held("/a")
    assert plain.connect().data == list(range(5))
    asked = plain.connect()
    publish(house, "later")
    house.turn()
    assert asked.data == ["later"]
    assert connect(oneway, ack=None).data[-1] == "later"
    assert house.balances()


def test_when_no_more_can_be_written_down_nothing_is_settled_and_clients_come_back() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    (event,) = connect(client).events
    house.keeper.is_full = True
    reply = connect(client, no(event, "user.update.error")).reply
    assert reply["error"] == "503:communication.noConnection:store_unavailable"
    assert reply["advice"]["reconnect"] == "retry"
    assert reply["advice"]["interval"] > 0
    assert client.session.queue.count == 1
    house.keeper.is_full = False
    connect(client, no(event, "user.update.error"), ack=2)
    assert codes(house) == ["user.update.error"]
    assert house.balances()


def test_a_subscription_can_be_oneway_too() -> None:
    house = house_of()
    client = receiver(house)
    ext = {"delivery": {"oneway": True}}
    client.send({"channel": "/meta/subscribe", "subscription": "/b", "ext": ext})
    publish(house, 1)
    publish(house, 2, channel="/b")
    assert connect(client, ack=0).data == [1, 2]
    assert connect(client, ack=0).data == [1]
    client.unsubscribe("/b")
    client.subscribe("/b")
    publish(house, 3, channel="/b")
    connect(client, ack=0)
    assert connect(client, ack=0).data == [1, 3]
    assert house.balances()


def test_nobody_is_given_up_while_the_letters_could_not_be_written_down() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    house.keeper.is_full = True
    house.advance(20.0)
    assert not client.session.is_gone
    house.keeper.is_full = False
    house.advance(2.0)
    assert client.session.is_gone
    assert codes(house) == ["communication.noConnection"]
    assert house.balances()
