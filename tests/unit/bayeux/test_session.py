"""Which requests belong to a session: those with its client id and its browser's cookie."""

from typing import Any

import pytest

from holdfast.bayeux.sessions.identities import JOIN_S
from holdfast.delivery.basics.session_states import IllegalTransition, SessionInput
from tests.unit.bayeux.harness import Asked, Client, Server, Socket


def with_session_of(client: Client, thief: Client) -> Client:
    thief.client_id = client.client_id
    return thief


def test_a_session_belongs_to_the_browser_of_its_handshake() -> None:
    server = Server()
    alice = server.connected()
    for browser in (None, "another", server.client().browser):
        thief = with_session_of(alice, server.guest(browser=browser))
        unknown = (
            "402:send the cookie:cookie_missing" if browser is None else "402::session_unknown"
        )
        assert thief.publish("/a", 1).reply["error"] == unknown
        assert thief.connect().reply["error"] == unknown
        assert thief.disconnect().reply["error"] == unknown
    assert alice.connect().is_held


def test_a_client_with_another_cookie_does_not_keep_a_session_alive() -> None:
    server = Server(max_interval=10_000)
    alice = server.connected()
    thief = with_session_of(alice, server.guest(browser="thief"))
    for _ in range(3):
        server.advance(4.0)
        thief.publish("/a", 1)
    assert len(server.bayeux.state.sessions) == 0


def test_two_sessions_of_one_browser_can_be_used_side_by_side() -> None:
    server = Server()
    alice, bob = server.client(browser="shared"), server.client(browser="shared")
    assert alice.publish("/a", 1).reply["successful"]
    assert bob.publish("/a", 1).reply["successful"]


def test_trust_client_session_makes_the_client_id_sufficient() -> None:
    server = Server(trust_client_session=True)
    alice = server.client()
    for browser in (None, "another"):
        friend = with_session_of(alice, server.guest(browser=browser))
        assert friend.publish("/a", 1).reply["successful"]
    unknown = server.guest()
    unknown.client_id = "0" * 32
    assert unknown.publish("/a", 1).reply["error"] == "402::session_unknown"


# Over WebSocket


def test_a_socket_needs_the_cookie_too() -> None:
    server = Server()
    alice = server.connected()
    for browser in ("another", "a third"):
        thief = with_session_of(alice, server.guest(browser=browser, socket=Socket()))
        assert thief.publish("/a", 1).reply["error"] == "402::session_unknown"
        assert thief.connect().reply["error"] == "402::session_unknown"
    assert alice.session.pipe is None


def test_a_new_socket_continues_the_session_of_the_old_one() -> None:
    server = Server()
    client = server.connected(socket=Socket(), browser="mine")
    client.subscribe("/a")
    assert client.socket is not None
    server.close(client.socket)
    server.for_extensions.publish("/a", 1)
    server.turn()
    client.socket = Socket()
    assert client.connect().is_held is False
    assert [element.get("data") for element in client.hear()] == [1, None]


def test_a_subscribe_for_another_session_of_the_browser_is_refused_over_a_socket() -> None:
    server = Server()
    alice = server.connected(socket=Socket(), browser="shared")
    bob = server.connected(browser="shared")
    bob.socket, socket = alice.socket, alice.socket
    assert bob.subscribe("/a").reply["error"] == "402::session_unknown"
    assert socket is not None
    assert socket.session is alice.session


def test_a_connect_makes_a_socket_serve_another_session_of_the_browser() -> None:
    server = Server()
    alice = server.connected(socket=Socket(), browser="shared")
    bob = server.connected(browser="shared")
    alice.connect()
    bob.socket = alice.socket
    bob.connect()
    assert bob.session.pipe is bob.socket
    assert alice.session.pipe is None
    assert alice.session.held_connect is None


def test_a_socket_whose_session_is_gone_may_serve_another_one() -> None:
    server = Server()
    alice = server.connected(socket=Socket(), browser="shared")
    bob = server.connected(browser="shared")
    alice.disconnect()
    bob.socket = alice.socket
    assert bob.subscribe("/a").replies[-1]["successful"]


def test_a_handshake_on_each_socket_can_be_required() -> None:
    server = Server(ws_require_handshake_per_connection=True)
    client = server.connected(socket=Socket(), browser="mine")
    assert client.publish("/a", 1).reply["successful"]
    client.socket = Socket()
    assert client.publish("/a", 1).reply["error"] == "402::session_unknown"


# Newcomers: a socket and a handshake at the same time, each without a cookie


def newcomer(opened_s_before: float = 0.0, **fields: Any) -> tuple[Server, Client]:
    """A client that handshook over HTTP and goes on with the identity of its socket."""
    server = Server(max_interval=60_000)
    server.bayeux.identities.welcome("of the socket", server.now)
    server.advance(opened_s_before)
    client = server.client(**fields)
    client.browser, client.socket = "of the socket", Socket()
    return server, client


def connect_over_http(client: Client) -> None:
    """Connect with the cookie of the handshake."""
    browser, socket = client.browser, client.socket
    client.browser, client.socket = client.session.identity.browser, None
    client.connect(advice={"timeout": 0})
    client.browser, client.socket = browser, socket


def is_unknown(answer: Asked) -> bool:
    return answer.reply.get("error") == "402::session_unknown"


def test_the_socket_of_a_newcomer_joins_the_session_of_its_handshake() -> None:
    _, client = newcomer()
    assert client.connect().replies[-1]["successful"]
    assert client.subscribe("/a").replies[-1]["successful"]


def test_a_newcomer_may_connect_over_http_before_its_socket_joins_the_session() -> None:
    server, client = newcomer()
    server.advance(0.1)
    connect_over_http(client)
    assert client.subscribe("/a").replies[-1]["successful"]


def test_a_newcomer_may_connect_over_http_with_the_cookie_of_its_socket() -> None:
    _, client = newcomer()
    client.socket = None
    assert client.connect().reply["successful"]


def test_a_joined_session_keeps_the_identities_of_its_handshake_and_its_socket() -> None:
    server, client = newcomer()
    of_handshake = client.session.identity.browser
    client.connect()
    server.advance(2 * JOIN_S)
    client.socket = None
    assert client.publish("/a", 1).reply["successful"]
    client.browser = of_handshake
    assert client.publish("/a", 1).reply["successful"]
    client.browser = "another"
    assert is_unknown(client.publish("/a", 1))
    client.browser = None
    assert client.publish("/a", 1).reply["error"] == "402:send the cookie:cookie_missing"


def test_a_session_is_joined_only_once() -> None:
    server, client = newcomer()
    server.bayeux.identities.welcome("third", server.now)
    client.subscribe("/a")
    client.browser, client.socket = "third", Socket()
    assert is_unknown(client.connect())


@pytest.mark.parametrize(("later_s", "joins"), [(0.0, True), (0.5, True), (1.5, False)])
def test_a_socket_of_another_process_may_be_told_a_little_late(later_s: float, joins: bool) -> None:
    server, client = newcomer()
    connect_over_http(client)
    server.advance(later_s)
    client.browser = "of another process"
    server.bayeux.identities.welcome_stranger("of another process", server.now)
    assert is_unknown(client.publish("/a", 1)) is not joins


@pytest.mark.parametrize("later_s", [0.0, 0.1])
def test_a_socket_that_was_opened_after_the_first_connect_joins_no_session(
    later_s: float,
) -> None:
    server, client = newcomer()
    connect_over_http(client)
    server.advance(later_s)
    client.browser = "late"
    server.bayeux.identities.welcome("late", server.now)
    # Another connect does not help, because the first one counts.
    server.advance(0.1)
    connect_over_http(client)
    refused = client.publish("/a", 1)
    assert is_unknown(refused)
    assert refused.reply["advice"]["reconnect"] == "handshake"


def test_a_socket_that_was_opened_long_before_the_handshake_joins_no_session() -> None:
    _, client = newcomer(JOIN_S + 0.1)
    assert is_unknown(client.publish("/a", 1))


def test_a_socket_that_is_first_used_long_after_the_handshake_joins_no_session() -> None:
    server, client = newcomer()
    server.advance(JOIN_S + 0.1)
    assert is_unknown(client.publish("/a", 1))


def test_a_session_of_a_browser_with_a_cookie_is_not_joined() -> None:
    _, client = newcomer(browser="mine")
    refused = client.publish("/a", 1)
    assert is_unknown(refused)
    assert "advice" not in refused.reply


def test_an_identity_that_was_not_given_to_a_socket_joins_no_session() -> None:
    _, client = newcomer()
    client.browser = "another"
    refused = client.publish("/a", 1)
    assert is_unknown(refused)
    assert "advice" not in refused.reply


def test_the_first_of_very_many_sockets_joins_no_session() -> None:
    server, client = newcomer()
    for number in range(10_000):
        server.bayeux.identities.welcome(f"{number}", server.now)
    assert is_unknown(client.connect())


# Numbers and counters


def test_each_session_has_a_number_of_its_own() -> None:
    server = Server()
    numbers = [server.client().session.number for _ in range(3)]
    assert len(set(numbers)) == 3


def test_sessions_are_counted_by_how_they_ended() -> None:
    server = Server(max_interval=1000)
    server.client().disconnect()
    server.client()
    server.client()
    server.advance(2.0)
    assert server.bayeux.state.sessions.ended == {
        SessionInput.DISCONNECT.value: 1,
        SessionInput.EXPIRE.value: 2,
    }
    assert server.bayeux.state.sessions.created == 3


def test_a_session_cannot_end_twice() -> None:
    server = Server()
    session = server.client().session
    server.bayeux.life.ends.end(session, SessionInput.DISCONNECT)
    with pytest.raises(IllegalTransition):
        server.bayeux.life.ends.end(session, SessionInput.EXPIRE)
