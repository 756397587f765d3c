"""Sessions that the store keeps: taken over, left, and back after a restart."""

from functools import partial
from typing import Any

from app.bayeux.life import State
from app.bayeux.options import Durable
from app.bayeux.records import restore
from app.delivery.keeper import Kept
from extensions.ack import Ack
from extensions.delivery import Delivery
from tests.unit.bayeux.harness import Client, House
from tests.unit.bayeux.second_lives import again, connect, publish, redelivered

NAMED = {"session": "joe/1"}


def house_of(house: House | None = None, **options: Any) -> House:
    """A server; one that comes after another has its store."""
    keeper = None if house is None else house.keeper
    new = House(Delivery, partial(Ack, announces_batch=False), keeper=keeper, **options)
    if house is not None:
        new.now = house.now + 10
        for record in list(house.keeper.sessions.values()):
            restore(new.bayeux, record, house.keeper.waiting(record.key))
        new.turn()
    return new


def named(house: House, browser: str | None = None, **options: Any) -> Client:
    client = house.guest(browser=browser)
    client.handshake(ext={"ack": True, "delivery": {**NAMED, **options}})
    connect(client, 0)
    client.subscribe("/a")
    house.turn()
    return client


# Publishing what is kept


def test_a_durable_publish_is_answered_and_shown_when_it_is_kept() -> None:
    house = house_of()
    client = named(house)
    waiting = client.connect(ext={"ack": 1})
    publisher = house.connected()
    asked = publisher.publish("/a", 1)
    assert asked.is_held
    assert waiting.is_held
    house.turn()
    assert asked.reply["successful"] is True
    assert waiting.data == [1]


def test_what_comes_behind_on_its_channel_waits_too_whoever_it_is_from() -> None:
    house = house_of()
    plain = house.connected()
    plain.subscribe("/a", "/b")
    client = named(house)
    alice, bob = house.connected(), house.connected()
    first = alice.publish("/a", 1)
    second = bob.publish("/a", 2, ext={"delivery": {"persistent": False}})
    other = bob.publish("/b", 3)
    assert (first.is_held, second.is_held, other.is_held) == (True, True, False)
    assert plain.connect().data == [3]
    house.turn()
    assert plain.connect().data == [1, 2]
    assert connect(client, 1).data == [1, 2]


def test_a_publish_that_the_store_refuses_is_refused_and_never_shown() -> None:
    house = house_of()
    client = named(house)
    house.keeper.outcome = Kept.REFUSED
    asked = house.connected().publish("/a", 1)
    house.turn()
    assert asked.reply["error"] == "503:communication.noConnection:store_unavailable"
    house.keeper.is_available = False
    asked = house.connected().publish("/a", 2)
    assert asked.reply["error"] == "503:communication.noConnection:store_unavailable"
    house.keeper.is_available = True
    assert connect(client, 1).data == []
    assert house.balances()


def test_a_publish_of_which_nobody_knows_is_shown_when_it_turns_out_to_be_kept() -> None:
    house = house_of()
    client = named(house)
    publisher = house.connected()
    house.keeper.is_silent = True
    asked = publisher.publish("/a", 1)
    house.keeper.answer_late(Kept.UNKNOWN)
    house.turn()
    assert asked.reply["error"] == "503:communication.noConnection,unknown:store_unavailable"
    behind = publisher.publish("/a", 2, ext={"delivery": {"persistent": False}})
    assert behind.reply["successful"] is True
    house.keeper.answer_late(Kept.KEPT)
    assert connect(client, 1).data == [1, 2], "it takes the place that it has after a restart"


def test_a_disconnect_waits_for_the_publishes_of_its_session() -> None:
    house = house_of()
    named(house)
    publisher = house.connected()
    session = publisher.session
    asked = publisher.publish("/a", 1)
    goodbye = publisher.disconnect()
    assert goodbye.is_held
    house.turn()
    assert asked.reply["successful"] is True
    assert goodbye.reply["successful"] is True
    assert session.is_gone


def test_too_many_publishes_that_wait_for_the_store_are_refused() -> None:
    house = house_of()
    named(house)
    publisher = house.connected()
    asked = [publisher.publish("/a", number) for number in range(300)]
    refused = [each for each in asked if not each.is_held]
    assert len(refused) == 300 - 256
    assert refused[0].reply["error"] == "503:256:publishes_exceeded"


def test_durable_entries_are_not_handed_over_while_the_store_is_away() -> None:
    house = house_of()
    client = named(house)
    publish(house, 1)
    house.keeper.is_available = False
    assert connect(client, 1).data == []
    house.keeper.is_available = True
    assert connect(client, 2).data == [1]


# Names


def test_a_handshake_with_the_name_of_a_living_session_takes_it_over() -> None:
    house = house_of()
    old = named(house)
    publish(house, 1)
    assert connect(old, 1).data == [1]
    publish(house, 2)
    new = house.guest()
    told = new.handshake(ext={"ack": True, "delivery": NAMED}).elements[0]["ext"]["delivery"]
    assert (told["resumed"], told["waiting"]) == (True, 2)
    reply = connect(old, 2).elements[-1]
    assert reply["error"].startswith("402")
    assert reply["advice"]["reconnect"] == "none"
    answer = connect(new, 0)
    assert answer.data == [1, 2]
    assert answer.elements[-1]["ext"]["ack"] == 1
    assert len(house.bayeux.sessions.of_subject("joe")) == 1
    assert house.balances()


def test_a_client_that_leaves_a_named_session_finds_everything_when_it_comes_back() -> None:
    house = house_of()
    old = named(house)
    old.disconnect()
    house.advance(600.0)
    publish(house, 1)
    assert old.session.state is State.AWAY
    new = house.guest()
    new.handshake(ext={"ack": True, "delivery": NAMED})
    assert connect(new, 0).data == [1]


def test_a_client_can_end_a_named_session() -> None:
    house = house_of()
    client = named(house)
    publish(house, 1)
    session = client.session
    client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    house.turn()
    assert session.is_gone
    assert house.keeper.sessions == {}
    assert house.keeper.queues == {}
    assert house.balances()


def test_a_named_session_that_nobody_comes_back_to_ends_with_dead_letters() -> None:
    house = house_of()
    client = house.client(
        ext={"ack": True, "delivery": {"session": {"name": "joe/1", "timeout": 60000}}}
    )
    client.subscribe("/a")
    house.turn()
    publish(house, 1)
    house.advance(30.0)
    assert not client.session.is_gone
    house.advance(80.0)
    assert client.session.is_gone
    assert [letter.code for letter in house.keeper.letters] == ["communication.noConnection"]
    assert house.keeper.sessions == {}
    assert house.balances()


def test_a_subject_has_no_more_sessions_than_it_may() -> None:
    house = house_of()
    for number in (1, 2):
        name = {"name": f"joe/{number}", "maxSessions": 2}
        assert house.guest().handshake(ext={"delivery": {"session": name}}).reply["successful"]
    reply = (
        house.guest()
        .handshake(ext={"delivery": {"session": {"name": "joe/3", "maxSessions": 2}}})
        .reply
    )
    assert reply["error"] == "403:user.configuration.maxSession:sessions_exceeded"
    cleared = {"name": "joe/3", "clearSessions": True}
    assert house.guest().handshake(ext={"delivery": {"session": cleared}}).reply["successful"]
    assert [s.key for s in house.bayeux.sessions.of_subject("joe")] == ["joe/3"]


# Restart


def test_a_durable_session_goes_on_after_a_restart() -> None:
    before = house_of()
    client = named(before)
    publish(before, 1, 2)
    assert connect(client, 1).data == [1, 2]
    publish(before, 3)
    house = house_of(before)
    client = again(client, house)
    answer = connect(client, 1)
    assert answer.data == [1, 2, 3]
    assert redelivered(answer) == [1, 1, 0]
    publish(house, 4)
    assert connect(client, answer.elements[-1]["ext"]["ack"]).data == [4]
    assert house.balances()


def test_what_was_acknowledged_with_the_first_connect_after_a_restart_does_not_come_again() -> None:
    before = house_of()
    client = named(before)
    publish(before, 1)
    answer = connect(client, 1)
    batch = answer.elements[-1]["ext"]["ack"]
    for _ in range(5):
        batch = connect(client, batch).elements[-1]["ext"]["ack"]
    publish(before, 2)
    answer = connect(client, batch)
    assert answer.data == [2]
    batch = answer.elements[-1]["ext"]["ack"]
    house = house_of(before)
    client = again(client, house)
    answer = connect(client, batch)
    assert answer.data == []
    assert answer.elements[-1]["ext"]["ack"] > batch
    assert house.keeper.queues["joe/1"] == {}
    assert house.bayeux.hub.counters.acks_out_of_range == 0


def test_attempts_and_holdback_survive_a_restart() -> None:
    before = house_of()
    client = named(before)
    publish(before, 1, 2)
    events = connect(client, 1).events
    seq = events[0]["ext"]["delivery"]["seq"]
    connect(client, 2, {"seq": seq, "errorCode": "user.update.holdback", "message": "full"})
    house = house_of(before)
    client = again(client, house)
    assert connect(client, 3).data == []
    session = client.session
    assert session.dispatcher is not None
    assert session.dispatcher.hold_record is not None
    assert session.dispatcher.hold_record.reason == "full"
    house.bayeux.resume(session)
    answer = connect(client, 4)
    assert answer.data == [1, 2]
    assert redelivered(answer) == [1, 0]


def test_subscriptions_survive_a_restart() -> None:
    before = house_of()
    client = named(before)
    client.subscribe("/b", "/c/**")
    client.unsubscribe("/a")
    before.turn()
    house = house_of(before)
    for channel in ("/a", "/b", "/c/d"):
        house.bayeux.publish(channel, channel)
    house.turn()
    assert connect(again(client, house), 1).data == ["/b", "/c/d"]


def test_a_session_that_was_left_before_a_restart_is_there_for_who_comes_back() -> None:
    before = house_of()
    client = named(before)
    publish(before, 1)
    client.disconnect()
    before.turn()
    house = house_of(before)
    assert connect(again(client, house), 1).reply["error"].startswith("402")
    publish(house, 2)
    new = house.guest()
    new.handshake(ext={"ack": True, "delivery": NAMED})
    assert connect(new, 0).data == [1, 2]


def test_the_response_to_a_second_attempt_waits_until_the_store_knows_of_it() -> None:
    house = house_of()
    client = named(house)
    publish(house, 1)
    connect(client, 1)
    asked = client.connect(ext={"ack": 1}, advice={"timeout": 0})
    assert asked.is_held
    house.turn()
    assert asked.data == [1]
    (mark,) = house.keeper.queues["joe/1"].values()
    assert (mark.attempts, mark.redelivered) == (2, 1)


def test_acknowledged_sessions_without_a_name_can_be_kept_too() -> None:
    before = house_of(durable=Durable.ACKED)
    client = before.client(ext={"ack": True})
    connect(client, 0)
    client.subscribe("/a")
    before.turn()
    publish(before, 1)
    house = house_of(before, durable=Durable.ACKED)
    assert connect(again(client, house), 1).data == [1]


def test_a_connect_is_held_while_the_store_is_away_and_answered_when_it_is_back() -> None:
    house = house_of()
    client = named(house)
    publish(house, 1)
    house.keeper.is_available = False
    asked = client.connect(ext={"ack": 1})
    house.advance(1.0)
    assert asked.is_held
    house.keeper.is_available = True
    house.bayeux.store_is_back()
    house.turn()
    assert asked.data == [1]


def test_who_refuses_a_message_is_answered_when_the_letter_is_kept() -> None:
    house = house_of()
    client = named(house)
    publish(house, 1)
    (event,) = connect(client, 1).events
    seq = event["ext"]["delivery"]["seq"]
    refusal = {"seq": seq, "errorCode": "user.update.error"}
    ext = {"ack": 2, "delivery": {"verdicts": [refusal]}}
    asked = client.connect(ext=ext, advice={"timeout": 0})
    assert asked.is_held
    house.turn()
    assert asked.reply["successful"] is True
    assert len(house.keeper.letters) == 1


def test_a_held_connect_that_refused_a_message_is_answered_before_the_disconnect() -> None:
    house = house_of()
    client = named(house)
    publish(house, 1)
    (event,) = connect(client, 1).events
    refusal = {"seq": event["ext"]["delivery"]["seq"], "errorCode": "user.update.error"}
    asked = client.connect(ext={"ack": 2, "delivery": {"verdicts": [refusal]}})
    house.turn()
    assert asked.is_held
    client.disconnect()
    assert not asked.is_held
