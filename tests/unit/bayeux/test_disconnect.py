"""`/meta/disconnect`: a session ends because its client, or the server, says so."""

from functools import partial

import pytest

from holdfast.bayeux.services import ServiceCall
from holdfast.delivery.counters import Reason
from holdfast.delivery.session_states import SessionInput
from holdfast.extensions.ack import Ack
from tests.unit.bayeux.desk import connect, house_of, letters, publish, receiver
from tests.unit.bayeux.harness import Asked, House, Json, Socket


def test_a_disconnect_ends_the_session() -> None:
    house = House()
    client = house.connected()
    assert client.disconnect().reply == {
        "channel": "/meta/disconnect",
        "id": "3",
        "successful": True,
    }
    assert len(house.bayeux.state.sessions) == 0
    assert house.bayeux.state.sessions.ended[SessionInput.DISCONNECT.value] == 1


def test_a_disconnect_without_a_session_is_refused() -> None:
    house = House()
    client = house.client()
    client.disconnect()
    again = client.disconnect().reply
    assert again["error"] == "402::session_unknown"
    assert "advice" not in again


def test_waiting_messages_go_with_the_reply_to_the_disconnect() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    house.server.publish("/a", 1)
    assert client.disconnect().data == [1]
    assert house.balances()


def test_waiting_messages_go_with_the_held_connect_if_there_is_one() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    asked = client.connect()
    house.server.publish("/a", 1)
    assert client.disconnect().events == []
    assert asked.data == [1]
    assert house.balances()


def test_messages_that_cannot_be_written_at_a_disconnect_are_discarded_and_counted() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    asked = client.connect()
    asked.wire.is_cut = True
    house.server.publish("/a", 1)
    wire = asked.wire.__class__()
    wire.is_cut = True
    client.disconnect(wire=wire)
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}
    assert house.balances()


def test_messages_that_wait_at_a_disconnect_with_a_refusal_are_discarded_at_once() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    [event] = client.connect(advice={"timeout": 0}, ext={"ack": 0}).events
    publish(house, 2)
    refusal = {"seq": event["ext"]["delivery"]["seq"], "errorCode": "user.update.error"}
    ext = {"delivery": {"end": True, "discard": True, "verdicts": [refusal]}}
    gone = client.send({"channel": "/meta/disconnect", "ext": ext})
    # When the session ends, not when the store has answered.
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}
    house.turn()
    assert (gone.data, letters(house)) == ([], [1])
    assert house.balances()


def test_the_reply_to_a_disconnect_brings_waiting_messages_but_not_unacked_ones() -> None:
    house = House(partial(Ack, announces_batch=False))
    client = house.connected(ext={"ack": True})
    client.subscribe("/a")
    house.server.publish("/a", "old")
    assert client.connect(ext={"ack": 1}).data == ["old"]
    house.server.publish("/a", "new")
    assert client.disconnect().data == ["new"]
    assert house.balances()


def test_a_disconnect_over_a_websocket_first_answers_the_held_connect() -> None:
    house = House()
    client = house.connected(socket=Socket(), browser="mine")
    client.connect()
    client.disconnect()
    channels = [element["channel"] for element in client.hear()]
    assert channels == ["/meta/connect", "/meta/disconnect"]


# A named session


def ending(house: House, **asked: object) -> Asked:
    """Disconnect a named session with a message in flight and one that waits."""
    client = receiver(house)
    publish(house, 1)
    assert connect(client) == [1]
    publish(house, 2)
    return client.send({"channel": "/meta/disconnect", "ext": {"delivery": asked}})


def test_the_end_of_a_named_session_is_confirmed_when_its_dead_letters_are_stored() -> None:
    house = house_of()
    asked = ending(house, end=True)
    assert asked.is_held
    house.turn()
    assert asked.reply["successful"]
    assert letters(house) == [1, 2]
    assert {letter.code for letter in house.keeper.letters} == {"communication.noConnection.dead"}
    assert "its session was ended by its client" in house.keeper.letters[0].reason
    assert (house.keeper.sessions, house.keeper.queues) == ({}, {})
    assert house.balances()


def test_the_end_of_a_named_session_with_discard_leaves_no_dead_letters() -> None:
    house = house_of()
    ending(house, end=True, discard=True)
    house.turn()
    assert letters(house) == []
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 2}
    assert house.keeper.sessions == {}
    assert house.balances()


def test_a_disconnect_with_discard_but_without_end_is_refused() -> None:
    house = house_of()
    error = "400:user.illegalArgument,discard:delivery_invalid"
    assert ending(house, discard=True).reply["error"] == error
    assert [session.queue.count for session in house.bayeux.state.sessions] == [2]


def test_a_message_with_an_ok_in_the_disconnect_becomes_no_dead_letter() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1, 2)
    events = client.connect(advice={"timeout": 0}, ext={"ack": 0}).events
    seqs = [event["ext"]["delivery"]["seq"] for event in events]
    ext = {"delivery": {"end": True, "verdicts": [{"seq": seqs[1], "state": "OK"}]}}
    client.send({"channel": "/meta/disconnect", "ext": ext})
    house.turn()
    assert letters(house) == [1]
    assert house.balances()


def test_a_message_that_is_acked_in_the_disconnect_becomes_no_dead_letter() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    connect(client)
    publish(house, 2)
    ext = {"ack": client.session.queue.batch, "delivery": {"end": True}}
    client.send({"channel": "/meta/disconnect", "ext": ext})
    house.turn()
    assert letters(house) == [2]
    assert house.balances()


def test_the_held_connect_of_a_named_session_that_its_client_ends_brings_no_messages() -> None:
    house = house_of()
    client = receiver(house)
    asked = client.connect(ext={"ack": client.session.queue.batch})
    house.server.publish("/a", 1)
    client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    house.turn()
    assert asked.data == []
    assert asked.reply["advice"]["reconnect"] == "none"
    assert letters(house) == [1]
    assert house.balances()


def test_a_named_session_ends_after_its_pending_publishes_which_become_dead_letters() -> None:
    house = house_of()
    client = receiver(house)
    published = client.publish("/a", 1)
    gone = client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert published.is_held
    assert gone.is_held
    house.turn()
    assert published.reply["successful"]
    assert gone.reply["successful"]
    assert letters(house) == [1]
    assert house.balances()


@pytest.mark.parametrize("asked", [{}, {"end": True}, {"end": True, "discard": True}], ids=repr)
def test_a_session_without_a_name_ends_without_dead_letters_in_any_disconnect_mode(
    asked: Json,
) -> None:
    house = house_of()
    client = receiver(house, session=None)
    publish(house, 1)
    connect(client)
    gone = client.send({"channel": "/meta/disconnect", "ext": {"delivery": asked}})
    assert gone.reply["successful"]
    assert letters(house) == []
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}


# By the server


def test_an_end_by_the_server_answers_the_held_connect_with_messages_and_a_disconnect() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    asked = client.connect()
    house.server.publish("/a", 1)
    house.server.end_by_server(client.session)
    assert [element["channel"] for element in asked.elements] == [
        "/a",
        "/meta/disconnect",
        "/meta/connect",
    ]
    assert house.balances()


def test_an_end_by_the_server_without_a_held_connect_discards_its_disconnect_message() -> None:
    house = House()
    client = house.connected()
    house.server.end_by_server(client.session)
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}
    assert house.balances()
    reply = client.connect().reply
    assert reply["advice"]["reconnect"] == "handshake"


def test_an_end_by_the_server_over_a_websocket_sends_the_disconnect_last() -> None:
    house = House()
    socket = Socket()
    client = house.connected(socket=socket, browser="mine")
    client.connect()
    house.server.end_by_server(client.session)
    assert socket.is_ended
    reply, farewell = client.hear()
    assert reply["advice"]["reconnect"] == "none"
    assert farewell == {"channel": "/meta/disconnect", "successful": True}
    assert house.balances()


def test_a_session_that_the_server_ends_twice_is_counted_once() -> None:
    house = House()
    session = house.connected().session
    house.server.end_by_server(session)
    house.server.end_by_server(session)
    assert house.bayeux.state.sessions.ended[SessionInput.DISCONNECT.value] == 1


def test_a_session_that_ends_after_its_connect_was_aborted_leaves_nothing_in_its_queue() -> None:
    house = House()
    client = house.connected()
    session = client.session
    client.subscribe("/a")
    asked = client.connect()
    house.abort(asked)
    house.server.publish("/a", 1)
    house.server.end_by_server(session)
    assert session.queue.count == 0
    assert house.balances()


def test_a_session_that_ends_during_its_own_request_gets_a_disconnect_in_the_answer() -> None:
    house = House()
    house.bayeux.state.services.add(
        "/service/leave", lambda call: house.server.end_by_server(call.session)
    )
    client = house.connected()
    answer = client.send({"channel": "/service/leave", "data": 1}, {"channel": "/a", "data": 1})
    assert [element["channel"] for element in answer.elements] == [
        "/meta/disconnect",
        "/service/leave",
        "/a",
    ]
    assert answer.elements[-1]["error"] == "402::session_unknown"
    assert house.balances()


def test_a_session_that_ends_during_a_request_of_another_leaves_nothing_in_its_queue() -> None:
    house = House()
    alice, bob = house.connected(), house.connected()
    victim = alice.session
    alice.subscribe("/a")
    house.bayeux.state.services.add(
        "/service/throw", lambda call: house.server.end_by_server(victim)
    )
    bob.send({"channel": "/a", "data": 1}, {"channel": "/service/throw", "data": 1})
    assert victim.queue.count == 0
    assert house.balances()


def test_two_sessions_that_end_during_one_request_both_get_a_disconnect() -> None:
    house = House()
    alice, bob = house.connected(), house.connected()

    def throw_both(call: ServiceCall) -> None:
        house.server.end_by_server(alice.session)
        house.server.end_by_server(call.session)

    house.bayeux.state.services.add("/service/throw", throw_both)
    asked = alice.connect()
    answer = bob.publish("/service/throw", 1)
    assert [element["channel"] for element in asked.elements] == [
        "/meta/disconnect",
        "/meta/connect",
    ]
    assert [element["channel"] for element in answer.elements] == [
        "/meta/disconnect",
        "/service/throw",
    ]
