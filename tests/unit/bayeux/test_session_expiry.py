"""How long a session waits for its client, and what happens to its messages afterwards."""

from collections.abc import Mapping
from functools import partial
from math import inf
from typing import Any

import pytest

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.batch import Batch
from holdfast.extensions.ack import Ack
from tests.unit.bayeux.harness import Client, Json, Server, Socket, Wire, server_of


def lifetime(server: Server) -> float:
    """How long the only session still lives, in steps of a tenth of a second."""
    for tenth in range(1, 1000):
        server.advance(0.1)
        if len(server.bayeux.state.sessions) == 0:
            return tenth / 10
    raise AssertionError("it does not expire")


def connected(**options: Any) -> tuple[Server, Client]:
    server = Server(**options)
    return server, server.connected()


def test_a_session_that_never_connects_expires() -> None:
    server = Server(max_interval=5000)
    server.client()
    assert lifetime(server) == pytest.approx(5.1)


def test_a_session_expires_when_its_next_connect_does_not_come() -> None:
    server, client = connected(interval=2000, max_interval=5000)
    assert lifetime(server) == pytest.approx(7.1)
    assert client.connect().reply["error"] == "402::session_unknown"


def test_the_session_timeout_starts_when_the_held_connect_is_answered() -> None:
    server, client = connected(timeout=20_000, max_interval=5000)
    client.connect()
    server.advance(19.9)
    assert lifetime(server) == pytest.approx(5.3)


def test_an_interval_that_a_client_asks_for_prolongs_its_session_once() -> None:
    server, client = connected(max_interval=5000)
    client.connect(advice={"interval": 4000, "timeout": 0})
    server.advance(8.9)
    client.connect(advice={"timeout": 0})
    assert lifetime(server) == pytest.approx(5.1)


def test_an_interval_that_the_server_sets_for_a_session_prolongs_it() -> None:
    server, client = connected(max_interval=5000)
    client.session.interval_s = 3.0
    client.connect(advice={"timeout": 0})
    assert lifetime(server) == pytest.approx(8.1)


@pytest.mark.parametrize(
    "message",
    [
        {"channel": "/a", "data": 1},
        {"channel": "/meta/subscribe", "subscription": "/a"},
        {"channel": "/service/a", "data": 1},
        {"channel": "/meta/foo"},
    ],
    ids=lambda message: str(message["channel"]),
)
def test_any_message_restarts_the_session_timeout(message: Json) -> None:
    server, client = connected(max_interval=5000)
    server.advance(4.0)
    client.send(message)
    assert lifetime(server) == pytest.approx(5.1)


def test_a_message_does_not_shorten_the_session_timeout() -> None:
    server, client = connected(interval=10_000, max_interval=5000)
    client.publish("/a", 1)
    assert lifetime(server) == pytest.approx(15.1)


def test_a_message_does_not_change_when_a_held_connect_is_answered() -> None:
    server, client = connected(timeout=20_000, max_interval=5000)
    asked = client.connect()
    server.advance(10.0)
    client.publish("/a", 1)
    server.advance(9.9)
    assert asked.is_held
    server.advance(0.2)
    assert not asked.is_held


def test_a_session_without_connects_lives_as_long_as_it_publishes() -> None:
    server, client = connected(max_interval=5000)
    for _ in range(5):
        server.advance(4.0)
        assert client.publish("/a", 1).reply["successful"]
    assert lifetime(server) == pytest.approx(5.1)


# Connections that are lost


def test_the_session_timeout_starts_when_the_client_closes_the_connection_of_its_connect() -> None:
    server, client = connected(timeout=20_000, max_interval=5000)
    asked = client.connect()
    server.advance(3.0)
    server.abort(asked)
    assert lifetime(server) == pytest.approx(5.1)


def test_the_session_timeout_starts_when_an_answer_cannot_be_written() -> None:
    for how in ("at once", "later", "at handshake"):
        server = Server(timeout=2000, max_interval=5000)
        client = server.guest()
        wire = Wire()
        wire.is_cut = True
        if how == "at handshake":
            client.handshake(wire=wire)
        else:
            client.handshake()
            client.connect()
            client.connect(wire=wire, advice={"timeout": 0} if how == "at once" else None)
            if how == "later":
                server.advance(2.1)
        assert lifetime(server) == pytest.approx(5.1)


def test_messages_of_an_unwritten_answer_to_a_connect_wait_for_the_next_connect() -> None:
    server, client = connected()
    client.subscribe("/a")
    asked = client.connect()
    asked.wire.is_cut = True
    server.for_extensions.publish("/a", 1)
    server.turn()
    server.for_extensions.publish("/a", 2)
    assert client.connect().data == [1, 2]


def test_messages_of_an_unwritten_answer_to_a_publish_wait_for_the_next_answer() -> None:
    _, client = connected()
    client.subscribe("/a")
    wire = Wire()
    wire.is_cut = True
    client.send({"channel": "/a", "data": 1}, wire=wire)
    assert client.publish("/a", 2).data == [1, 2]


def test_the_session_timeout_starts_when_a_websocket_with_a_held_connect_closes() -> None:
    server = Server(timeout=20_000, max_interval=5000)
    client = server.connected(socket=Socket(), browser="mine")
    client.connect()
    assert client.socket is not None
    server.close(client.socket)
    assert lifetime(server) == pytest.approx(5.1)


def test_the_session_timeout_starts_when_both_websockets_of_a_session_are_closed() -> None:
    server = Server(timeout=20_000, max_interval=5000)
    client = server.connected(socket=Socket(), browser="mine")
    client.connect()
    first, second = client.socket, Socket()
    client.socket = second
    client.publish("/a", 1)
    assert first is not None
    server.close(first)
    server.close(second)
    assert lifetime(server) == pytest.approx(5.1)


# Slow answers


@pytest.mark.parametrize("seconds", [0.5, 4.0, 30.0])
def test_the_session_timeout_starts_when_the_last_byte_of_an_answer_has_left(
    seconds: float,
) -> None:
    server = Server(interval=1000, max_interval=5000)
    client = server.client()
    client.subscribe("/a")
    server.for_extensions.publish("/a", "long")
    wire = Wire()
    wire.is_full = True
    assert client.connect(wire=wire).data == ["long"]
    server.advance(seconds)
    assert len(server.bayeux.state.sessions) == 1
    wire.is_full = False
    assert lifetime(server) == pytest.approx(6.1, abs=0.15)


def test_an_answer_that_is_still_being_written_does_not_shorten_the_next_connect() -> None:
    server = Server(timeout=20_000, max_interval=5000)
    client = server.client(socket=Socket(), browser="mine")
    client.subscribe("/a")
    server.for_extensions.publish("/a", "long")
    assert client.socket is not None
    client.socket.is_full = True
    client.connect()
    client.connect()
    server.advance(19.9)
    assert client.session.held_connect is not None
    server.advance(0.2)
    assert client.session.held_connect is None
    client.socket.is_full = False
    assert lifetime(server) == pytest.approx(5.1, abs=0.15)


# While the client's input waits


def test_a_session_does_not_expire_while_its_own_request_is_being_handled() -> None:
    server = Server(max_interval=5000, is_turn_over=lambda: True)
    client = server.connected()
    asked = client.send(*[{"channel": "/a", "data": each} for each in range(3)])
    server.now += 20.0
    server.bayeux.tick(server.now)
    server.turn()
    assert [reply["successful"] for reply in asked.replies] == [True] * 3
    assert lifetime(server) == pytest.approx(5.1)


def test_a_session_does_not_expire_before_a_request_is_read_that_came_in_time() -> None:
    server, client = connected(max_interval=5000)
    came_at = server.now + 4.9
    server.unread_since = lambda: came_at
    server.advance(20.0)
    client.publish("/a", 1)
    server.unread_since = lambda: inf
    assert lifetime(server) == pytest.approx(5.1)


def test_a_session_expires_although_later_requests_of_others_are_always_unread() -> None:
    server, _ = connected(max_interval=5000)
    server.unread_since = lambda: server.now - 1.0
    assert lifetime(server) == pytest.approx(6.1)


def test_a_session_does_not_expire_while_a_message_waits_on_its_socket() -> None:
    socket = Socket()
    server = Server(max_interval=5000)
    client = server.connected(socket=socket)
    socket.is_unread = True
    server.advance(20.0)
    client.publish("/a", 1)
    socket.is_unread = False
    assert lifetime(server) == pytest.approx(5.1)


def test_a_message_does_not_fail_while_its_verdict_may_be_unread() -> None:
    server = server_of(max_interval=5000)
    client = server.connected(ext={"delivery": {"responseTimeout": 2000, "retries": 0}})
    client.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    client.connect()
    came_at = server.now + 1.9
    server.unread_since = lambda: came_at
    server.advance(3.0)
    assert server.keeper.letters == []
    server.unread_since = lambda: inf
    server.advance(0.2)
    assert [letter.code for letter in server.keeper.letters] == ["communication.responseTimeout"]


def test_an_absent_session_does_not_end_while_its_next_client_may_be_unread() -> None:
    server = server_of(max_session_timeout=60_000)
    ext = {"delivery": {"session": {"name": "joe/1", "timeout": 10_000}}}
    client = server.connected(ext=ext)
    client.disconnect()
    server.turn()
    came_at = server.now + 9.0
    server.unread_since = lambda: came_at
    server.advance(20.0)
    assert server.bayeux.state.sessions.named("joe/1") is not None
    server.unread_since = lambda: inf
    server.advance(0.2)
    assert server.bayeux.state.sessions.named("joe/1") is None


# After the end


def test_expiry_discards_the_messages_of_plain_sessions_and_dead_letters_those_with_acks() -> None:
    server = Server(partial(Ack, announces_batch=False), max_interval=5000)
    plain, acked = server.connected(), server.connected(ext={"ack": True})
    plain.subscribe("/a", "/**")
    acked.subscribe("/a")
    server.for_extensions.publish("/a", 1)
    acked.connect(ext={"ack": 1})
    server.for_extensions.publish("/a", 2)
    assert server.balances()
    server.advance(6.0)
    assert server.bayeux.state.hub.counters.discarded == {Reason.SESSION_EXPIRED: 2}
    assert [letter.code for letter in server.keeper.letters] == ["communication.noConnection"] * 2
    assert server.balances()
    assert len(server.bayeux.state.hub.routes) == 0


def test_a_due_session_that_is_ended_while_another_due_one_is_answered_is_skipped() -> None:
    class Throws(SessionExtension):
        """Ends all other sessions when the first one is answered."""

        def outgoing(
            self,
            session: Session,
            reply: Json,
            asked: Mapping[str, Any],
            now: float,
            *,
            batch: Batch | None,
        ) -> None:
            others = [victim for victim in victims if victim is not session]
            victims.clear()
            for victim in others:
                server.for_extensions.end_by_server(victim)

    class Ending(ServerExtension):
        def negotiate(
            self, session: Session, handshake: Json, reply: Json, now: float
        ) -> SessionExtension | None:
            return Throws()

    victims: list[Session] = []
    server = Server(Ending(), timeout=5000)
    clients = [server.connected() for _ in range(3)]
    asked = [client.connect() for client in clients]
    victims += [client.session for client in clients]
    server.advance(5.1)
    assert not any(each.is_held for each in asked)
    assert len(server.bayeux.state.sessions) == 1
    assert server.balances()
