"""Several sessions of one browser: one connect is held, the others poll."""

from typing import Any

import pytest

from tests.unit.bayeux.harness import Client, Json, Server, Socket

BARE: Json = {"channel": "/meta/connect", "successful": True}


def crowd(number: int, **options: Any) -> tuple[Server, list[Client]]:
    server = Server(**options)
    return server, [server.connected(browser="shared") for _ in range(number)]


def test_only_one_connect_of_a_browser_is_held_and_the_others_poll() -> None:
    _, (alice, bob) = crowd(2)
    assert alice.connect().is_held
    assert bob.connect().reply == BARE | {
        "id": "3",
        "advice": {
            "reconnect": "retry",
            "interval": 2000,
            "timeout": 30000,
            "multiple-clients": True,
        },
    }


def test_connects_of_different_browsers_are_all_held() -> None:
    server, (alice,) = crowd(1)
    assert alice.connect().is_held
    assert server.connected().connect().is_held


def test_a_second_connect_of_the_same_session_is_held() -> None:
    _, (alice,) = crowd(1)
    alice.connect()
    assert alice.connect().is_held


@pytest.mark.parametrize("how", ["answered", "aborted", "disconnected", "timed out"])
def test_a_connect_of_another_session_is_held_when_the_held_connect_of_the_browser_ends(
    how: str,
) -> None:
    server, (alice, bob) = crowd(2)
    alice.subscribe("/a")
    asked = alice.connect()
    assert not bob.connect().is_held
    if how == "answered":
        server.for_extensions.publish("/a", 1)
        server.turn()
    elif how == "aborted":
        server.abort(asked)
    elif how == "disconnected":
        alice.disconnect()
    else:
        bob.session.interval_s = 60.0
        bob.connect()
        server.advance(30.1)
    assert bob.connect().is_held


def test_an_extra_session_of_a_browser_is_refused_if_the_polling_interval_is_zero() -> None:
    _, (alice, bob) = crowd(2, multi_session_interval=0)
    alice.connect()
    reply = bob.connect().reply
    assert (reply["successful"], "error" in reply) == (False, False)
    assert reply["advice"] == {
        "reconnect": "none",
        "interval": 0,
        "timeout": 30000,
        "multiple-clients": True,
    }


@pytest.mark.parametrize(("limit", "held"), [(-1, 4), (0, 0), (1, 1), (2, 2)])
def test_the_limit_of_sessions_per_browser_can_be_set(limit: int, held: int) -> None:
    _, clients = crowd(4, max_sessions_per_browser=limit)
    assert sum(client.connect().is_held for client in clients) == held


def test_each_held_connect_that_ends_makes_room_for_another_of_the_browser() -> None:
    _, (alice, bob, carol) = crowd(3, max_sessions_per_browser=2)
    assert alice.connect().is_held
    assert bob.connect().is_held
    assert not carol.connect().is_held
    alice.disconnect()
    assert carol.connect().is_held
    bob.disconnect()
    carol.disconnect()


def test_connects_over_websockets_do_not_count_towards_the_limit_of_a_browser() -> None:
    server = Server()
    clients = [server.connected(browser="shared", socket=Socket()) for _ in range(3)]
    for client in clients:
        client.connect()
    assert all(client.session.held_connect is not None for client in clients)
    assert server.connected(browser="shared").connect().is_held


def test_connects_of_trusted_clients_without_a_cookie_are_all_held() -> None:
    server = Server(trust_client_session=True)
    clients = [server.connected() for _ in range(3)]
    for client in clients:
        client.browser = None
    assert all(client.connect().is_held for client in clients)
