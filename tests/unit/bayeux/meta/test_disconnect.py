"""`/meta/disconnect`: a session ends because its client, or the server, says so."""

from functools import partial

import pytest

from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.extensions.ack import Ack
from tests.unit.bayeux.harness import Asked, Json, Server, Socket, server_of
from tests.unit.bayeux.operated_server import connect, letters, publish, receiver


def test_a_disconnect_ends_the_session() -> None:
    server = Server()
    client = server.connected()
    assert client.disconnect().reply == {
        "channel": "/meta/disconnect",
        "id": "3",
        "successful": True,
    }
    assert len(server.bayeux.state.sessions) == 0
    assert server.bayeux.state.sessions.ended[SessionInput.DISCONNECT.value] == 1


def test_a_disconnect_without_a_session_is_refused() -> None:
    server = Server()
    client = server.client()
    client.disconnect()
    again = client.disconnect().reply
    assert again["error"] == "402::session_unknown"
    assert "advice" not in again


def test_waiting_messages_go_with_the_reply_to_the_disconnect() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    assert client.disconnect().data == [1]
    assert server.balances()


def test_waiting_messages_go_with_the_held_connect_if_there_is_one() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    asked = client.connect()
    server.for_extensions.publish("/a", 1)
    assert client.disconnect().events == []
    assert asked.data == [1]
    assert server.balances()


def test_messages_that_cannot_be_written_at_a_disconnect_are_discarded_and_counted() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    asked = client.connect()
    asked.wire.is_cut = True
    server.for_extensions.publish("/a", 1)
    wire = asked.wire.__class__()
    wire.is_cut = True
    client.disconnect(wire=wire)
    assert server.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}
    assert server.balances()


def test_messages_that_wait_at_a_disconnect_with_a_refusal_are_discarded_at_once() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    [event] = client.connect(advice={"timeout": 0}, ext={"ack": 0}).events
    publish(server, 2)
    refusal = {"seq": event["ext"]["delivery"]["seq"], "errorCode": "user.update.error"}
    ext = {"delivery": {"end": True, "discard": True, "verdicts": [refusal]}}
    gone = client.send({"channel": "/meta/disconnect", "ext": ext})
    # When the session ends, not when the store has answered.
    assert server.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}
    server.turn()
    assert (gone.data, letters(server)) == ([], [1])
    assert server.balances()


@pytest.mark.parametrize(("acked", "data"), [(1, []), (2, ["new"])])
def test_over_http_messages_do_not_overtake_unacked_ones_with_the_reply_to_a_disconnect(
    acked: int, data: list[str]
) -> None:
    server = Server(partial(Ack, announces_batch=False))
    client = server.connected(ext={"ack": True})
    client.subscribe("/a")
    server.for_extensions.publish("/a", "old")
    assert client.connect(ext={"ack": 1}).data == ["old"]
    server.for_extensions.publish("/a", "new")
    # The reply with the old message may still be on the way, on another connection.
    assert client.send({"channel": "/meta/disconnect", "ext": {"ack": acked}}).data == data
    assert server.bayeux.state.hub.counters.acked == acked - 1
    assert server.balances()


def test_over_a_websocket_the_reply_to_a_disconnect_brings_what_waits_behind_unacked_messages() -> (
    None
):
    server = Server(partial(Ack, announces_batch=False))
    client = server.connected(socket=Socket(), browser="mine", ext={"ack": True})
    client.subscribe("/a")
    client.connect(ext={"ack": 1})
    client.hear()
    server.for_extensions.publish("/a", "old")
    server.turn()
    server.for_extensions.publish("/a", "new")
    client.disconnect()
    data = [element["data"] for element in client.hear() if "data" in element]
    assert data == ["old", "new"]
    assert server.balances()


def test_a_disconnect_over_a_websocket_first_answers_the_held_connect() -> None:
    server = Server()
    client = server.connected(socket=Socket(), browser="mine")
    client.connect()
    client.disconnect()
    channels = [element["channel"] for element in client.hear()]
    assert channels == ["/meta/connect", "/meta/disconnect"]


# A named session


def ending(server: Server, **asked: object) -> Asked:
    """Disconnect a named session with a message in flight and one that waits."""
    client = receiver(server)
    publish(server, 1)
    assert connect(client) == [1]
    publish(server, 2)
    return client.send({"channel": "/meta/disconnect", "ext": {"delivery": asked}})


def test_the_end_of_a_named_session_is_confirmed_when_its_dead_letters_are_stored() -> None:
    server = server_of()
    asked = ending(server, end=True)
    assert asked.is_held
    server.turn()
    assert asked.reply["successful"]
    assert letters(server) == [1, 2]
    assert {letter.code for letter in server.keeper.letters} == {"communication.noConnection.dead"}
    assert "its session was ended by its client" in server.keeper.letters[0].reason
    assert (server.keeper.sessions, server.keeper.queues) == ({}, {})
    assert server.balances()


def test_the_end_of_a_named_session_with_discard_leaves_no_dead_letters() -> None:
    server = server_of()
    ending(server, end=True, discard=True)
    server.turn()
    assert letters(server) == []
    assert server.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 2}
    assert server.keeper.sessions == {}
    assert server.balances()


def test_a_disconnect_with_discard_but_without_end_is_refused() -> None:
    server = server_of()
    error = "400:user.illegalArgument,discard:delivery_invalid"
    assert ending(server, discard=True).reply["error"] == error
    assert [session.queue.count for session in server.bayeux.state.sessions] == [2]


def test_a_message_with_an_ok_in_the_disconnect_becomes_no_dead_letter() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1, 2)
    events = client.connect(advice={"timeout": 0}, ext={"ack": 0}).events
    seqs = [event["ext"]["delivery"]["seq"] for event in events]
    ext = {"delivery": {"end": True, "verdicts": [{"seq": seqs[1], "state": "OK"}]}}
    client.send({"channel": "/meta/disconnect", "ext": ext})
    server.turn()
    assert letters(server) == [1]
    assert server.balances()


def test_a_message_that_is_acked_in_the_disconnect_becomes_no_dead_letter() -> None:
    server = server_of()
    client = receiver(server)
    publish(server, 1)
    connect(client)
    publish(server, 2)
    ext = {"ack": client.session.queue.batch, "delivery": {"end": True}}
    client.send({"channel": "/meta/disconnect", "ext": ext})
    server.turn()
    assert letters(server) == [2]
    assert server.balances()


def test_the_held_connect_of_a_named_session_that_its_client_ends_brings_no_messages() -> None:
    server = server_of()
    client = receiver(server)
    asked = client.connect(ext={"ack": client.session.queue.batch})
    server.for_extensions.publish("/a", 1)
    client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    server.turn()
    assert asked.data == []
    assert asked.reply["advice"]["reconnect"] == "none"
    assert letters(server) == [1]
    assert server.balances()


def test_a_named_session_ends_after_its_pending_publishes_which_become_dead_letters() -> None:
    server = server_of()
    client = receiver(server)
    published = client.publish("/a", 1)
    gone = client.send({"channel": "/meta/disconnect", "ext": {"delivery": {"end": True}}})
    assert published.is_held
    assert gone.is_held
    server.turn()
    assert published.reply["successful"]
    assert gone.reply["successful"]
    assert letters(server) == [1]
    assert server.balances()


@pytest.mark.parametrize("asked", [{}, {"end": True}, {"end": True, "discard": True}], ids=repr)
def test_a_session_without_a_name_ends_without_dead_letters_in_any_disconnect_mode(
    asked: Json,
) -> None:
    server = server_of()
    client = receiver(server, session=None)
    publish(server, 1)
    connect(client)
    gone = client.send({"channel": "/meta/disconnect", "ext": {"delivery": asked}})
    assert gone.reply["successful"]
    assert letters(server) == []
    assert server.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}


# By the server


def test_an_end_by_the_server_answers_the_held_connect_with_messages_and_a_disconnect() -> None:
    server = Server()
    client = server.connected()
    client.subscribe("/a")
    asked = client.connect()
    server.for_extensions.publish("/a", 1)
    server.for_extensions.end_by_server(client.session)
    assert [element["channel"] for element in asked.elements] == [
        "/a",
        "/meta/disconnect",
        "/meta/connect",
    ]
    assert server.balances()


def test_an_end_by_the_server_without_a_held_connect_discards_its_disconnect_message() -> None:
    server = Server()
    client = server.connected()
    server.for_extensions.end_by_server(client.session)
    server.turn()
    assert server.bayeux.state.hub.counters.discarded == {Reason.SESSION_ENDED: 1}
    assert server.balances()
    reply = client.connect().reply
    assert reply["advice"]["reconnect"] == "handshake"


def test_an_end_by_the_server_over_a_websocket_sends_the_disconnect_last() -> None:
    server = Server()
    socket = Socket()
    client = server.connected(socket=socket, browser="mine")
    client.connect()
    server.for_extensions.end_by_server(client.session)
    assert socket.is_ended
    reply, farewell = client.hear()
    assert reply["advice"]["reconnect"] == "none"
    assert farewell == {"channel": "/meta/disconnect", "successful": True}
    assert server.balances()


def test_a_session_that_the_server_ends_twice_is_counted_once() -> None:
    server = Server()
    session = server.connected().session
    server.for_extensions.end_by_server(session)
    server.for_extensions.end_by_server(session)
    assert server.bayeux.state.sessions.ended[SessionInput.DISCONNECT.value] == 1


def test_a_session_that_ends_after_its_connect_was_aborted_leaves_nothing_in_its_queue() -> None:
    server = Server()
    client = server.connected()
    session = client.session
    client.subscribe("/a")
    asked = client.connect()
    server.abort(asked)
    server.for_extensions.publish("/a", 1)
    server.for_extensions.end_by_server(session)
    server.turn()
    assert session.queue.count == 0
    assert server.balances()


def test_a_session_that_ends_during_its_own_request_gets_a_disconnect_in_the_answer() -> None:
    server = Server()
    server.bayeux.state.services.add(
        "/service/leave", lambda call: server.for_extensions.end_by_server(call.session)
    )
    client = server.connected()
    answer = client.send({"channel": "/service/leave", "data": 1}, {"channel": "/a", "data": 1})
    assert [element["channel"] for element in answer.elements] == [
        "/meta/disconnect",
        "/service/leave",
        "/a",
    ]
    assert answer.elements[-1]["error"] == "402::session_unknown"
    assert server.balances()


def test_a_session_that_ends_during_a_request_of_another_leaves_nothing_in_its_queue() -> None:
    server = Server()
    alice, bob = server.connected(), server.connected()
    victim = alice.session
    alice.subscribe("/a")
    server.bayeux.state.services.add(
        "/service/throw", lambda call: server.for_extensions.end_by_server(victim)
    )
    bob.send({"channel": "/a", "data": 1}, {"channel": "/service/throw", "data": 1})
    server.turn()
    assert victim.queue.count == 0
    assert server.balances()


def test_two_sessions_that_end_during_one_request_both_get_a_disconnect() -> None:
    server = Server()
    alice, bob = server.connected(), server.connected()

    def throw_both(call: ServiceCall) -> None:
        server.for_extensions.end_by_server(alice.session)
        server.for_extensions.end_by_server(call.session)

    server.bayeux.state.services.add("/service/throw", throw_both)
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
