"""Programs without cookies: their client id is enough until they have sent a cookie."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from orjson import dumps, loads

from holdfast.bayeux.caller import Speaker
from holdfast.bayeux.errors import RequestRefused
from holdfast.bayeux.exchanges import receive
from holdfast.bayeux.sessions import Exchange
from holdfast.bayeux.transports import ConnectionType, Source
from holdfast.delivery.session_record import SessionRecord
from tests.unit.bayeux.harness import Asked, Client, House, Socket, Wire
from tests.unit.bayeux.second_lives import KeptHouse, take


def is_unknown(answer: Asked) -> bool:
    return not answer.is_held and answer.replies[-1].get("error") == "402::session_unknown"


def is_let_in(answer: Asked) -> bool:
    return answer.is_held or answer.replies[-1]["successful"] is True


def on_new_socket(house: House, client_id: str | None = None) -> Client:
    """A program whose upgrade brought no cookie; its WebSocket is given an identity."""
    browser = house.bayeux.state.new_id()
    house.bayeux.identities.welcome(browser, house.now)
    program = house.guest(browser=browser, socket=Socket(), is_cookieless=True)
    program.client_id = client_id
    return program


def program(house: House) -> Client:
    """A program with a session that it created over a WebSocket."""
    client = on_new_socket(house)
    client.handshake()
    client.connect()
    client.hear()
    house.advance(0.1)
    return client


def over_http(client: Client, browser: str | None, *, is_cookieless: bool = False) -> Client:
    """A client that uses the session of another over HTTP."""
    asking = client.house.guest(browser=browser, is_cookieless=is_cookieless)
    asking.client_id = client.client_id
    return asking


def over_a_socket(client: Client, browser: str) -> Client:
    """A client that uses the session of another over a WebSocket, with a cookie or from a page."""
    asking = over_http(client, browser)
    asking.socket = Socket()
    return asking


def test_a_program_without_cookies_continues_over_one_new_websocket_after_another() -> None:
    house = House()
    client = program(house)
    client.subscribe("/a")
    for number in range(3):
        assert client.socket is not None
        house.close(client.socket)
        house.server.publish("/a", number)
        house.turn()
        client = on_new_socket(house, client.client_id)
        client.connect()
        assert [element.get("data") for element in client.hear()] == [number, None]


def test_a_program_can_continue_over_a_new_websocket_while_the_old_one_is_open() -> None:
    house = House()
    old = program(house)
    old.subscribe("/a")
    old.connect()
    new = on_new_socket(house, old.client_id)
    new.connect()
    house.server.publish("/a", 1)
    house.turn()
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
    house = House()
    client = program(house)
    assert is_unknown(intruder(client).publish("/a", 1))
    assert is_unknown(intruder(client).connect())
    assert is_let_in(on_new_socket(house, client.client_id).publish("/a", 1))


def test_a_websocket_that_serves_a_session_cannot_use_the_client_id_of_another() -> None:
    house = House()
    victim, thief = program(house), program(house)
    thief.client_id = victim.client_id
    assert is_unknown(thief.connect())


@pytest.mark.parametrize("ask", [over_http, over_a_socket])
def test_a_program_that_has_sent_its_cookie_once_needs_it_from_then_on(
    ask: Callable[[Client, str], Client],
) -> None:
    house = House()
    client = program(house)
    cookie = client.session.identity.browser
    assert cookie is not None
    assert is_let_in(ask(client, cookie).publish("/a", 1))
    assert is_unknown(on_new_socket(house, client.client_id).connect())
    assert is_let_in(ask(client, cookie).publish("/a", 1))


def test_a_session_that_a_page_created_over_a_websocket_is_not_resumed_by_its_id() -> None:
    house = House()
    page = house.connected(browser="given to the socket", socket=Socket())
    assert is_unknown(on_new_socket(house, page.client_id).connect())


def test_the_identity_that_a_websocket_was_given_does_not_count_as_a_sent_cookie() -> None:
    house = House()
    client = program(house)
    first = client.client_id
    client.handshake()
    client.client_id = first
    assert is_let_in(client.connect(advice={"timeout": 0}))
    assert is_let_in(on_new_socket(house, first).connect())


# Handshakes over HTTP


def handshaken_over_http(house: House, *, is_cookieless: bool) -> Client:
    client = house.client(is_cookieless=is_cookieless)
    house.advance(0.1)
    return client


@pytest.mark.parametrize("later_s", [0.0, 0.1])
def test_a_program_that_handshakes_over_http_continues_over_websockets(later_s: float) -> None:
    house = House()
    client = house.client(is_cookieless=True)
    house.advance(later_s)
    for _ in range(3):
        resumed = on_new_socket(house, client.client_id)
        assert is_let_in(resumed.connect(advice={"timeout": 0}))
        house.advance(6.0)


def test_a_program_that_keeps_the_cookie_of_its_handshake_needs_it() -> None:
    house = House()
    client = handshaken_over_http(house, is_cookieless=True)
    cookie = client.session.identity.browser
    over_http(client, cookie).connect()
    assert is_unknown(on_new_socket(house, client.client_id).connect())


def test_a_session_that_a_page_created_over_http_is_joined_by_one_websocket_only() -> None:
    house = House()
    page = handshaken_over_http(house, is_cookieless=False)
    assert is_let_in(on_new_socket(house, page.client_id).connect())
    assert is_unknown(on_new_socket(house, page.client_id).connect())


def test_a_program_whose_session_a_page_joins_over_a_websocket_needs_the_cookie() -> None:
    house = House()
    client = handshaken_over_http(house, is_cookieless=True)
    page = over_a_socket(client, "given to the page's socket")
    house.bayeux.identities.welcome("given to the page's socket", house.now)
    assert is_let_in(page.connect(advice={"timeout": 0}))
    assert is_unknown(on_new_socket(house, client.client_id).connect())


def test_a_websocket_older_than_the_handshake_exempts_no_later_one_from_the_cookie() -> None:
    house = House()
    beside = on_new_socket(house)
    house.advance(0.1)
    client = handshaken_over_http(house, is_cookieless=True)
    beside.client_id = client.client_id
    assert is_let_in(beside.connect())
    assert is_unknown(on_new_socket(house, client.client_id).connect())
    assert is_let_in(over_http(client, client.session.identity.browser).connect())


# Named sessions and restarts


def named_program(house: House) -> Client:
    client = on_new_socket(house)
    take(client)
    client.client_id = client.hear()[0]["clientId"]
    client.connect()
    house.turn()
    return client


def test_a_program_that_has_sent_no_cookie_needs_none_after_restarts() -> None:
    before = KeptHouse()
    client = named_program(before)
    house = before.reborn().reborn()
    assert is_let_in(on_new_socket(house, client.client_id).connect())


def test_a_program_that_has_sent_its_cookie_needs_it_after_a_restart() -> None:
    before = KeptHouse()
    client = named_program(before)
    cookie = client.session.identity.browser
    over_http(client, cookie).connect(advice={"timeout": 0})
    before.turn()
    house = before.reborn()
    assert is_unknown(on_new_socket(house, client.client_id).connect())
    page = house.guest(browser=cookie)
    page.client_id = client.client_id
    assert is_let_in(page.connect(advice={"timeout": 0}))


def test_a_program_that_joined_its_session_still_needs_no_cookie_after_a_restart() -> None:
    before = KeptHouse()
    client = before.guest(is_cookieless=True)
    take(client)
    before.advance(0.1)
    on_new_socket(before, client.client_id).connect()
    before.turn()
    house = before.reborn()
    assert is_let_in(on_new_socket(house, client.client_id).connect())


def test_a_record_that_does_not_say_whether_it_needs_the_cookie_needs_it() -> None:
    house = KeptHouse()
    named_program(house)
    record = house.store.sessions["joe/1"]
    assert record.needs_cookie is False
    given = record.to_json()
    del given["needs_cookie"]
    assert SessionRecord.of_json(given).needs_cookie is True


def test_a_takeover_decides_whether_a_named_session_needs_a_cookie() -> None:
    house = KeptHouse()
    named_program(house)
    page = house.guest(browser="mine")
    take(page)
    assert is_unknown(on_new_socket(house, page.client_id).connect())
    client = named_program(house)
    assert is_let_in(on_new_socket(house, client.client_id).connect())
    assert is_unknown(over_a_socket(client, "mine").connect())


def test_any_of_several_cookies_finds_the_session_and_becomes_that_of_the_exchange() -> None:
    client = House().connected()
    own = client.browser
    assert own is not None
    find = client.house.bayeux.identities.find
    for cookies in ((own, "tossed"), ("tossed", own), ("a", "b", own, "c")):
        exchange = Exchange(Wire(), Speaker(browsers=cookies))
        assert find(client.client_id, exchange) is client.session
        assert exchange.browser == own
    exchange = Exchange(Wire(), Speaker(browsers=("tossed", "a", "b")))
    assert find(client.client_id, exchange) is None
    assert exchange.browser == "tossed"


def asked_by_script(client: Client, *messages: Mapping[str, object], source: Source) -> list[Any]:
    """The answer to a GET with these messages, with the cookie of that client."""
    assert client.browser is not None
    speaker = Speaker(browsers=(client.browser,), source=source)
    exchange = Exchange(Wire(ConnectionType.CALLBACK_POLLING), speaker)
    receive(client.house.bayeux, dumps(messages), exchange, client.house.now)
    client.house.turn()
    return [loads(reply) for reply in exchange.replies]


def of_page(house: House) -> Client:
    """A client whose handshake came from a known page."""
    client = house.guest(browser="mine")
    (reply,) = asked_by_script(client, HANDSHAKE, source=Source.PAGE)
    client.client_id = reply["clientId"]
    return client


HANDSHAKE = {"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}


def test_a_handshake_from_an_unknown_page_is_refused() -> None:
    house = House()
    client = of_page(house)
    publish = {"channel": "/a", "data": 1, "clientId": client.client_id}
    for messages in ([HANDSHAKE], [HANDSHAKE, publish], [publish, HANDSHAKE]):
        with pytest.raises(RequestRefused, match="origin_denied"):
            asked_by_script(client, *messages, source=Source.UNKNOWN)
    assert list(house.bayeux.state.sessions) == [client.session]


def test_a_request_from_an_unknown_page_works_only_in_the_session_of_a_known_page() -> None:
    house = House()
    page, program = of_page(house), house.connected()
    publish = {"channel": "/a", "data": 1}
    own = {**publish, "clientId": page.client_id}
    (reply,) = asked_by_script(page, own, source=Source.UNKNOWN)
    assert reply["successful"]
    ids: list[object] = [program.client_id, "f" * 32, None, [], {}]
    for client_id in ids:
        said = {**publish, "clientId": client_id}
        with pytest.raises(RequestRefused, match="origin_denied"):
            asked_by_script(program, said, source=Source.UNKNOWN)
    # After a message of that session, those of others have no effect.
    replies = asked_by_script(
        page, own, {**publish, "clientId": program.client_id}, source=Source.UNKNOWN
    )
    assert [reply["successful"] for reply in replies] == [True, False]


def test_the_session_of_a_known_page_is_recognized_after_a_restart() -> None:
    before = KeptHouse()
    client = before.guest(browser="mine")
    take(client)
    client.session.identity.is_of_page = True
    client.subscribe("/a")
    before.turn()
    house = before.reborn()
    (session,) = house.bayeux.state.sessions
    assert session.identity.is_of_page
