"""Takeovers of named sessions: what the new client gets, and what the old one may still do."""

from typing import Any

from holdfast.bayeux.options import Durable
from holdfast.delivery.dispatcher import DispatcherState as Contact
from holdfast.delivery.session_states import SessionState
from tests.unit.bayeux.harness import Client, Json, Socket, Wire
from tests.unit.bayeux.second_lives import (
    KeptHouse,
    batch,
    codes,
    connect,
    drain,
    named,
    no,
    ok,
    publish,
    redelivered,
    seqs,
    take,
)


def newcomer(house: KeptHouse, **options: Any) -> Client:
    client = house.guest()
    take(client, **options)
    return client


# What the new client gets


def test_messages_in_flight_at_a_takeover_are_redelivered_before_others() -> None:
    house = KeptHouse()
    old = named(house)
    publish(house, 1, 2)
    connect(old, 1)
    publish(house, 3)
    new = newcomer(house)
    assert batch(connect(new, 0)) == 1
    assert drain(new, 0) == ([1, 2, 3], [2, 1, 0])
    assert house.bayeux.state.hub.counters.redelivered == 3


def test_messages_in_flight_when_the_old_client_left_are_redelivered_too() -> None:
    house = KeptHouse()
    old = named(house)
    publish(house, 1)
    connect(old, 1)
    old.disconnect()
    publish(house, 2)
    assert drain(newcomer(house), 0) == ([1, 2], [1, 0])


def test_batches_of_the_old_client_do_not_count_for_the_new_one() -> None:
    house = KeptHouse()
    old = named(house)
    ack = 1
    for number in range(4):
        publish(house, number)
        ack = batch(connect(old, ack))
    publish(house, 9)
    connect(old, ack)
    house.bayeux.life.hold_back(old.session, "maintenance", "operator", house.now)
    connect(old, ack)
    new = newcomer(house, dispatcherActive=True)
    answer = connect(new, 0)
    assert answer.data == [9]
    assert connect(new, batch(answer)).data == []
    assert new.session.queue.count == 0


def test_redeliveries_to_the_old_client_do_not_delay_those_to_the_new_one() -> None:
    house = KeptHouse()
    old = named(house)
    publish(house, 1)
    for _ in range(5):
        connect(old, 1)
    new = newcomer(house)
    connect(new, 0)
    asked = new.connect(ext={"ack": 0})
    house.turn()
    assert asked.data == [1], "the first three redeliveries come at once"


def test_the_terms_of_the_new_client_replace_those_of_the_old_one() -> None:
    house = KeptHouse()
    old = named(house, queue={"maxEntries": 1})
    new = newcomer(house, queue={"maxEntries": 3}, maxEntries=2, retries=0)
    publish(house, 1, 2, 3, 4)
    assert codes(house) == ["resource.overflow.queue.entries"]
    assert connect(new, 0).data == [1, 2]
    dispatcher = new.session.dispatcher
    assert dispatcher is not None
    assert dispatcher.policy.retries == 0
    assert connect(old, 1).reply["error"].startswith("402")


def test_a_new_client_can_hold_the_queue_back_and_another_can_resume_it() -> None:
    house = KeptHouse()
    named(house)
    publish(house, 1)
    assert connect(newcomer(house, dispatcherActive=False), 0).data == []
    assert connect(newcomer(house), 0).data == []
    assert connect(newcomer(house, dispatcherActive=True), 0).data == [1]


def test_a_handshake_counts_as_contact_with_a_session_that_had_lost_it() -> None:
    house = KeptHouse()
    old = named(house, retries=3, delay=1000)
    house.advance(10.3)
    assert old.session.dispatcher is not None
    assert old.session.dispatcher.state is Contact.POLLING
    publish(house, 1)
    new = newcomer(house, retries=3, delay=1000)
    house.advance(3.0)
    assert connect(new, 0).data == [1]


def test_a_stopped_session_without_contact_lasts_until_its_session_timeout_ends() -> None:
    house = KeptHouse()
    session: Json = {"name": "joe/1", "timeout": 60_000}
    old = house.guest()
    old.handshake(ext={"ack": True, "delivery": {"session": session, "onUserException": "dead"}})
    connect(old, 0)
    old.subscribe("/a")
    house.turn()
    publish(house, 1)
    connect(old, 1, no(seqs(connect(old, 1))[0], "user.update.error"))
    house.advance(30.0)
    assert not old.session.is_gone
    house.advance(50.0)
    assert old.session.is_gone
    assert house.store.sessions == {}


# What the old client may still do


def test_a_verdict_about_a_hand_over_to_the_old_client_is_unknown() -> None:
    house = KeptHouse()
    old = named(house)
    publish(house, 1)
    (seq,) = seqs(connect(old, 1))
    new = newcomer(house)
    assert connect(new, 0, ok(seq)).data == [1]
    assert house.bayeux.state.hub.counters.verdicts_unknown == 1


def test_a_reply_that_waits_for_the_store_carries_no_messages_to_an_old_client() -> None:
    house = KeptHouse()
    old = named(house)
    publish(house, 1)
    connect(old, 1)
    asked = old.connect(ext={"ack": 1}, advice={"timeout": 0})
    assert asked.is_held
    new = newcomer(house)
    assert asked.events == []
    answer = connect(new, 0)
    assert (answer.data, redelivered(answer)) == ([1], [2])


def test_a_reply_to_an_old_oneway_client_settles_no_messages_of_the_new_one() -> None:
    house = KeptHouse()
    old = named(house, ack=False, oneway=True)
    publish(house, 1)
    wire = Wire()
    wire.is_cut = True
    connect(old, None, wire=wire)
    asked = old.connect(advice={"timeout": 0})
    assert asked.is_held
    new = newcomer(house, ack=False, oneway=True)
    assert asked.events == []
    assert connect(new, None).data == [1]


def test_a_reply_that_waits_for_a_publish_carries_no_messages_to_an_old_client() -> None:
    house = KeptHouse()
    old = named(house)
    other = named(house, name="ann/1")
    asked = old.send(
        {"channel": "/meta/connect", "connectionType": "long-polling", "ext": {"ack": 1}},
        {"channel": "/a", "data": 1},
    )
    assert asked.is_held
    new = newcomer(house)
    assert asked.events == []
    assert [reply["successful"] for reply in asked.replies] == [True, True]
    assert connect(new, 0).data == [1]
    assert connect(other, 1).data == [1]


def test_a_client_that_connects_and_disconnects_in_one_request_gets_no_messages() -> None:
    house = KeptHouse()
    old = named(house, retries=0)
    publish(house, 1)
    asked = old.send(
        {"channel": "/meta/connect", "connectionType": "long-polling", "ext": {"ack": 1}},
        {"channel": "/meta/disconnect"},
    )
    assert asked.events == []
    house.advance(30.0)
    assert codes(house) == []
    assert connect(newcomer(house), 0).data == [1]


def test_a_client_that_disconnects_while_its_reply_waits_leaves_its_session_away() -> None:
    house = KeptHouse()
    old = named(house, retries=0)
    publish(house, 1)
    connect(old, 1)
    asked = old.connect(ext={"ack": 1}, advice={"timeout": 0})
    session = old.session
    old.disconnect()
    house.turn()
    assert asked.events == []
    house.advance(30.0)
    assert (session.state, codes(house)) == (SessionState.AWAY, [])


def test_a_pending_disconnect_of_the_old_client_does_not_disconnect_the_new_one() -> None:
    house = KeptHouse()
    old = named(house)
    old.publish("/a", 1)
    goodbye = old.disconnect()
    assert goodbye.is_held
    new = newcomer(house)
    assert goodbye.reply["successful"] is True
    assert new.session.state is SessionState.HANDSHAKEN
    assert connect(new, 0).data == [1]


def test_every_pending_disconnect_is_answered() -> None:
    house = KeptHouse()
    old = named(house)
    old.publish("/a", 1)
    goodbyes = [old.disconnect() for _ in range(3)]
    assert all(goodbye.is_held for goodbye in goodbyes)
    house.turn()
    assert [goodbye.reply["successful"] for goodbye in goodbyes] == [True] * 3


def test_the_socket_of_an_old_client_loses_its_session() -> None:
    house = KeptHouse()
    socket = Socket()
    old = house.guest(socket=socket)
    old.send(
        {
            "channel": "/meta/handshake",
            "version": "1.0",
            "supportedConnectionTypes": ["websocket"],
            "ext": {"ack": True, "delivery": {"session": "joe/1"}},
        }
    )
    house.turn()
    old.client_id = old.hear()[0]["clientId"]
    old.connect(ext={"ack": 0})
    assert socket.session is old.session
    newcomer(house)
    assert socket.session is None


# Claims of names


def test_a_named_handshake_fails_while_the_store_is_away() -> None:
    house = KeptHouse()
    named(house)
    house.store.go_away()
    reply = take(house.guest()).reply
    assert reply["error"].startswith("503")
    assert reply["advice"]["reconnect"] == "handshake"
    assert take(house.guest(), name="ann").reply["successful"] is True


def test_session_names_can_be_used_without_durable_sessions() -> None:
    house = KeptHouse(durable=Durable.NONE)
    named(house)
    publish(house, 1)
    assert house.store.sessions == {}
    assert connect(newcomer(house), 0).data == [1]
    assert house.store.queues == {}


def test_a_session_that_is_gone_is_not_stored_again() -> None:
    house = KeptHouse()
    session = named(house).session
    house.server.end_by_server(session)
    house.bayeux.life.note(session, house.now)
    house.bayeux.life.resume(session, house.now)
    assert house.store.sessions == {}


def test_a_publish_with_an_invalid_option_is_refused() -> None:
    house = KeptHouse()
    reply = house.connected().publish("/a", 1, ext={"delivery": {"priority": 10}}).reply
    assert reply["error"] == "400:user.publish,priority:delivery_invalid"


def test_a_takeover_drops_the_second_identity_of_the_old_client() -> None:
    house = KeptHouse()
    identities = house.bayeux.identities
    identities.welcome("second", house.now)
    identities.welcome("third", house.now)
    house.advance(0.1)
    old = named(house)
    old.browser = "second"
    assert old.publish("/b", 1).reply["successful"]
    new = house.guest(browser="mine")
    take(new)
    for browser in ("second", "third"):
        thief = house.guest(browser=browser)
        thief.client_id = new.client_id
        assert thief.publish("/b", 1).reply["error"] == "402::session_unknown"
    assert new.publish("/b", 1).reply["successful"]


def test_a_session_that_was_taken_over_can_no_longer_be_joined() -> None:
    house = KeptHouse()
    house.bayeux.identities.welcome("second", house.now)
    house.advance(0.1)
    named(house)
    new = house.guest(browser="mine")
    take(new)
    thief = house.guest(browser="second")
    thief.client_id = new.client_id
    assert thief.publish("/b", 1).reply["error"] == "402::session_unknown"
