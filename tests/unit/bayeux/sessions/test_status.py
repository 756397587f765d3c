"""Since when a session has been in its state, and when it will expire."""

from collections.abc import Callable
from typing import Any

from holdfast.bayeux.sessions.status import created_ms, expires_ms, last_seen_ms, since_ms
from holdfast.bayeux.state.presence_events import member_of
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.web.admin.session_views import session_summary
from tests.unit.bayeux.harness import Client, Server, server_of
from tests.unit.bayeux.operated_server import connect, publish, receiver, value_of

ALIVE, POLLING = DispatcherState.ALIVE, DispatcherState.POLLING


def test_the_expiry_of_a_session_follows_from_when_it_was_last_seen() -> None:
    server = server_of(max_interval=10_000)
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


def since(server: Server, client: Client, state: DispatcherState) -> int | None:
    return since_ms(server.bayeux.state.node, client.session, state, server.now)


def test_the_status_says_since_when_a_session_is_alive_or_polling() -> None:
    server = server_of(max_interval=10_000)
    client = receiver(server)
    node = server.bayeux.state.node

    def moments() -> tuple[int | None, int | None]:
        return since(server, client, ALIVE), since(server, client, POLLING)

    assert moments() == (created_ms(client.session), None)
    while client.session.connection_state is ALIVE:
        server.advance(0.1)
    lost = node.now_ms()
    server.advance(5.0)
    assert moments() == (None, lost)
    connect(client)
    back = node.now_ms()
    server.advance(3.0)
    assert moments() == (back, None)


def seen_by_all(server: Server, client: Client) -> tuple[str, bool, str]:
    """The state in commands and REST, and what REST and presence say."""
    session, state = client.session, server.bayeux.state
    summary = session_summary(state.options, state.node, session, server.now)
    told = value_of(server, f"{session.name}/?connectionState")
    assert summary.state.value == told
    member = member_of(session, 0)
    assert summary.absent is (member["state"] == "absent")
    return told, summary.absent, member["state"]


def test_all_views_of_a_session_agree_on_its_state() -> None:
    server = server_of(max_interval=10_000)
    client = server.guest()
    client.handshake(ext={"ack": True, "delivery": {"session": "joe/1"}})
    server.turn()
    assert seen_by_all(server, client) == ("UNDEF", False, "here")
    connect(client)
    assert seen_by_all(server, client) == ("ALIVE", False, "here")
    client.subscribe("/a")
    publish(server, 1)
    (event,) = client.connect(advice={"timeout": 0}, ext={"ack": 1}).events
    busy = {"seq": event["ext"]["delivery"]["seq"], "errorCode": "communication.printer"}
    client.connect(advice={"timeout": 0}, ext={"delivery": {"verdicts": [busy]}})
    server.turn()
    assert seen_by_all(server, client) == ("POLLING", False, "here")
    client.disconnect()
    server.turn()
    assert seen_by_all(server, client) == ("UNDEF", True, "absent")
    client = receiver(server)
    connect(client)
    server.advance(1.0)
    assert seen_by_all(server, client) == ("ALIVE", False, "here")
    server.advance(15.0)
    assert seen_by_all(server, client) == ("POLLING", True, "absent")


def test_a_plain_session_is_alive_from_its_first_connect_on() -> None:
    server = server_of()
    client = server.guest()
    client.handshake()
    assert seen_by_all(server, client) == ("UNDEF", False, "here")
    client.connect()
    assert seen_by_all(server, client) == ("ALIVE", False, "here")


def test_a_session_that_returns_is_alive_since_then() -> None:
    server = server_of()
    client = receiver(server)
    client.disconnect()
    server.advance(60.0)
    assert since(server, client, ALIVE) is None
    back = server.bayeux.state.node.now_ms()
    client = receiver(server)
    server.advance(5.0)
    assert since(server, client, ALIVE) == back


def test_a_session_without_a_dispatcher_has_been_alive_since_it_began() -> None:
    server = server_of()
    client = server.connected()
    server.advance(5.0)
    began = created_ms(client.session)
    assert since(server, client, ALIVE) == began
    server.bayeux.life.hold_back(client.session, "disk full", who="ann", now=server.now)
    server.advance(1.0)
    assert since(server, client, ALIVE) == began
    assert since(server, client, POLLING) is None


def _relative(
    server: Server, look: Callable[[Any, Any, Any, float], int | None]
) -> Callable[[Client], int | None]:
    state = server.bayeux.state

    def ask_for(client: Client) -> int | None:
        found = look(state.options, state.node, client.session, server.now)
        return None if found is None else round((found - state.node.now_ms()) / 100) * 100

    return ask_for
