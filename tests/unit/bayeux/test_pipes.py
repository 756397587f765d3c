"""Sockets: messages are pushed at once and in order, unless the socket is full."""

import json
from functools import partial

import pytest

from holdfast.bayeux.exchanges import receive
from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import UNKNOWN, Speaker
from holdfast.extensions.ack import Ack
from tests.unit.bayeux.harness import Client, Installed, Server, Socket, Wire, server_of
from tests.unit.bayeux.second_lives import connect, named, publish


def over_socket(*extensions: Installed, **fields: object) -> tuple[Server, Client, Socket]:
    """A connected client over a socket from which all frames so far were taken."""
    server = Server(*extensions)
    socket = Socket()
    client = server.connected(socket=socket, browser="mine", **fields)  # type: ignore[arg-type]
    client.subscribe("/a")
    socket.take()
    return server, client, socket


def data(socket: Socket) -> list[object]:
    return [element.get("data", element["channel"]) for element in socket.take()]


def test_messages_are_pushed_at_the_end_of_the_turn_and_the_connect_stays_held() -> None:
    server, client, socket = over_socket()
    client.connect()
    server.for_extensions.publish("/a", 1)
    server.for_extensions.publish("/a", 2)
    assert socket.frames == []
    server.turn()
    assert len(socket.frames) == 1
    assert data(socket) == [1, 2]
    assert client.session.held_connect is not None


def test_messages_are_pushed_without_a_held_connect_too() -> None:
    server, _, socket = over_socket()
    server.for_extensions.publish("/a", 1)
    server.turn()
    assert data(socket) == [1]


def test_nothing_is_pushed_between_the_handshake_and_the_next_message() -> None:
    server = Server()
    client = server.client(socket=Socket(), browser="mine")
    client.hear()
    session = client.session
    server.for_extensions.deliver_event(session, {"channel": "/hello", "data": 1})
    server.turn()
    assert client.hear() == []
    client.subscribe("/a")
    assert [element.get("data") for element in client.hear()] == [1, None]


def test_a_publisher_gets_its_own_message_in_the_frame_of_the_reply() -> None:
    server, client, socket = over_socket()
    client.publish("/a", 1)
    server.turn()
    assert len(socket.frames) == 1
    assert data(socket) == [1, "/a"]


def test_a_held_connect_over_a_socket_is_answered_when_its_timeout_ends() -> None:
    server, client, socket = over_socket()
    client.connect()
    server.advance(30.1)
    assert data(socket) == ["/meta/connect"]


def test_a_full_socket_gets_nothing_until_it_has_drained() -> None:
    server, _, socket = over_socket()
    socket.is_full = True
    server.for_extensions.publish("/a", 1)
    server.turn()
    server.for_extensions.publish("/a", 2)
    server.turn()
    assert socket.frames == []
    socket.is_full = False
    server.bayeux.life.drained(socket)
    server.turn()
    assert data(socket) == [1, 2]
    server.bayeux.life.drained(socket)
    server.turn()
    assert socket.frames == []


def test_a_drained_socket_without_a_session_is_no_error() -> None:
    Server().bayeux.life.drained(Socket())


def test_the_close_of_a_socket_without_a_session_is_no_error() -> None:
    server = Server()
    server.close(Socket())


def test_messages_that_a_cut_socket_did_not_take_are_delivered_over_the_next_one() -> None:
    server, client, socket = over_socket()
    socket.is_cut = True
    server.for_extensions.publish("/a", 1)
    server.turn()
    server.close(socket)
    server.for_extensions.publish("/a", 2)
    server.turn()
    client.socket = Socket()
    client.connect()
    assert data(client.socket) == [1, 2, "/meta/connect"]
    assert server.balances()


def test_waiting_messages_come_with_the_reply_to_a_publish_over_a_new_socket() -> None:
    server, client, socket = over_socket()
    server.close(socket)
    server.for_extensions.publish("/a", 1)
    client.socket = Socket()
    client.publish("/b", 1)
    assert data(client.socket) == [1, "/b"]


def test_an_old_socket_that_closes_does_not_disturb_the_new_one() -> None:
    server, client, old = over_socket()
    new = client.socket = Socket()
    client.connect()
    server.close(old)
    server.for_extensions.publish("/a", 1)
    server.turn()
    assert data(new) == [1]
    assert client.session.held_connect is not None


# A turn may have had no time for a request before its connection was lost.


def test_a_publish_that_is_handled_after_its_socket_closed_takes_no_session_from_the_new_one() -> (
    None
):
    server, client, old = over_socket()
    server.close(old)
    new = client.socket = Socket()
    client.connect()
    new.take()
    client.socket = old
    client.publish("/a", 1)
    server.turn()
    assert data(new) == [1]


@pytest.mark.parametrize("is_over_socket", [True, False])
def test_a_connect_that_is_handled_after_its_connection_closed_supersedes_no_newer_one(
    *, is_over_socket: bool
) -> None:
    server, client, old = over_socket()
    server.close(old)
    new = client.socket = Socket()
    client.connect()
    new.take()
    if is_over_socket:
        client.socket = old
        client.connect()
    else:
        exchange = Exchange(Wire(), Speaker(UNKNOWN, ("mine",)))
        server.bayeux.abort(exchange, server.now)
        connect = client.dress({"channel": "/meta/connect", "connectionType": "long-polling"})
        receive(server.bayeux, json.dumps(connect).encode(), exchange, server.now)
    server.for_extensions.publish("/a", 1)
    server.turn()
    assert data(new) == [1]
    server.advance(30.1)
    assert data(new) == ["/meta/connect"]


def test_a_connect_that_is_handled_after_its_socket_closed_is_not_held() -> None:
    server, client, socket = over_socket()
    server.close(socket)
    client.connect()
    assert client.session.held_connect is None
    assert client.session.pipe is None


def test_a_connect_that_is_handled_after_its_socket_closed_shows_no_receipt() -> None:
    server = server_of()
    client = named(server, ack=False)
    old, new, newest = Socket(), Socket(), Socket()
    for socket in (old, new):
        client.socket = socket
        connect(client, None)
    server.close(old)
    publish(server, 1)
    connect(client, None)
    client.socket = old
    connect(client, None)
    # With what it was sent last.
    server.close(new)
    client.socket = newest
    connect(client, None)
    server.turn()
    assert data(newest) == [1, "/meta/connect"]


def test_a_client_that_changes_to_http_gets_no_more_messages_over_its_socket() -> None:
    server, client, socket = over_socket()
    client.socket = None
    asked = client.connect()
    server.for_extensions.publish("/a", 1)
    server.turn()
    assert asked.data == [1]
    assert asked.elements[-1]["advice"]["reconnect"] == "retry"
    assert socket.frames == []


# In sessions with acks, messages travel in replies to connects only


def test_a_session_with_acks_over_a_socket_gets_messages_only_with_its_connect() -> None:
    server, client, socket = over_socket(partial(Ack, announces_batch=False), ext={"ack": True})
    client.connect(ext={"ack": 1})
    client.publish("/a", 1)
    assert data(socket) == ["/a"]
    server.turn()
    connect = socket.frames[0][-1]
    assert data(socket) == [1, "/meta/connect"]
    assert connect["ext"] == {"ack": 2}


def test_unacked_messages_are_redelivered_over_a_new_socket() -> None:
    server, client, socket = over_socket(partial(Ack, announces_batch=False), ext={"ack": True})
    client.connect(ext={"ack": 1})
    server.for_extensions.publish("/a", 1)
    server.turn()
    assert data(socket) == [1, "/meta/connect"]
    server.close(socket)
    client.socket = Socket()
    client.connect(ext={"ack": 1}, advice={"timeout": 0})
    assert data(client.socket) == [1, "/meta/connect"]
    client.connect(ext={"ack": 3}, advice={"timeout": 0})
    assert data(client.socket) == ["/meta/connect"]
