"""Extensions that negotiate at the handshake, some of them slowly."""

import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.messages.batch import Batch
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.harness import TRANSPORTS, Json, Server
from tests.unit.bayeux.newcomers import assert_turned_away, greeting, sessions


class Mark(SessionExtension):
    """Signs every reply."""

    def __init__(self, name: str) -> None:
        self._name = name

    def outgoing(
        self, session: Session, reply: Json, asked: Any, now: float, *, batch: Batch | None
    ) -> None:
        reply.setdefault("marks", []).append(self._name)


class Prompt(ServerExtension):
    """Answers at once, with the outcome that it was given."""

    def __init__(self, outcome: SessionExtension | Exception | None = None) -> None:
        self._outcome = outcome

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


class Slow(ServerExtension):
    """Answers when the test says so."""

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> Awaitable[SessionExtension | None]:
        return self._ask()

    async def _ask(self) -> SessionExtension | None:
        raise AssertionError("the test decides about the outcome")


def test_session_extensions_see_the_handshake_reply_in_reversed_order() -> None:
    server = Server(Prompt(Mark("a")), Prompt(None), Prompt(Mark("b")))
    assert server.guest().handshake().reply["marks"] == ["b", "a"]


def test_a_handshake_is_answered_when_its_extension_is_done() -> None:
    server = Server(Prompt(Mark("a")), Slow(), Prompt(Mark("c")))
    client = server.guest()
    asked = client.handshake()
    assert asked.is_held
    assert sessions(server) == []
    server.advance(1.0)
    server.resolve(Mark("b"))
    client.learn(asked)
    assert asked.reply["marks"] == ["c", "b", "a"]
    assert client.connect().reply["successful"]


def test_slow_extensions_negotiate_one_after_the_other() -> None:
    server = Server(Slow(), Slow())
    asked = server.guest().handshake()
    assert len(server.pending) == 1
    server.resolve(None)
    assert asked.is_held
    server.resolve(None)
    assert asked.reply["successful"]


def test_several_handshakes_may_be_pending_at_the_same_time() -> None:
    server = Server(Slow())
    clients = [server.guest() for _ in range(3)]
    asked = [client.handshake() for client in clients]
    for _ in asked:
        server.resolve(None)
    assert len({each.reply["clientId"] for each in asked}) == 3


def test_a_message_in_the_request_of_a_slow_handshake_is_answered_together_with_it() -> None:
    server = Server(Slow())
    message: Json = {"channel": "/meta/handshake", "supportedConnectionTypes": TRANSPORTS}
    asked = server.guest().send({"channel": "/a", "data": 1}, message)
    assert asked.is_held
    server.resolve(None)
    assert [reply["id"] for reply in asked.elements] == ["2", "1"]
    assert asked.elements[0]["successful"]


def test_an_extension_can_refuse_a_handshake_at_once_or_later_with_an_ext_of_its_own() -> None:
    refused = Refused(ErrorReply.HANDSHAKE_DENIED, advice={"reconnect": "none"}, ext={"why": 1})
    for server in (Server(Prompt(Mark("a")), Prompt(refused)), Server(Prompt(Mark("a")), Slow())):
        asked = server.guest().handshake()
        if asked.is_held:
            server.resolve(refused)
        assert asked.reply["error"] == "403::handshake_denied"
        assert asked.reply["ext"] == {"why": 1}
        assert "clientId" not in asked.reply
        assert asked.exchange.new_browser is None
        assert sessions(server) == []


def test_a_handshake_whose_extension_fails_is_refused_with_advice_to_retry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failure = ZeroDivisionError("a secret")
    for server in (Server(Prompt(failure)), Server(Slow())):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            asked = server.guest().handshake()
            if asked.is_held:
                server.resolve(failure)
        assert_turned_away(asked, 3000, "500::server_fault")
        assert "ZeroDivisionError" in caplog.text
        assert sessions(server) == []


def test_a_handshake_that_its_last_extension_refuses_leaves_no_subscriptions() -> None:
    class Subscriber(ServerExtension):
        def negotiate(
            self, session: Session, handshake: Json, reply: Json, now: float
        ) -> SessionExtension | None:
            channel = server.bayeux.state.channels.get("/hello")
            assert isinstance(channel, Channel)
            server.bayeux.state.hub.routes.add(channel, session)
            session.subscriptions.add("/hello")
            return None

    for last in (Prompt(Refused(ErrorReply.HANDSHAKE_DENIED)), Slow()):
        server = greeting()
        server.bayeux.state.installed.extend(Subscriber())
        server.bayeux.state.installed.extend(last)
        asked = server.guest().handshake()
        if asked.is_held:
            server.resolve(ZeroDivisionError())
        assert not asked.reply["successful"]
        assert "/hello" not in server.bayeux.state.hub.routes
        assert server.balances()


def test_lazy_messages_wait_while_a_handshake_is_pending() -> None:
    class Subscriber(ServerExtension):
        def negotiate(
            self, session: Session, handshake: Json, reply: Json, now: float
        ) -> SessionExtension | None:
            server.bayeux.state.hub.routes.add(server.bayeux.state.channels.named("/lazy"), session)
            session.subscriptions.add("/lazy")
            return None

    server = Server(Subscriber(), Slow(), channels={"/lazy": ChannelSettings(lazy_timeout=1000)})
    client = server.guest()
    asked = client.handshake()
    server.for_extensions.publish("/lazy", 1)
    server.advance(5.0)
    server.resolve(None)
    client.learn(asked)
    assert client.connect().data == [1]
    assert server.balances()


def test_a_client_that_left_during_a_slow_handshake_gets_no_session() -> None:
    server = Server(Slow())
    asked = server.guest().handshake()
    server.abort(asked)
    server.resolve(None)
    assert sessions(server) == []


def test_a_pending_handshake_occupies_a_session_slot() -> None:
    server = Server(Slow(), max_sessions=1)
    first, second = server.guest().handshake(), server.guest().handshake()
    assert_turned_away(second, 3000)
    server.resolve(None)
    assert first.reply["successful"]


def test_a_slow_handshake_is_turned_away_if_the_server_stops_meanwhile() -> None:
    server = Server(Slow())
    asked = server.guest().handshake()
    server.stop()
    server.resolve(None)
    assert_turned_away(asked, 0)
