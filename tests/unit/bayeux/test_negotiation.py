"""Extensions that negotiate at the handshake, some of them slowly."""

import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.extension import ServerExtension, SessionExtension
from holdfast.bayeux.options import ChannelRule
from holdfast.bayeux.sessions import Session
from holdfast.delivery.channels import Channel
from tests.unit.bayeux.harness import TRANSPORTS, House, Json
from tests.unit.bayeux.newcomers import assert_turned_away, greeting, sessions


class Mark(SessionExtension):
    """Signs every reply."""

    def __init__(self, name: str) -> None:
        self._name = name

    def outgoing(self, session: Session, reply: Json, asked: Any, now: float) -> None:
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
    house = House(Prompt(Mark("a")), Prompt(None), Prompt(Mark("b")))
    assert house.guest().handshake().reply["marks"] == ["b", "a"]


def test_a_handshake_is_answered_when_its_extension_is_done() -> None:
    house = House(Prompt(Mark("a")), Slow(), Prompt(Mark("c")))
    client = house.guest()
    asked = client.handshake()
    assert asked.is_held
    assert sessions(house) == []
    house.advance(1.0)
    house.resolve(Mark("b"))
    client.learn(asked)
    assert asked.reply["marks"] == ["c", "b", "a"]
    assert client.connect().reply["successful"]


def test_slow_extensions_negotiate_one_after_the_other() -> None:
    house = House(Slow(), Slow())
    asked = house.guest().handshake()
    assert len(house.pending) == 1
    house.resolve(None)
    assert asked.is_held
    house.resolve(None)
    assert asked.reply["successful"]


def test_several_handshakes_may_be_pending_at_the_same_time() -> None:
    house = House(Slow())
    clients = [house.guest() for _ in range(3)]
    asked = [client.handshake() for client in clients]
    for _ in asked:
        house.resolve(None)
    assert len({each.reply["clientId"] for each in asked}) == 3


def test_a_message_in_the_request_of_a_slow_handshake_is_answered_together_with_it() -> None:
    house = House(Slow())
    message: Json = {"channel": "/meta/handshake", "supportedConnectionTypes": TRANSPORTS}
    asked = house.guest().send({"channel": "/a", "data": 1}, message)
    assert asked.is_held
    house.resolve(None)
    assert [reply["id"] for reply in asked.elements] == ["2", "1"]
    assert asked.elements[0]["successful"]


def test_an_extension_can_refuse_a_handshake_at_once_or_later_with_an_ext_of_its_own() -> None:
    refused = Refused(ErrorReply.HANDSHAKE_DENIED, advice={"reconnect": "none"}, ext={"why": 1})
    for house in (House(Prompt(Mark("a")), Prompt(refused)), House(Prompt(Mark("a")), Slow())):
        asked = house.guest().handshake()
        if asked.is_held:
            house.resolve(refused)
        assert asked.reply["error"] == "403::handshake_denied"
        assert asked.reply["ext"] == {"why": 1}
        assert "clientId" not in asked.reply
        assert asked.exchange.new_browser is None
        assert sessions(house) == []


def test_a_handshake_whose_extension_fails_is_refused_with_advice_to_retry(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failure = ZeroDivisionError("a secret")
    for house in (House(Prompt(failure)), House(Slow())):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            asked = house.guest().handshake()
            if asked.is_held:
                house.resolve(failure)
        assert_turned_away(asked, 3000, "500::server_fault")
        assert "ZeroDivisionError" in caplog.text
        assert sessions(house) == []


def test_a_handshake_that_its_last_extension_refuses_leaves_no_subscriptions() -> None:
    class Subscriber(ServerExtension):
        def negotiate(
            self, session: Session, handshake: Json, reply: Json, now: float
        ) -> SessionExtension | None:
            channel = house.bayeux.state.channels.get("/hello")
            assert isinstance(channel, Channel)
            house.bayeux.state.hub.routes.add(channel, session)
            session.subscriptions.add("/hello")
            return None

    for last in (Prompt(Refused(ErrorReply.HANDSHAKE_DENIED)), Slow()):
        house = greeting()
        house.bayeux.state.installed.extend(Subscriber())
        house.bayeux.state.installed.extend(last)
        asked = house.guest().handshake()
        if asked.is_held:
            house.resolve(ZeroDivisionError())
        assert not asked.reply["successful"]
        assert "/hello" not in house.bayeux.state.hub.routes
        assert house.balances()


def test_lazy_messages_wait_while_a_handshake_is_pending() -> None:
    class Subscriber(ServerExtension):
        def negotiate(
            self, session: Session, handshake: Json, reply: Json, now: float
        ) -> SessionExtension | None:
            house.bayeux.state.hub.routes.add(house.bayeux.state.channels.named("/lazy"), session)
            session.subscriptions.add("/lazy")
            return None

    house = House(Subscriber(), Slow(), channels={"/lazy": ChannelRule(lazy_timeout_s=1.0)})
    client = house.guest()
    asked = client.handshake()
    house.server.publish("/lazy", 1)
    house.advance(5.0)
    house.resolve(None)
    client.learn(asked)
    assert client.connect().data == [1]
    assert house.balances()


def test_a_session_expires_if_its_client_left_during_a_slow_handshake() -> None:
    house = House(Slow(), max_interval_s=10.0)
    asked = house.guest().handshake()
    house.abort(asked)
    house.resolve(None)
    assert len(sessions(house)) == 1
    house.advance(9.9)
    assert len(sessions(house)) == 1
    house.advance(0.3)
    assert sessions(house) == []


def test_a_pending_handshake_occupies_a_session_slot() -> None:
    house = House(Slow(), max_sessions=1)
    first, second = house.guest().handshake(), house.guest().handshake()
    assert_turned_away(second, 3000)
    house.resolve(None)
    assert first.reply["successful"]


def test_a_slow_handshake_is_turned_away_if_the_server_stops_meanwhile() -> None:
    house = House(Slow())
    asked = house.guest().handshake()
    house.stop()
    house.resolve(None)
    assert_turned_away(asked, 3000)
