"""Programs without cookies: their client id is enough until they have sent a cookie."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from orjson import dumps, loads

from holdfast.bayeux.exchanges import receive
from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType, SpeakerKind
from holdfast.delivery.messages.session_record import SessionRecord
from tests.unit.bayeux.harness import Asked, Client, Server, Socket, Wire
from tests.unit.bayeux.second_lives import RestartableServer, take


def is_unknown(answer: Asked) -> bool:
    error = None if answer.is_held else answer.replies[-1].get("error")
    return error in ("402::session_unknown", "402:send the cookie:cookie_missing")


def is_let_in(answer: Asked) -> bool:
    return answer.is_held or answer.replies[-1]["successful"] is True


def on_new_socket(server: Server, client_id: str | None = None) -> Client:
    """A program whose upgrade brought no cookie; its WebSocket is given an identity."""
    browser = server.bayeux.state.client_ids.new()
    server.bayeux.identities.welcome(browser, server.now)
    program = server.guest(browser=browser, socket=Socket(), is_cookieless=True)
    program.client_id = client_id
    return program


def program(server: Server) -> Client:
    """A program with a session that it created over a WebSocket."""
    client = on_new_socket(server)
    client.handshake()
    client.connect()
    client.hear()
    server.advance(0.1)
    return client


def over_http(client: Client, browser: str | None, *, is_cookieless: bool = False) -> Client:
    """A client that uses the session of another over HTTP."""
    asking = client.server.guest(browser=browser, is_cookieless=is_cookieless)
    asking.client_id = client.client_id
    return asking


def over_a_socket(client: Client, browser: str) -> Client:
    """A client that uses the session of another over a WebSocket, with a cookie or from a page."""
    asking = over_http(client, browser)
    asking.socket = Socket()
    return asking


def test_a_program_without_cookies_continues_over_one_new_websocket_after_another() -> None:
    server = Server()
    client = program(server)
    client.subscribe("/a")
    for number in range(3):
        assert client.socket is not None
        server.close(client.socket)
        server.for_extensions.publish("/a", number)
        server.turn()
        client = on_new_socket(server, client.client_id)
        client.connect()
        assert [element.get("data") for element in client.hear()] == [number, None]


def test_a_program_can_continue_over_a_new_websocket_while_the_old_one_is_open() -> None:
    server = Server()
    old = program(server)
    old.subscribe("/a")
    old.connect()
    new = on_new_socket(server, old.client_id)
    new.connect()
    server.for_extensions.publish("/a", 1)
    server.turn()
    assert [element.get("data") for element in new.hear()] == [1]


@pytest.mark.parametrize(
    "intruder",
    [
        pytest.param(lambda client: over_http(client, None), id="a page without a cookie"),
        pytest.param(
            lambda client: over_http(client, None, is_cookieless=True), id="a program over HTTP"
        ),
        pytest.param(lambda client: over_http(client, "another"), id="another cookie"),
        pytest.param(lambda client: over_a_socket(client, "another"), id="a page's socket"),
    ],
)
def test_the_client_id_of_a_program_is_enough_only_over_a_new_websocket_of_a_program(
    intruder: Callable[[Client], Client],
) -> None:
    server = Server()
    client = program(server)
    assert is_unknown(intruder(client).publish("/a", 1))
    assert is_unknown(intruder(client).connect())
    assert is_let_in(on_new_socket(server, client.client_id).publish("/a", 1))


def test_a_websocket_that_serves_a_session_cannot_use_the_client_id_of_another() -> None:
    server = Server()
    victim, thief = program(server), program(server)
    thief.client_id = victim.client_id
    assert is_unknown(thief.connect())


@pytest.mark.parametrize("ask", [over_http, over_a_socket])
def test_a_program_that_has_sent_its_cookie_once_needs_it_from_then_on(
    ask: Callable[[Client, str], Client],
) -> None:
    server = Server()
    client = program(server)
    cookie = client.session.identity.browser
    assert cookie is not None
    assert is_let_in(ask(client, cookie).publish("/a", 1))
    assert is_unknown(on_new_socket(server, client.client_id).connect())
    assert is_let_in(ask(client, cookie).publish("/a", 1))


def test_a_session_that_a_page_created_over_a_websocket_is_not_resumed_by_its_id() -> None:
    server = Server()
    page = server.connected(browser="given to the socket", socket=Socket())
    assert is_unknown(on_new_socket(server, page.client_id).connect())


def test_the_identity_that_a_websocket_was_given_does_not_count_as_a_sent_cookie() -> None:
    server = Server()
    client = program(server)
    first = client.client_id
    client.handshake()
    client.client_id = first
    assert is_let_in(client.connect(advice={"timeout": 0}))
    assert is_let_in(on_new_socket(server, first).connect())


# Handshakes over HTTP


def handshaken_over_http(server: Server, *, is_cookieless: bool) -> Client:
    client = server.client(is_cookieless=is_cookieless)
    server.advance(0.1)
    return client


@pytest.mark.parametrize("later_s", [0.0, 0.1])
def test_a_program_that_handshakes_over_http_continues_over_websockets(later_s: float) -> None:
    server = Server()
    client = server.client(is_cookieless=True)
    server.advance(later_s)
    for _ in range(3):
        resumed = on_new_socket(server, client.client_id)
        assert is_let_in(resumed.connect(advice={"timeout": 0}))
        server.advance(6.0)


def test_a_program_that_keeps_the_cookie_of_its_handshake_needs_it() -> None:
    server = Server()
    client = handshaken_over_http(server, is_cookieless=True)
    cookie = client.session.identity.browser
    over_http(client, cookie).connect()
    assert is_unknown(on_new_socket(server, client.client_id).connect())


def test_a_session_that_a_page_created_over_http_is_joined_by_one_websocket_only() -> None:
    server = Server()
    page = handshaken_over_http(server, is_cookieless=False)
    assert is_let_in(on_new_socket(server, page.client_id).connect())
    assert is_unknown(on_new_socket(server, page.client_id).connect())


def test_a_program_whose_session_a_page_joins_over_a_websocket_needs_the_cookie() -> None:
    server = Server()
    client = handshaken_over_http(server, is_cookieless=True)
    page = over_a_socket(client, "given to the page's socket")
    server.bayeux.identities.welcome("given to the page's socket", server.now)
    assert is_let_in(page.connect(advice={"timeout": 0}))
    assert is_unknown(on_new_socket(server, client.client_id).connect())


def test_a_websocket_older_than_the_handshake_exempts_no_later_one_from_the_cookie() -> None:
    server = Server()
    beside = on_new_socket(server)
    server.advance(0.1)
    client = handshaken_over_http(server, is_cookieless=True)
    beside.client_id = client.client_id
    assert is_let_in(beside.connect())
    assert is_unknown(on_new_socket(server, client.client_id).connect())
    assert is_let_in(over_http(client, client.session.identity.browser).connect())


# Named sessions and restarts


def named_program(server: Server) -> Client:
    client = on_new_socket(server)
    take(client)
    client.client_id = client.hear()[0]["clientId"]
    client.connect()
    server.turn()
    return client


def test_a_program_that_has_sent_no_cookie_needs_none_after_restarts() -> None:
    before = RestartableServer()
    client = named_program(before)
    server = before.reborn().reborn()
    assert is_let_in(on_new_socket(server, client.client_id).connect())


def test_a_program_that_has_sent_its_cookie_needs_it_after_a_restart() -> None:
    before = RestartableServer()
    client = named_program(before)
    cookie = client.session.identity.browser
    over_http(client, cookie).connect(advice={"timeout": 0})
    before.turn()
    server = before.reborn()
    assert is_unknown(on_new_socket(server, client.client_id).connect())
    page = server.guest(browser=cookie)
    page.client_id = client.client_id
    assert is_let_in(page.connect(advice={"timeout": 0}))


def test_a_program_that_joined_its_session_still_needs_no_cookie_after_a_restart() -> None:
    before = RestartableServer()
    client = before.guest(is_cookieless=True)
    take(client)
    before.advance(0.1)
    on_new_socket(before, client.client_id).connect()
    before.turn()
    server = before.reborn()
    assert is_let_in(on_new_socket(server, client.client_id).connect())


def test_a_record_that_does_not_say_whether_it_needs_the_cookie_needs_it() -> None:
    server = RestartableServer()
    named_program(server)
    record = server.store.sessions["joe/1"]
    assert record.needs_cookie is False
    given = record.to_json()
    del given["needs_cookie"]
    assert SessionRecord.of_json(given).needs_cookie is True


def test_a_takeover_decides_whether_a_named_session_needs_a_cookie() -> None:
    server = RestartableServer()
    named_program(server)
    page = server.guest(browser="mine")
    take(page)
    assert is_unknown(on_new_socket(server, page.client_id).connect())
    client = named_program(server)
    assert is_let_in(on_new_socket(server, client.client_id).connect())
    assert is_unknown(over_a_socket(client, "mine").connect())


def test_any_of_several_cookies_finds_the_session_and_becomes_that_of_the_exchange() -> None:
    client = Server().connected()
    own = client.browser
    assert own is not None
    find = client.server.bayeux.identities.find
    for cookies in ((own, "tossed"), ("tossed", own), ("a", "b", own, "c")):
        exchange = Exchange(Wire(), Speaker(browsers=cookies))
        assert find(client.client_id, exchange) is client.session
        assert exchange.browser == own
    exchange = Exchange(Wire(), Speaker(browsers=("tossed", "a", "b")))
    assert find(client.client_id, exchange) is None
    assert exchange.browser == "tossed"


def asked_by_script(
    client: Client, *messages: Mapping[str, object], kind: SpeakerKind
) -> list[Any]:
    """The answer to a GET with these messages, with the cookie of that client."""
    assert client.browser is not None
    speaker = Speaker(browsers=(client.browser,), kind=kind)
    exchange = Exchange(Wire(ConnectionType.CALLBACK_POLLING), speaker)
    receive(client.server.bayeux, dumps(messages), exchange, client.server.now)
    client.server.turn()
    return [loads(reply) for reply in exchange.replies]


def of_page(server: Server) -> Client:
    """A client whose handshake came from a known page."""
    client = server.guest(browser="mine")
    (reply,) = asked_by_script(client, HANDSHAKE, kind=SpeakerKind.PAGE)
    client.client_id = reply["clientId"]
    return client


HANDSHAKE = {"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}


def test_a_handshake_from_an_unknown_page_is_refused() -> None:
    server = Server()
    client = of_page(server)
    publish = {"channel": "/a", "data": 1, "clientId": client.client_id}
    for messages in ([HANDSHAKE], [HANDSHAKE, publish], [publish, HANDSHAKE]):
        with pytest.raises(RequestRefused, match="origin_denied"):
            asked_by_script(client, *messages, kind=SpeakerKind.UNKNOWN)
    assert list(server.bayeux.state.sessions) == [client.session]


def test_a_request_from_an_unknown_page_works_only_in_the_session_of_a_known_page() -> None:
    server = Server()
    page, program = of_page(server), server.connected()
    publish = {"channel": "/a", "data": 1}
    own = {**publish, "clientId": page.client_id}
    (reply,) = asked_by_script(page, own, kind=SpeakerKind.UNKNOWN)
    assert reply["successful"]
    ids: list[object] = [program.client_id, "f" * 32, None, [], {}]
    for client_id in ids:
        said = {**publish, "clientId": client_id}
        with pytest.raises(RequestRefused, match="origin_denied"):
            asked_by_script(program, said, kind=SpeakerKind.UNKNOWN)
    # After a message of that session, messages of others have no effect.
    replies = asked_by_script(
        page, own, {**publish, "clientId": program.client_id}, kind=SpeakerKind.UNKNOWN
    )
    assert [reply["successful"] for reply in replies] == [True, False]


def test_the_session_of_a_known_page_is_recognized_after_a_restart() -> None:
    before = RestartableServer()
    client = before.guest(browser="mine")
    take(client)
    client.session.identity.is_of_page = True
    client.subscribe("/a")
    before.turn()
    server = before.reborn()
    (session,) = server.bayeux.state.sessions
    assert session.identity.is_of_page
