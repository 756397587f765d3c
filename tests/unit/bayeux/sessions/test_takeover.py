"""Takeovers of named sessions: what the new client gets, and what the old one may still do."""

from typing import Any

import pytest

from holdfast.delivery.basics.session_states import SessionState
from holdfast.delivery.queues.dispatcher import DispatcherState as Contact
from tests.unit.bayeux.harness import Asked, Client, Json, Socket, Wire, server_of
from tests.unit.bayeux.second_lives import (
    RestartableServer,
    batch,
    codes,
    connect,
    drain,
    named,
    no,
    ok,
    publish,
    seqs,
    take,
)
from tests.unit.bayeux.test_negotiation import Slow
from tests.unit.extensions.delivering import redelivered


def newcomer(server: RestartableServer, **options: Any) -> Client:
    client = server.guest()
    take(client, **options)
    return client


# What the new client gets


def test_messages_in_flight_at_a_takeover_are_redelivered_before_others() -> None:
    server = RestartableServer()
    old = named(server)
    publish(server, 1, 2)
    connect(old, 1)
    publish(server, 3)
    new = newcomer(server)
    assert batch(connect(new, 0)) == 1
    assert drain(new, 0) == ([1, 2, 3], [2, 1, 0])
    assert server.bayeux.state.hub.counters.redelivered == 3


def test_messages_in_flight_when_the_old_client_left_are_redelivered_too() -> None:
    server = RestartableServer()
    old = named(server)
    publish(server, 1)
    connect(old, 1)
    old.disconnect()
    publish(server, 2)
    assert drain(newcomer(server), 0) == ([1, 2], [1, 0])


def test_batches_of_the_old_client_do_not_count_for_the_new_one() -> None:
    server = RestartableServer()
    old = named(server)
    ack = 1
    for number in range(4):
        publish(server, number)
        ack = batch(connect(old, ack))
    publish(server, 9)
    connect(old, ack)
    server.bayeux.life.hold_back(old.session, "maintenance", who="operator", now=server.now)
    connect(old, ack)
    new = newcomer(server, dispatcherActive=True)
    answer = connect(new, 0)
    assert answer.data == [9]
    assert connect(new, batch(answer)).data == []
    assert new.session.queue.count == 0


def test_redeliveries_to_the_old_client_do_not_delay_those_to_the_new_one() -> None:
    server = RestartableServer()
    old = named(server)
    publish(server, 1)
    for _ in range(5):
        connect(old, 1)
    new = newcomer(server)
    connect(new, 0)
    asked = new.connect(ext={"ack": 0})
    server.turn()
    assert asked.data == [1], "the first three redeliveries come at once"


def test_the_terms_of_the_new_client_replace_those_of_the_old_one() -> None:
    server = RestartableServer()
    old = named(server, queue={"maxEntries": 1})
    new = newcomer(server, queue={"maxEntries": 3}, maxEntries=2, retries=0)
    publish(server, 1, 2, 3, 4)
    assert codes(server) == ["resource.overflow.queue.entries"]
    assert connect(new, 0).data == [1, 2]
    dispatcher = new.session.dispatcher
    assert dispatcher is not None
    assert dispatcher.policy.retries == 0
    assert connect(old, 1).reply["error"].startswith("402")


def test_a_new_client_can_hold_the_queue_back_and_another_can_resume_it() -> None:
    server = RestartableServer()
    named(server)
    publish(server, 1)
    assert connect(newcomer(server, dispatcherActive=False), 0).data == []
    assert connect(newcomer(server), 0).data == []
    assert connect(newcomer(server, dispatcherActive=True), 0).data == [1]


def test_a_handshake_counts_as_contact_with_a_session_that_had_lost_it() -> None:
    server = RestartableServer()
    old = named(server, retries=3, delay=1000)
    server.advance(10.3)
    assert old.session.dispatcher is not None
    assert old.session.dispatcher.state is Contact.POLLING
    publish(server, 1)
    new = newcomer(server, retries=3, delay=1000)
    server.advance(3.0)
    assert connect(new, 0).data == [1]


def test_a_stopped_session_without_contact_lasts_until_its_session_timeout_ends() -> None:
    server = RestartableServer()
    session: Json = {"name": "joe/1", "timeout": 60_000}
    old = server.guest()
    old.handshake(ext={"ack": True, "delivery": {"session": session, "onUserException": "dead"}})
    connect(old, 0)
    old.subscribe("/a")
    server.turn()
    publish(server, 1)
    connect(old, 1, no(seqs(connect(old, 1))[0], "user.update.error"))
    server.advance(30.0)
    assert not old.session.is_gone
    server.advance(50.0)
    assert old.session.is_gone
    assert server.store.sessions == {}


# What the old client may still do


def test_a_verdict_about_a_hand_over_to_the_old_client_is_unknown() -> None:
    server = RestartableServer()
    old = named(server)
    publish(server, 1)
    (seq,) = seqs(connect(old, 1))
    new = newcomer(server)
    assert connect(new, 0, ok(seq)).data == [1]
    assert server.bayeux.state.hub.counters.verdicts_unknown == 1


def test_a_reply_that_waits_for_the_store_carries_no_messages_to_an_old_client() -> None:
    server = RestartableServer()
    old = named(server)
    publish(server, 1)
    connect(old, 1)
    asked = old.connect(ext={"ack": 1}, advice={"timeout": 0})
    assert asked.is_held
    new = newcomer(server)
    assert asked.events == []
    answer = connect(new, 0)
    assert (answer.data, redelivered(answer)) == ([1], [2])


def test_a_reply_to_an_old_oneway_client_settles_no_messages_of_the_new_one() -> None:
    server = RestartableServer()
    old = named(server, ack=False, oneway=True)
    publish(server, 1)
    wire = Wire()
    wire.is_cut = True
    connect(old, None, wire=wire)
    asked = old.connect(advice={"timeout": 0})
    assert asked.is_held
    new = newcomer(server, ack=False, oneway=True)
    assert asked.events == []
    assert connect(new, None).data == [1]


def test_a_reply_that_waits_for_a_publish_carries_no_messages_to_an_old_client() -> None:
    server = RestartableServer()
    old = named(server)
    other = named(server, name="ann/1")
    asked = old.send(
        {"channel": "/meta/connect", "connectionType": "long-polling", "ext": {"ack": 1}},
        {"channel": "/a", "data": 1},
    )
    assert asked.is_held
    new = newcomer(server)
    assert asked.events == []
    assert [reply["successful"] for reply in asked.replies] == [True, True]
    assert connect(new, 0).data == [1]
    assert connect(other, 1).data == [1]


@pytest.mark.parametrize("is_slow", [True, False])
def test_the_reply_to_a_handshake_whose_session_was_taken_over_carries_no_messages(
    *, is_slow: bool
) -> None:
    extensions = [Slow()] if is_slow else []
    server = server_of(*extensions, allow_message_delivery_during_handshake=True)

    def shake_hands(client: Client) -> Asked:
        asked = client.begin_handshake(ext={"delivery": {"session": "joe/1", "oneway": True}})
        if is_slow:
            server.resolve(None)
        return asked

    first = server.guest()
    asked = shake_hands(first)
    server.turn()
    first.learn(asked)
    first.subscribe("/a")
    server.turn()
    publish(server, 1)
    second, third = (shake_hands(server.guest(browser=first.browser)) for _ in range(2))
    server.turn()
    assert (second.data, third.data) == ([], [1])
    assert [asked.elements[0].get("x-messages") for asked in (second, third)] == [None, 1]


def test_a_slow_handshake_whose_client_gave_up_takes_the_session_from_no_newer_one() -> None:
    server = server_of(Slow())
    client = server.guest()
    ext = {"delivery": {"session": "joe/1"}}
    slow = client.begin_handshake(ext=ext)
    server.abort(slow)
    asked = client.begin_handshake(ext=ext)
    server.pending.reverse()
    server.resolve(None)
    server.turn()
    client.learn(asked)
    server.resolve(None)
    server.turn()
    assert client.connect().reply["successful"], "it would give up for good"


def test_a_client_that_connects_and_disconnects_in_one_request_gets_no_messages() -> None:
    server = RestartableServer()
    old = named(server, retries=0)
    publish(server, 1)
    asked = old.send(
        {"channel": "/meta/connect", "connectionType": "long-polling", "ext": {"ack": 1}},
        {"channel": "/meta/disconnect"},
    )
    assert asked.events == []
    server.advance(30.0)
    assert codes(server) == []
    assert connect(newcomer(server), 0).data == [1]


def test_a_client_that_disconnects_while_its_reply_waits_leaves_its_session_away() -> None:
    server = RestartableServer()
    old = named(server, retries=0)
    publish(server, 1)
    connect(old, 1)
    asked = old.connect(ext={"ack": 1}, advice={"timeout": 0})
    session = old.session
    old.disconnect()
    server.turn()
    assert asked.events == []
    server.advance(30.0)
    assert (session.state, codes(server)) == (SessionState.AWAY, [])


def test_a_pending_disconnect_of_the_old_client_does_not_disconnect_the_new_one() -> None:
    server = RestartableServer()
    old = named(server)
    old.publish("/a", 1)
    goodbye = old.disconnect()
    assert goodbye.is_held
    new = newcomer(server)
    assert goodbye.reply["successful"] is True
    assert new.session.state is SessionState.HANDSHAKEN
    assert connect(new, 0).data == [1]


def test_every_pending_disconnect_is_answered() -> None:
    server = RestartableServer()
    old = named(server)
    old.publish("/a", 1)
    goodbyes = [old.disconnect() for _ in range(3)]
    assert all(goodbye.is_held for goodbye in goodbyes)
    server.turn()
    assert [goodbye.reply["successful"] for goodbye in goodbyes] == [True] * 3


def test_the_socket_of_an_old_client_loses_its_session() -> None:
    server = RestartableServer()
    socket = Socket()
    old = server.guest(socket=socket)
    old.send(
        {
            "channel": "/meta/handshake",
            "version": "1.0",
            "supportedConnectionTypes": ["websocket"],
            "ext": {"ack": True, "delivery": {"session": "joe/1"}},
        }
    )
    server.turn()
    old.client_id = old.hear()[0]["clientId"]
    old.connect(ext={"ack": 0})
    assert socket.session is old.session
    newcomer(server)
    assert socket.session is None


# Claims of names


def test_a_named_handshake_fails_while_the_store_is_away() -> None:
    server = RestartableServer()
    named(server)
    server.store.go_away()
    reply = take(server.guest()).reply
    assert reply["error"].startswith("503")
    assert reply["advice"]["reconnect"] == "handshake"
    assert take(server.guest(), name="ann").reply["successful"] is True


def test_session_names_can_be_used_without_durable_sessions() -> None:
    server = RestartableServer(durable="none")
    named(server)
    publish(server, 1)
    assert server.store.sessions == {}
    assert connect(newcomer(server), 0).data == [1]
    assert server.store.queues == {}


def test_a_session_that_is_gone_is_not_stored_again() -> None:
    server = RestartableServer()
    session = named(server).session
    server.for_extensions.end_by_server(session)
    server.bayeux.life.owner.note(session, server.now)
    server.bayeux.life.resume(session, server.now)
    assert server.store.sessions == {}


def test_a_publish_with_an_invalid_option_is_refused() -> None:
    server = RestartableServer()
    reply = server.connected().publish("/a", 1, ext={"delivery": {"priority": 10}}).reply
    assert reply["error"] == "400:user.publish,priority:delivery_invalid"


def test_a_takeover_drops_the_second_identity_of_the_old_client() -> None:
    server = RestartableServer()
    identities = server.bayeux.identities
    identities.welcome("second", server.now)
    identities.welcome("third", server.now)
    server.advance(0.1)
    old = named(server)
    old.browser = "second"
    assert old.publish("/b", 1).reply["successful"]
    new = server.guest(browser="mine")
    take(new)
    for browser in ("second", "third"):
        thief = server.guest(browser=browser)
        thief.client_id = new.client_id
        assert thief.publish("/b", 1).reply["error"] == "402::session_unknown"
    assert new.publish("/b", 1).reply["successful"]


def test_a_session_that_was_taken_over_can_no_longer_be_joined() -> None:
    server = RestartableServer()
    server.bayeux.identities.welcome("second", server.now)
    server.advance(0.1)
    named(server)
    new = server.guest(browser="mine")
    take(new)
    thief = server.guest(browser="second")
    thief.client_id = new.client_id
    assert thief.publish("/b", 1).reply["error"] == "402::session_unknown"
