"""Who is taken for a session's client: its id and its browser's cookie, never the id alone."""

import pytest

from app.bayeux.life import IllegalTransition, Input
from tests.unit.bayeux.harness import Client, House, Socket


def with_session_of(client: Client, thief: Client) -> Client:
    thief.client_id = client.client_id
    return thief


def test_a_session_belongs_to_the_browser_of_its_handshake() -> None:
    house = House()
    alice = house.connected()
    for browser in (None, "another", house.client().browser):
        thief = with_session_of(alice, house.guest(browser=browser))
        assert thief.publish("/a", 1).reply["error"] == "402::session_unknown"
        assert thief.connect().reply["error"] == "402::session_unknown"
        assert thief.disconnect().reply["error"] == "402::session_unknown"
    assert alice.connect().is_held


def test_a_thief_does_not_keep_a_session_alive() -> None:
    house = House(max_interval_s=10.0)
    alice = house.connected()
    thief = with_session_of(alice, house.guest(browser="thief"))
    for _ in range(3):
        house.advance(4.0)
        thief.publish("/a", 1)
    assert len(house.bayeux.sessions) == 0


def test_sessions_of_one_browser_are_told_apart_by_their_ids() -> None:
    house = House()
    alice, bob = house.client(browser="shared"), house.client(browser="shared")
    assert alice.publish("/a", 1).reply["successful"]
    assert bob.publish("/a", 1).reply["successful"]


def test_trusted_clients_need_the_id_alone() -> None:
    house = House(trust_client_session=True)
    alice = house.client()
    for browser in (None, "another"):
        friend = with_session_of(alice, house.guest(browser=browser))
        assert friend.publish("/a", 1).reply["successful"]
    unknown = house.guest()
    unknown.client_id = "0" * 32
    assert unknown.publish("/a", 1).reply["error"] == "402::session_unknown"


# Over WebSocket


def test_a_socket_needs_the_cookie_too() -> None:
    house = House()
    alice = house.connected()
    for browser in ("another", None):
        thief = with_session_of(alice, house.guest(browser=browser, socket=Socket()))
        assert thief.publish("/a", 1).reply["error"] == "402::session_unknown"
        assert thief.connect().reply["error"] == "402::session_unknown"
    assert alice.session.pipe is None


def test_a_new_socket_goes_on_with_the_session_of_the_old_one() -> None:
    house = House()
    client = house.connected(socket=Socket(), browser="mine")
    client.subscribe("/a")
    assert client.socket is not None
    house.close(client.socket)
    house.bayeux.publish("/a", 1)
    house.turn()
    client.socket = Socket()
    assert client.connect().is_held is False
    assert [element.get("data") for element in client.hear()] == [1, None]


def test_a_socket_stays_with_its_session() -> None:
    house = House()
    alice = house.connected(socket=Socket(), browser="shared")
    bob = house.connected(browser="shared")
    bob.socket, socket = alice.socket, alice.socket
    assert bob.subscribe("/a").reply["error"] == "402::session_unknown"
    assert socket is not None
    assert socket.session is alice.session


def test_a_connect_makes_a_socket_serve_another_session_of_the_browser() -> None:
    house = House()
    alice = house.connected(socket=Socket(), browser="shared")
    bob = house.connected(browser="shared")
    alice.connect()
    bob.socket = alice.socket
    bob.connect()
    assert bob.session.pipe is bob.socket
    assert alice.session.pipe is None
    assert alice.session.held is None


def test_a_socket_whose_session_is_gone_may_serve_another_one() -> None:
    house = House()
    alice = house.connected(socket=Socket(), browser="shared")
    bob = house.connected(browser="shared")
    alice.disconnect()
    bob.socket = alice.socket
    assert bob.subscribe("/a").replies[-1]["successful"]


def test_a_handshake_on_each_socket_can_be_required() -> None:
    house = House(ws_require_handshake_per_connection=True)
    client = house.connected(socket=Socket(), browser="mine")
    assert client.publish("/a", 1).reply["successful"]
    client.socket = Socket()
    assert client.publish("/a", 1).reply["error"] == "402::session_unknown"


# Newcomers: a socket and a handshake at the same time, each without a cookie


def newcomer() -> tuple[House, Client]:
    """A client that handshook over HTTP and goes on over a socket with another identity."""
    house = House()
    client = house.client()
    client.browser, client.socket = "of the socket", Socket(is_newcomer=True)
    return house, client


def test_the_socket_of_a_newcomer_takes_the_session_of_its_handshake() -> None:
    _, client = newcomer()
    assert client.connect().replies[-1]["successful"]
    assert client.subscribe("/a").replies[-1]["successful"]


def test_afterwards_both_identities_are_the_browsers() -> None:
    house, client = newcomer()
    of_handshake = client.session.browser
    client.connect()
    client.socket = None
    assert client.publish("/a", 1).reply["successful"]
    client.browser = of_handshake
    assert client.publish("/a", 1).reply["successful"]
    client.browser = "another"
    assert client.publish("/a", 1).reply["error"] == "402::session_unknown"
    assert house.bayeux.sessions.find(client.client_id, None) is None


def test_a_session_is_taken_once() -> None:
    _, client = newcomer()
    client.subscribe("/a")
    client.browser, client.socket = "third", Socket(is_newcomer=True)
    assert client.connect().reply["error"] == "402::session_unknown"


def test_a_session_that_has_connected_is_not_taken() -> None:
    house = House()
    client = house.connected()
    client.browser, client.socket = "of the socket", Socket(is_newcomer=True)
    assert client.connect().reply["error"] == "402::session_unknown"


def test_a_session_of_a_browser_with_a_cookie_is_not_taken() -> None:
    house = House()
    client = house.client(browser="mine")
    client.browser, client.socket = "of the socket", Socket(is_newcomer=True)
    assert client.connect().reply["error"] == "402::session_unknown"


def test_a_socket_that_came_with_a_cookie_takes_nothing() -> None:
    house = House()
    client = house.client()
    client.browser, client.socket = "another", Socket()
    assert client.connect().reply["error"] == "402::session_unknown"


@pytest.mark.parametrize("client_id", ["0" * 32, None, 5])
def test_a_session_that_is_not_there_is_not_taken(client_id: object) -> None:
    assert House().bayeux.sessions.claim(client_id, "mine", 0.0) is None


# The books


def test_numbers_tell_sessions_apart_where_their_ids_must_not_be_seen() -> None:
    house = House()
    numbers = [house.client().session.number for _ in range(3)]
    assert len(set(numbers)) == 3


def test_how_sessions_ended_is_counted() -> None:
    house = House(max_interval_s=1.0)
    house.client().disconnect()
    house.client()
    house.client()
    house.advance(2.0)
    assert house.bayeux.sessions.ended == {Input.DISCONNECT.value: 1, Input.EXPIRE.value: 2}
    assert house.bayeux.sessions.created == 3


def test_a_session_ends_once() -> None:
    house = House()
    session = house.client().session
    house.bayeux.end(session, Input.DISCONNECT)
    with pytest.raises(IllegalTransition):
        house.bayeux.end(session, Input.EXPIRE)
