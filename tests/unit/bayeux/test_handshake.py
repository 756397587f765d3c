"""`/meta/handshake`: who becomes a session, and what it is told."""

import logging
from collections.abc import Awaitable
from typing import Any

import pytest

from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.extension_chain import ServerExtension, SessionExtension
from app.bayeux.options import ChannelRule
from app.bayeux.rights import Denial, SecurityPolicy
from app.bayeux.sessions import Session
from app.delivery.channels import Channel
from tests.unit.bayeux.harness import ABSENT, TRANSPORTS, Asked, House, Json, Socket


def sessions(house: House) -> list[Session]:
    return list(house.bayeux.sessions)


def test_a_client_gets_a_session_and_is_told_all_it_needs() -> None:
    house = House(timeout_s=20.0, interval_s=0.5)
    reply = house.guest().handshake().reply
    (session,) = sessions(house)
    assert reply == {
        "channel": "/meta/handshake",
        "id": "1",
        "successful": True,
        "clientId": session.client_id,
        "version": "1.0",
        "minimumVersion": "1.0",
        "supportedConnectionTypes": TRANSPORTS,
        "advice": {"reconnect": "retry", "interval": 500, "timeout": 20000},
    }
    assert len(session.client_id) == 32


def test_every_handshake_makes_a_session_of_its_own() -> None:
    house = House()
    client = house.client()
    first = client.client_id
    client.handshake(clientId=first)
    assert client.client_id != first
    assert len(sessions(house)) == 2


def test_a_browser_without_cookie_is_given_one() -> None:
    client = House().guest()
    asked = client.handshake()
    assert asked.exchange.new_browser == client.browser
    assert client.publish("/a").reply["successful"]


def test_a_browser_that_has_a_cookie_keeps_it() -> None:
    client = House().guest(browser="mine")
    asked = client.handshake()
    assert asked.exchange.new_browser is None
    assert client.session.browser == "mine"


def test_the_max_interval_is_told_if_clients_shall_handshake_by_themselves() -> None:
    reply = House(handshake_reconnect=True, max_interval_s=8.0).guest().handshake().reply
    assert reply["advice"]["maxInterval"] == 8000


@pytest.mark.parametrize("types", [ABSENT, None, [], ["telepathy"], "long-polling", {}, 5, [[]]])
def test_without_a_connection_type_in_common_there_is_no_session(types: Any) -> None:
    house = House(connection_types=("websocket", "long-polling"))
    asked = house.guest().handshake(supportedConnectionTypes=types)
    assert asked.reply == {
        "channel": "/meta/handshake",
        "id": "1",
        "successful": False,
        "error": "406::connection_types_unsupported",
        "supportedConnectionTypes": ["websocket", "long-polling"],
        "advice": {"reconnect": "none", "interval": 0, "timeout": 30000},
    }
    assert asked.exchange.new_browser is None
    assert sessions(house) == []


@pytest.mark.parametrize("types", [["long-polling"], ["telepathy", "websocket", 5, None]])
def test_one_connection_type_in_common_is_enough(types: list[Any]) -> None:
    house = House()
    assert house.guest().handshake(supportedConnectionTypes=types).reply["successful"]


def test_version_and_client_id_of_the_request_do_not_matter() -> None:
    guest = House().guest()
    assert guest.handshake(version=ABSENT, minimumVersion=7, clientId="x").reply["successful"]


# When there is no room


def assert_turned_away(asked: Asked, interval: int) -> None:
    assert asked.reply["error"] == "503::server_busy"
    assert asked.reply["advice"] == {
        "reconnect": "handshake",
        "interval": interval,
        "timeout": 30000,
    }


def test_sessions_beyond_the_limit_are_turned_away_until_one_ends() -> None:
    house = House(max_sessions=1)
    first, second = house.client(), house.guest()
    assert_turned_away(second.handshake(), 3000)
    first.disconnect()
    assert second.handshake().reply["successful"]


def test_handshakes_beyond_the_rate_are_told_to_come_back_at_moments_of_their_own() -> None:
    house = House(handshake_rate=2.0)
    replies = [house.guest().handshake().reply["successful"] for _ in range(3)]
    assert replies == [True, True, False]
    for chance, interval in ((0.0, 500), (0.5, 3000), (0.9, 5000)):
        house.chance = chance
        assert_turned_away(house.guest().handshake(), interval)
    house.advance(0.5)
    assert house.guest().handshake().reply["successful"]


def test_a_server_that_stops_lets_nobody_in_for_now() -> None:
    house = House()
    house.stop()
    assert_turned_away(house.guest().handshake(), 3000)


def test_only_sessions_that_came_into_being_are_counted_as_created() -> None:
    house = House(max_sessions=1)
    house.guest().handshake(supportedConnectionTypes=[])
    house.guest().handshake()
    house.guest().handshake()
    assert house.bayeux.sessions.created == 1


# Messages that come with the reply


class Greeter(ServerExtension):
    """Has something to say to every new client."""

    def __init__(self, house: House) -> None:
        self._house = house

    def negotiate(
        self, session: Session, handshake: Json, reply: Json, now: float
    ) -> SessionExtension | None:
        for number in (1, 2):
            self._house.bayeux.deliver_event(session, {"channel": "/hello", "data": number})
        return None


def greeting(**options: Any) -> House:
    house = House(**options)
    house.bayeux.extend(Greeter(house))
    return house


def test_messages_wait_for_the_first_connect() -> None:
    client = greeting().guest()
    asked = client.handshake()
    assert "x-messages" not in asked.reply
    assert client.connect().data == [1, 2]


def test_messages_follow_the_reply_if_that_is_allowed_and_are_counted_in_it() -> None:
    client = greeting(allow_message_delivery_during_handshake=True).guest()
    asked = client.handshake()
    assert asked.elements[0]["clientId"] == client.client_id
    assert asked.elements[0]["x-messages"] == 2
    assert [event["data"] for event in asked.elements[1:]] == [1, 2]
    assert client.connect().events == []


def test_no_messages_are_not_counted() -> None:
    house = House(allow_message_delivery_during_handshake=True)
    assert "x-messages" not in house.guest().handshake().reply


# The policy


class Bouncer(SecurityPolicy):
    def __init__(self, denial: Denial) -> None:
        self._denial = denial

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        return self._denial if handshake.get("ext", {}).get("token") != "good" else None


def guarded(**denial: Any) -> House:
    house = House()
    house.bayeux.rights.policy = Bouncer(Denial(**denial))
    return house


def test_the_policy_can_deny_a_handshake() -> None:
    house = guarded()
    asked = house.guest().handshake()
    assert asked.reply == {
        "channel": "/meta/handshake",
        "id": "1",
        "successful": False,
        "error": "403::handshake_denied",
        "advice": {"reconnect": "none", "interval": 0, "timeout": 30000},
    }
    assert asked.exchange.new_browser is None
    assert sessions(house) == []
    assert house.guest().handshake(ext={"token": "good"}).reply["successful"]


def test_the_policys_own_advice_and_ext_are_in_the_reply_and_the_advice_is_complete() -> None:
    house = guarded(advice={"reconnect": "handshake", "interval": 5}, ext={"why": "no"})
    reply = house.guest().handshake().reply
    assert reply["advice"] == {"reconnect": "handshake", "interval": 5, "timeout": 30000}
    assert reply["ext"] == {"why": "no"}


# Extensions that negotiate, some of which take their time


class Mark(SessionExtension):
    """Signs every reply."""

    def __init__(self, name: str) -> None:
        self._name = name

    def outgoing(self, session: Session, reply: Json, asked: Any, now: float) -> None:
        reply.setdefault("marks", []).append(self._name)


class Prompt(ServerExtension):
    """Answers at once, with what it was given."""

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
        raise AssertionError("the test says what comes of it")


def test_extensions_stay_with_the_session_and_see_the_reply_in_reversed_order() -> None:
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


def test_several_extensions_may_take_their_time_one_after_the_other() -> None:
    house = House(Slow(), Slow())
    asked = house.guest().handshake()
    assert len(house.pending) == 1
    house.resolve(None)
    assert asked.is_held
    house.resolve(None)
    assert asked.reply["successful"]


def test_many_handshakes_may_be_pending_at_a_time() -> None:
    house = House(Slow())
    clients = [house.guest() for _ in range(3)]
    asked = [client.handshake() for client in clients]
    for _ in asked:
        house.resolve(None)
    assert len({each.reply["clientId"] for each in asked}) == 3


def test_what_came_along_with_a_slow_handshake_is_answered_together_with_it() -> None:
    house = House(Slow())
    message: Json = {"channel": "/meta/handshake", "supportedConnectionTypes": TRANSPORTS}
    asked = house.guest().send({"channel": "/a", "data": 1}, message)
    assert asked.is_held
    house.resolve(None)
    assert [reply["id"] for reply in asked.elements] == ["2", "1"]
    assert asked.elements[0]["successful"]


def test_an_extension_can_refuse_at_once_or_later_with_words_of_its_own() -> None:
    refused = Refused(BayeuxError.HANDSHAKE_DENIED, advice={"reconnect": "none"}, ext={"why": 1})
    for house in (House(Prompt(Mark("a")), Prompt(refused)), House(Prompt(Mark("a")), Slow())):
        asked = house.guest().handshake()
        if asked.is_held:
            house.resolve(refused)
        assert asked.reply["error"] == "403::handshake_denied"
        assert asked.reply["ext"] == {"why": 1}
        assert "clientId" not in asked.reply
        assert asked.exchange.new_browser is None
        assert sessions(house) == []


def test_an_extension_that_fails_at_once_or_later_lets_nobody_in_for_now(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failure = ZeroDivisionError("a secret")
    for house in (House(Prompt(failure)), House(Slow())):
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            asked = house.guest().handshake()
            if asked.is_held:
                house.resolve(failure)
        assert_turned_away(asked, 3000)
        assert "ZeroDivisionError" in caplog.text
        assert sessions(house) == []


def test_a_refusal_after_others_agreed_leaves_nothing_behind() -> None:
    class Subscriber(ServerExtension):
        def negotiate(
            self, session: Session, handshake: Json, reply: Json, now: float
        ) -> SessionExtension | None:
            channel = house.bayeux.channels.get("/hello")
            assert isinstance(channel, Channel)
            house.bayeux.hub.routes.add(channel, session)
            session.subscriptions.add("/hello")
            return None

    for last in (Prompt(Refused(BayeuxError.HANDSHAKE_DENIED)), Slow()):
        house = greeting()
        house.bayeux.extend(Subscriber())
        house.bayeux.extend(last)
        asked = house.guest().handshake()
        if asked.is_held:
            house.resolve(ZeroDivisionError())
        assert not asked.reply["successful"]
        assert "/hello" not in house.bayeux.hub.routes
        assert house.balances()


def test_a_client_that_is_not_yet_let_in_may_have_lazy_messages_waiting() -> None:
    class Subscriber(ServerExtension):
        def negotiate(
            self, session: Session, handshake: Json, reply: Json, now: float
        ) -> SessionExtension | None:
            house.bayeux.hub.routes.add(house.bayeux.channels.named("/lazy"), session)
            session.subscriptions.add("/lazy")
            return None

    house = House(Subscriber(), Slow(), channels={"/lazy": ChannelRule(lazy_timeout_s=1.0)})
    client = house.guest()
    asked = client.handshake()
    house.bayeux.publish("/lazy", 1)
    house.advance(5.0)
    house.resolve(None)
    client.learn(asked)
    assert client.connect().data == [1]
    assert house.balances()


def test_a_client_that_left_meanwhile_leaves_a_session_that_expires() -> None:
    house = House(Slow(), max_interval_s=10.0)
    asked = house.guest().handshake()
    house.abort(asked)
    house.resolve(None)
    assert len(sessions(house)) == 1
    house.advance(9.9)
    assert len(sessions(house)) == 1
    house.advance(0.3)
    assert sessions(house) == []


def test_a_slow_handshake_keeps_its_room_while_it_takes_its_time() -> None:
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


# Over WebSocket


def test_a_socket_serves_the_session_of_its_handshake() -> None:
    house = House()
    socket = Socket()
    client = house.client(socket=socket, browser="mine")
    assert socket.session is client.session
    client.subscribe("/a")
    assert client.hear()[-1]["successful"]


def test_a_socket_that_handshakes_again_serves_the_new_session() -> None:
    house = House()
    socket = Socket()
    client = house.connected(socket=socket, browser="mine")
    first = client.session
    client.connect()
    assert first.held is not None
    client.handshake()
    assert socket.session is client.session is not first
    assert first.held is None
    assert first.pipe is None
