"""`/meta/handshake`: which clients get a session, and what the reply tells them."""

from typing import Any

import pytest

from holdfast.bayeux.rights import Denial, SecurityPolicy
from holdfast.bayeux.session import Session
from tests.unit.bayeux.harness import ABSENT, Json, Server, Socket
from tests.unit.bayeux.newcomers import assert_turned_away, greeting, sessions


def test_a_handshake_creates_a_session_and_its_reply_has_all_that_the_client_needs() -> None:
    server = Server(timeout=20_000, interval=500)
    reply = server.guest().handshake().reply
    (session,) = sessions(server)
    assert reply == {
        "channel": "/meta/handshake",
        "id": "1",
        "successful": True,
        "clientId": session.client_id,
        "version": "1.0",
        "minimumVersion": "1.0",
        # callback-polling must be switched on.
        "supportedConnectionTypes": ["websocket", "long-polling"],
        "advice": {"reconnect": "retry", "interval": 500, "timeout": 20000},
    }
    assert len(session.client_id) == 29


def test_every_handshake_makes_a_session_of_its_own() -> None:
    server = Server()
    client = server.client()
    first = client.client_id
    client.handshake(clientId=first)
    assert client.client_id != first
    assert len(sessions(server)) == 2


def test_a_browser_without_a_cookie_is_given_one() -> None:
    client = Server().guest()
    asked = client.handshake()
    assert asked.exchange.new_browser == client.browser
    assert client.publish("/a").reply["successful"]


def test_a_browser_that_has_a_cookie_keeps_it() -> None:
    client = Server().guest(browser="mine")
    asked = client.handshake()
    assert asked.exchange.new_browser is None
    assert client.session.identity.browser == "mine"


def test_the_advice_has_the_max_interval_if_clients_should_handshake_by_themselves() -> None:
    reply = Server(handshake_reconnect=True, max_interval=8000).guest().handshake().reply
    assert reply["advice"]["maxInterval"] == 8000


@pytest.mark.parametrize("types", [ABSENT, None, [], ["telepathy"], "long-polling", {}, 5, [[]]])
def test_a_handshake_without_a_common_connection_type_is_refused(types: Any) -> None:
    server = Server(transports=["websocket", "long-polling"])
    asked = server.guest().handshake(supportedConnectionTypes=types)
    assert asked.reply == {
        "channel": "/meta/handshake",
        "id": "1",
        "successful": False,
        "error": "406::connection_types_unsupported",
        "supportedConnectionTypes": ["websocket", "long-polling"],
        "advice": {"reconnect": "none", "interval": 0, "timeout": 30000},
    }
    assert asked.exchange.new_browser is None
    assert sessions(server) == []


@pytest.mark.parametrize("types", [["long-polling"], ["telepathy", "websocket", 5, None]])
def test_one_common_connection_type_is_enough(types: list[Any]) -> None:
    server = Server()
    assert server.guest().handshake(supportedConnectionTypes=types).reply["successful"]


def test_the_version_and_client_id_of_a_handshake_do_not_matter() -> None:
    guest = Server().guest()
    assert guest.handshake(version=ABSENT, minimumVersion=7, clientId="x").reply["successful"]


# When there is no room


def test_handshakes_beyond_the_session_limit_are_refused_until_a_session_ends() -> None:
    server = Server(max_sessions=1)
    first, second = server.client(), server.guest()
    assert_turned_away(second.handshake(), 3000)
    first.disconnect()
    assert second.handshake().reply["successful"]


def test_handshakes_beyond_the_rate_are_refused_with_random_intervals() -> None:
    server = Server(handshake_rate=2)
    replies = [server.guest().handshake().reply["successful"] for _ in range(3)]
    assert replies == [True, True, False]
    for chance, interval in ((0.0, 500), (0.5, 3000), (0.9, 5000)):
        server.chance = chance
        assert_turned_away(server.guest().handshake(), interval)
    server.advance(0.5)
    assert server.guest().handshake().reply["successful"]


def test_a_stopping_server_advises_clients_to_handshake_later() -> None:
    server = Server(handshake_rate=4)
    for _ in range(4):
        server.client()
    server.stop()
    assert_turned_away(server.guest().handshake(), 500)


def test_refused_handshakes_are_not_counted_as_created_sessions() -> None:
    server = Server(max_sessions=1)
    server.guest().handshake(supportedConnectionTypes=[])
    server.guest().handshake()
    server.guest().handshake()
    assert server.bayeux.state.sessions.created == 1


# Messages that come with the reply


def test_messages_delivered_at_the_handshake_wait_for_the_first_connect() -> None:
    client = greeting().guest()
    asked = client.handshake()
    assert "x-messages" not in asked.reply
    assert client.connect().data == [1, 2]


def test_messages_follow_the_handshake_reply_if_allowed_and_are_counted_in_it() -> None:
    client = greeting(allow_message_delivery_during_handshake=True).guest()
    asked = client.handshake()
    assert asked.elements[0]["clientId"] == client.client_id
    assert asked.elements[0]["x-messages"] == 2
    assert [event["data"] for event in asked.elements[1:]] == [1, 2]
    assert client.connect().events == []


def test_a_handshake_reply_without_messages_has_no_count() -> None:
    server = Server(allow_message_delivery_during_handshake=True)
    assert "x-messages" not in server.guest().handshake().reply


# The policy


class Bouncer(SecurityPolicy):
    def __init__(self, denial: Denial) -> None:
        self._denial = denial

    def can_handshake(self, session: Session, handshake: Json) -> Denial | None:
        return self._denial if handshake.get("ext", {}).get("token") != "good" else None


def guarded(**denial: Any) -> Server:
    server = Server()
    server.bayeux.state.rights.policy = Bouncer(Denial(**denial))
    return server


def test_the_policy_can_deny_a_handshake() -> None:
    server = guarded()
    asked = server.guest().handshake()
    assert asked.reply == {
        "channel": "/meta/handshake",
        "id": "1",
        "successful": False,
        "error": "403::handshake_denied",
        "advice": {"reconnect": "none", "interval": 0, "timeout": 30000},
    }
    assert asked.exchange.new_browser is None
    assert sessions(server) == []
    assert server.guest().handshake(ext={"token": "good"}).reply["successful"]


def test_the_reply_has_the_policys_ext_and_its_advice_completed() -> None:
    server = guarded(advice={"reconnect": "handshake", "interval": 5}, ext={"why": "no"})
    reply = server.guest().handshake().reply
    assert reply["advice"] == {"reconnect": "handshake", "interval": 5, "timeout": 30000}
    assert reply["ext"] == {"why": "no"}


# Over WebSocket


def test_a_websocket_serves_the_session_of_its_handshake() -> None:
    server = Server()
    socket = Socket()
    client = server.client(socket=socket, browser="mine")
    assert socket.session is client.session
    client.subscribe("/a")
    assert client.hear()[-1]["successful"]


def test_a_websocket_with_a_second_handshake_serves_the_new_session() -> None:
    server = Server()
    socket = Socket()
    client = server.connected(socket=socket, browser="mine")
    first = client.session
    client.connect()
    assert first.held_connect is not None
    client.handshake()
    assert socket.session is client.session is not first
    assert first.held_connect is None
    assert first.pipe is None
