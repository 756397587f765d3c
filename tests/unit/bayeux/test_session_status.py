"""Since when a session has been in its state, and when it will expire."""

from collections.abc import Callable
from typing import Any

from holdfast.bayeux.session_status import expires_ms, last_seen_ms
from tests.unit.bayeux.harness import Client, Server, server_of
from tests.unit.bayeux.operated_server import connect, receiver, value_of


def test_the_expiry_of_a_session_follows_from_when_it_was_last_seen() -> None:
    server = server_of(max_interval_s=10.0)
    plain, held, named = server.connected(), server.connected(), receiver(server)
    held.connect()
    server.advance(4.0)
    ends, seen = _relative(server, expires_ms), _relative(server, last_seen_ms)
    assert (ends(plain), seen(plain)) == (6000, -4000)
    assert (ends(held), seen(held)) == (None, 0)
    assert (ends(named), seen(named)) == (6000 + 86_400_000, -4000)
    named.disconnect()
    server.advance(1.0)
    assert (ends(named), seen(named)) == (86_400_000 - 1000, -1000)


def test_the_status_says_since_when_a_session_is_alive_or_polling() -> None:
    server = server_of(max_interval_s=10.0)
    client = receiver(server)

    def dates() -> tuple[str, str]:
        told = (value_of(server, f"client/joe/1/?{name}SinceDate") for name in ("alive", "polling"))
        alive, polling = told
        return alive, polling

    came, _ = dates()
    assert came == value_of(server, "client/joe/1/?loginDate")
    while value_of(server, "client/joe/1/?connectionState") == "ALIVE":
        server.advance(0.1)
    lost = value_of(server, "?serverTimestamp")
    server.advance(5.0)
    assert dates() == ("", lost)
    connect(client)
    server.advance(3.0)
    back, awaited = dates()
    assert awaited == ""
    assert came < lost < back < value_of(server, "?serverTimestamp")


def test_a_session_without_a_dispatcher_has_been_alive_since_its_login() -> None:
    server = server_of()
    session = server.connected().session
    server.advance(5.0)
    began = value_of(server, f"{session.name}/?loginDate")
    assert value_of(server, f"{session.name}/?aliveSinceDate") == began
    server.bayeux.life.hold_back(session, "disk full", "ann", server.now)
    server.advance(1.0)
    assert value_of(server, f"{session.name}/?aliveSinceDate") == began
    assert value_of(server, f"{session.name}/?pollingSinceDate") == ""


def _relative(
    server: Server, look: Callable[[Any, Any, Any, float], int | None]
) -> Callable[[Client], int | None]:
    state = server.bayeux.state

    def ask_for(client: Client) -> int | None:
        found = look(state.options, state.node, client.session, server.now)
        return None if found is None else round((found - state.node.now_ms()) / 100) * 100

    return ask_for
