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


def test_a_disconnect_of_nobody_is_refused() -> None:
    house = House()
    client = house.client()
    client.disconnect()
    again = client.disconnect().reply
    assert again["error"] == "402::session_unknown"
    assert "advice" not in again


def test_what_was_queued_travels_with_the_reply() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    house.server.publish("/a", 1)
    assert client.disconnect().data == [1]
    assert house.balances()


def test_what_was_queued_travels_with_the_held_connect_if_there_is_one() -> None:
    house = House()
    client = house.connected()
    client.subscribe("/a")
    asked = client.connect()
    house.server.publish("/a", 1)
    assert client.disconnect().events == []
    assert asked.data == [1]
    assert house.balances()


def test_what_could_not_be_written_any_more_is_discarded_and_counted() -> None:
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


def test_what_waits_while_the_store_is_told_of_a_last_refusal_is_discarded_and_counted() -> None:
    house = house_of()
    client = receiver(house)
    publish(house, 1)
    [event] = client.connect(advice={"timeout": 0}, ext={"ack": 0}).events
    publish(house, 2)
    refusal = {"seq": event["ext"]["delivery"]["seq"], "errorCode": "user.update.error"}
    ext = {"delivery": {"end": True, "discard": True, "verdicts": [refusal]}}
    gone = client.send({"channel": "/meta/disconnect", "ext": ext})
    # With its end, and not when the store has answered.
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}
    house.turn()
    assert (gone.data, letters(house)) == ([], [1])
    assert house.balances()


def test_a_client_that_leaves_is_told_what_is_new_and_not_what_it_did_not_acknowledge() -> None:
    house = House(partial(Ack, announces_batch=False))
    client = house.connected(ext={"ack": True})
    client.subscribe("/a")
    house.server.publish("/a", "old")
    assert client.connect(ext={"ack": 1}).data == ["old"]
    house.server.publish("/a", "new")
    assert client.disconnect().data == ["new"]
    assert house.balances()


def test_over_a_socket_the_held_connect_is_answered_first() -> None:
    house = House()
    client = house.connected(socket=Socket(), browser="mine")
    client.connect()
    client.disconnect()
    channels = [element["channel"] for element in client.hear()]
    assert channels == ["/meta/connect", "/meta/disconnect"]


# A named session


def ending(house: House, **asked: object) -> Asked:
    """A named session with a message in hands and one that waits is ended."""
    client = receiver(house)
    publish(house, 1)
    assert connect(client) == [1]
    publish(house, 2)
    return client.send({"channel": "/meta/disconnect", "ext": {"delivery": asked}})


def test_who_ends_a_named_session_leaves_letters_and_hears_of_it_when_they_are_kept() -> None:
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


def test_who_says_so_has_a_named_session_discarded() -> None:
    house = house_of()
    ending(house, end=True, discard=True)
    house.turn()
    assert letters(house) == []
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 2}
    assert house.keeper.sessions == {}
    assert house.balances()


def test_a_session_that_is_only_left_is_not_discarded() -> None:
    house = house_of()
    error = "400:user.illegalArgument,discard:delivery_invalid"
    assert ending(house, discard=True).reply["error"] == error
    assert [session.queue.count for session in house.bayeux.state.sessions] == [2]


def test_a_message_that_is_judged_while_leaving_is_no_letter() -> None:
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


def test_a_message_that_is_acknowledged_while_leaving_is_no_letter() -> None:
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


def test_the_connect_that_is_held_when_a_session_ends_carries_nothing() -> None:
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


def test_a_session_ends_behind_its_own_publishes_and_with_letters_too() -> None:
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
def test_a_session_without_a_name_ends_without_letters_however_it_is_said(asked: Json) -> None:
    house = house_of()
    client = receiver(house, session=None)
    publish(house, 1)
    connect(client)
    gone = client.send({"channel": "/meta/disconnect", "ext": {"delivery": asked}})
    assert gone.reply["successful"]
    assert letters(house) == []
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}


# By the server


def test_the_server_tells_a_waiting_client_and_ends_its_session() -> None:
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


def test_the_server_cannot_tell_a_client_that_does_not_wait() -> None:
    house = House()
    client = house.connected()
    house.server.end_by_server(client.session)
    assert house.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}
    assert house.balances()
    reply = client.connect().reply
    assert reply["advice"]["reconnect"] == "handshake"


def test_over_a_socket_the_servers_goodbye_comes_last() -> None:
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


def test_ending_a_session_twice_is_ending_it_once() -> None:
    house = House()
    session = house.connected().session
    house.server.end_by_server(session)
    house.server.end_by_server(session)
    assert house.bayeux.state.sessions.ended[SessionInput.DISCONNECT.value] == 1


def test_a_session_that_is_ended_after_its_connect_was_aborted_leaves_nothing_behind() -> None:
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


def test_a_session_that_is_ended_during_its_own_request_hears_of_it_in_the_answer() -> None:
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


def test_a_session_that_is_ended_during_a_request_of_another_leaves_nothing_behind() -> None:
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


def test_a_session_hears_of_its_end_also_when_its_request_answered_another_one_before() -> None:
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
