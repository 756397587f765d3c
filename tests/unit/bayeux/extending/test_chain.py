"""What extensions see and may do, in which order, and what happens when they fail."""

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.messages.batch import Batch
from tests.unit.bayeux.harness import Asked, Client, Json, Server, server_of


class ForSessions(ServerExtension):
    """Gives every session the same session extension."""

    def __init__(self, extension: SessionExtension) -> None:
        self._extension = extension

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        return self._extension


class Notes(SessionExtension):
    """Writes down what it sees."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self._name = name
        self._notes = notes

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        self._notes.append(f"{self._name} < {message['channel']}")
        return True

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        self._notes.append(f"{self._name} > {reply['channel']}")


class Fails(SessionExtension):
    """Fails in both directions."""

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        raise ZeroDivisionError("a secret")

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        raise ZeroDivisionError("a secret")


class FailsOptionally(Fails):
    optional: ClassVar[bool] = True


class Drops(SessionExtension):
    """Drops each message, or refuses it with an error."""

    def __init__(self, refused: Refused | None = None) -> None:
        self._refused = refused

    def incoming(self, session: Session, message: Json, now: float) -> bool:
        if self._refused is not None:
            raise self._refused
        return False


def extended(*extensions: SessionExtension) -> tuple[Server, Client]:
    server = Server(*(ForSessions(extension) for extension in extensions))
    return server, server.client()


def test_extensions_see_messages_in_order_and_replies_in_reverse_order() -> None:
    notes: list[str] = []
    _, client = extended(Notes("a", notes), Notes("b", notes))
    assert notes == ["b > /meta/handshake", "a > /meta/handshake"]
    notes.clear()
    client.publish("/x", 1)
    assert notes == ["a < /x", "b < /x", "b > /x", "a > /x"]


def test_extensions_see_the_reply_to_a_held_connect_when_it_is_about_to_be_written() -> None:
    notes: list[str] = []
    server, client = extended(Notes("a", notes))
    client.connect()
    notes.clear()
    client.connect()
    assert notes == ["a < /meta/connect"]
    server.advance(30.1)
    assert notes == ["a < /meta/connect", "a > /meta/connect"]


def test_extensions_do_not_see_the_reply_to_a_superseded_connect() -> None:
    notes: list[str] = []
    _, client = extended(Notes("a", notes))
    client.connect()
    client.connect()
    notes.clear()
    client.connect()
    assert notes == ["a < /meta/connect"]


def test_an_extension_may_leave_out_hooks() -> None:
    server, client = extended(SessionExtension())
    server.bayeux.state.installed.extend(ServerExtension())
    assert client.publish("/x", 1).reply["successful"]
    assert server.client().publish("/x", 1).reply["successful"]


def test_a_session_extension_does_not_see_messages_of_another_browser() -> None:
    notes: list[str] = []
    server, client = extended(Notes("a", notes))
    thief = server.guest(browser="another")
    thief.client_id = client.client_id
    notes.clear()
    thief.publish("/x", 1)
    assert notes == []


def test_a_dropped_message_is_refused_and_later_extensions_do_not_see_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    notes: list[str] = []
    server, client = extended(Notes("a", notes), Drops(), Notes("c", notes))
    other = Server.guest(server)
    notes.clear()
    with caplog.at_level(logging.INFO):
        reply = client.publish("/x", 1).reply
    assert reply["error"] == "404::message_deleted"
    assert notes == ["a < /x", "c > /x", "a > /x"]
    assert "Drops" in caplog.text
    assert str(client.client_id) not in caplog.text
    assert other.client_id is None


def test_many_dropped_messages_of_a_session_leave_few_lines_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, client = extended(Drops())
    caplog.set_level(logging.INFO)
    for _ in range(30):
        client.publish("/x", 1)
    server.bayeux.state.notices.end_window()
    line = f"a message of session {client.session.key} was dropped by Drops"
    assert caplog.messages == [line, f"{line}, 29 more"]


def test_an_extension_can_refuse_a_message_with_an_error_and_ext_of_its_own() -> None:
    _, client = extended(Drops(Refused(ErrorReply.PUBLISH_DENIED, "closed", ext={"until": 9})))
    reply = client.publish("/x", 1).reply
    assert reply["error"] == "403:closed:publish_denied"
    assert reply["ext"] == {"until": 9}


def test_an_extension_that_fails_refuses_the_message(caplog: pytest.LogCaptureFixture) -> None:
    server, client = extended(Fails())
    client.subscribe("/x")
    with caplog.at_level(logging.ERROR):
        reply = client.publish("/x", 1).reply
    assert reply["error"] == "500::server_fault"
    assert "secret" not in str(reply)
    assert "ZeroDivisionError" in caplog.text
    assert client.session.subscriptions == set()
    assert server.bayeux.state.hub.counters.published == 0


def test_an_optional_extension_that_fails_lets_the_message_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, client = extended(FailsOptionally())
    with caplog.at_level(logging.ERROR):
        assert client.publish("/x", 1).reply["successful"]
    assert "ZeroDivisionError" in caplog.text


def test_a_reply_is_sent_even_if_an_extension_fails_at_it() -> None:
    notes: list[str] = []
    _, client = extended(Notes("a", notes), FailsOptionally())
    notes.clear()
    assert client.publish("/x", 1).reply["successful"]
    assert notes == ["a < /x", "a > /x"]


def test_a_message_is_refused_if_an_extension_ends_its_session() -> None:
    class Ends(SessionExtension):
        def incoming(self, session: Session, message: Json, now: float) -> bool:
            server.for_extensions.end_by_server(session)
            return True

    server = Server(ForSessions(Ends()))
    client = server.client()
    reply = client.connect().elements[-1]
    assert reply["error"] == "402::session_unknown"
    assert reply["advice"]["reconnect"] == "none"
    client = server.client()
    reply = client.publish("/x", 1).elements[-1]
    assert reply["error"] == "402::session_unknown"
    assert server.balances()


def test_a_message_that_an_extension_delivers_while_a_reply_is_written_goes_with_it_once() -> None:
    class Announces(SessionExtension):
        def outgoing(
            self,
            session: Session,
            reply: Json,
            asked: Mapping[str, Any],
            now: float,
            *,
            batch: Batch | None,
        ) -> None:
            if reply["channel"] == "/meta/connect":
                server.for_extensions.deliver_event(session, {"channel": "/news", "data": "extra"})

    server = Server(ForSessions(Announces()))
    client = server.client()
    client.subscribe("/x")
    server.for_extensions.publish("/x", "first")
    assert client.connect().data == ["first", "extra"]
    assert server.balances()
    server.turn()
    asked = client.connect()
    server.for_extensions.publish("/x", "second")
    server.turn()
    assert asked.data == ["second", "extra"]
    assert server.balances()


class Stamps(ServerExtension):
    """Completes every event."""

    def event(self, event: Json) -> None:
        event["stamp"] = 1


def test_extensions_complete_an_event_for_all_its_receivers() -> None:
    server = Server(Stamps())
    alice, bob = server.client(), server.client()
    for client in (alice, bob):
        client.subscribe("/x")
    server.for_extensions.publish("/x", 1)
    for client in (alice, bob):
        assert client.publish("/y").events == [{"channel": "/x", "data": 1, "stamp": 1}]


def test_extensions_complete_events_for_a_single_session() -> None:
    server = Server(Stamps())
    server.bayeux.state.services.add("/service/echo", lambda call: call.answer(call.data))
    client = server.client()
    assert client.publish("/service/echo", 1).elements[0]["stamp"] == 1
    asked = server.connected()
    held = asked.connect()
    server.for_extensions.end_by_server(asked.session)
    assert held.elements[0]["stamp"] == 1


def test_a_publish_is_refused_if_an_extension_fails_at_its_event() -> None:
    class FailsOverEvents(ServerExtension):
        def event(self, event: Json) -> None:
            raise ZeroDivisionError

    server = Server(FailsOverEvents())
    client = server.client()
    client.subscribe("/x")
    answer = client.publish("/x", 1)
    assert answer.reply["error"] == "500::server_fault"


class FailsAtConnects(SessionExtension):
    """Fails at a reply to a connect that carries messages, as often as a test wants it to."""

    def __init__(self, times: int) -> None:
        self.times = times

    def outgoing(
        self,
        session: Session,
        reply: Json,
        asked: Mapping[str, Any],
        now: float,
        *,
        batch: Batch | None,
    ) -> None:
        if batch is not None and batch.messages and self.times:
            self.times -= 1
            raise ZeroDivisionError("a secret")


@pytest.mark.parametrize("acks", [True, False])
def test_messages_go_again_if_an_extension_fails_at_the_reply_that_carries_them(
    *, acks: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = server_of(ForSessions(FailsAtConnects(2)))
    client = server.client(ext={"ack": acks})

    def connect(ack: int) -> Asked:
        return client.connect(ext={"ack": ack}) if acks else client.connect()

    client.connect()
    client.subscribe("/x")
    asked = connect(1)
    server.for_extensions.publish("/x", "first")
    server.turn()
    assert (asked.reply["successful"], asked.data) == (True, [])
    asked = connect(2)
    assert (asked.reply["successful"], asked.data) == (True, [])
    assert connect(3).data == ["first"]
    assert caplog.text.count("hook of FailsAtConnects failed") == 2
    assert server.balances()


def test_a_client_waits_longer_and_longer_while_an_extension_fails_at_all_its_replies() -> None:
    server = server_of(ForSessions(FailsAtConnects(100)))
    client = server.connected()
    client.subscribe("/x")
    server.for_extensions.publish("/x", "first")
    for _ in range(3):
        assert client.connect().data == []
    asked = client.connect()
    assert asked.is_held
    server.advance(2)
    assert asked.data == []


def test_messages_travel_although_an_optional_extension_fails_at_their_reply() -> None:
    class Optional(FailsAtConnects):
        optional: ClassVar[bool] = True

    server = server_of(ForSessions(Optional(1)))
    client = server.connected()
    client.subscribe("/x")
    server.for_extensions.publish("/x", "first")
    assert client.connect().data == ["first"]
