"""Callback-polling: no page of unknown origin gets in, and no foreign script runs."""

import re
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, Answer, request
from tests.abuse.conftest import CLOSE_LIMITS, MakeTarget
from tests.abuse.target import Target

HELLO = orjson.dumps([HANDSHAKE]).decode()
INVALID = (400, "400::callback_invalid")
DENIED = (403, "403::origin_denied")
SWITCHED_ON = {"transports": ["websocket", "long-polling", "callback-polling"]}
# The headers of a page of this server, over TLS and on this machine, or over plain HTTP.
PAGE = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "script"}
PAGE_OVER_HTTP = {"Referer": "http://holdfast.localhost/page.html"}
NOBODY_KNOWS = [
    {},
    {"Referer": ""},
    # A link in a mail, an address that somebody pasted.
    {"Sec-Fetch-Site": "none", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"},
    {"Sec-Fetch-Site": "none"},
    # Anybody may have put a picture or a link on a page of the server.
    {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "image"},
    {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "document"},
    {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "script", "sec-fetch-dest": "image"},
]


@pytest.fixture
def target(target_with: MakeTarget) -> Target:
    return target_with(**SWITCHED_ON)


def load(target: Target, query: str, **headers: str) -> Answer:
    """Load as a script of a page of this server."""
    return load_from(PAGE | headers, target, query)


def load_from(page: dict[str, str], target: Target, query: str) -> Answer:
    with target.wire() as wire:
        wire.send(request(b"", page, method=f"GET /cometd?{query}"))
        return wire.answer()


def say(page: dict[str, str], target: Target, *messages: dict[str, Any], cookie: str) -> Answer:
    """Send these messages in the address of a script, with the browser's cookie."""
    query = f"jsonp=f&message={quote(orjson.dumps(messages).decode())}"
    return load_from({**page, "Cookie": cookie}, target, query)


def heard(answer: Answer) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = orjson.loads(answer.body[len("/**/f(") : -1])
    return messages


CLAIM = {**HANDSHAKE, "ext": {"ack": True, "delivery": {"session": "joe/1"}}}


@pytest.mark.parametrize("page", NOBODY_KNOWS)
def test_a_page_that_hides_its_origin_cannot_take_a_session_over(
    page: dict[str, str], target: Target
) -> None:
    """An attack of a foreign page over plain HTTP, with `Referrer-Policy: no-referrer`."""
    with target.person(ext=CLAIM["ext"]) as joe:
        joe.subscribe("/secret")
        cookie = joe.headers["Cookie"]
        for handshake in (CLAIM, HANDSHAKE):
            answer = say(page, target, handshake, cookie=cookie)
            assert (answer.status, answer.error()) == DENIED
            assert answer.headers["content-type"].startswith("application/json")
            assert "set-cookie" not in answer.headers
        assert joe.publish("/secret", 1).messages()[-1]["successful"]
        assert joe.connect().messages()[0]["data"] == 1
        joe.ask(joe.message("/meta/disconnect", ext={"delivery": {"end": True}}))


@pytest.mark.parametrize("page", NOBODY_KNOWS)
def test_a_page_that_hides_its_origin_cannot_use_a_programs_session(
    page: dict[str, str], target: Target
) -> None:
    with target.wire() as wire:
        wire.send(request(orjson.dumps([HANDSHAKE])))
        answer = wire.answer()
    client, cookie = answer.messages()[0]["clientId"], answer.headers["set-cookie"].split(";")[0]
    for channel, fields in MESSAGES.items():
        denied = say(
            page, target, {"channel": channel, "clientId": client, **fields}, cookie=cookie
        )
        assert (denied.status, denied.error()) == DENIED


MESSAGES: dict[str, dict[str, Any]] = {
    "/meta/connect": {"connectionType": "callback-polling", "advice": {"timeout": 0}},
    "/meta/subscribe": {"subscription": "/secret"},
    "/meta/disconnect": {},
    "/secret": {"data": "forged"},
    "/service/x": {"data": "forged"},
}


@pytest.mark.parametrize("page", NOBODY_KNOWS)
def test_a_client_without_a_session_is_denied_whatever_it_sends(
    page: dict[str, str], target: Target
) -> None:
    for channel, fields in MESSAGES.items():
        for client in ({}, {"clientId": "f" * 32}, {"clientId": None}, {"clientId": [1]}):
            denied = say(page, target, {"channel": channel, **client, **fields}, cookie="a=b")
            assert (denied.status, denied.error()) == DENIED


def page_of(target: Target, page: dict[str, str]) -> tuple[str, str]:
    """The client and the cookie of a page that handshakes by script."""
    answer = say(page, target, HANDSHAKE, cookie="a=b")
    return heard(answer)[0]["clientId"], answer.headers["set-cookie"].split(";")[0]


@pytest.mark.parametrize("page", NOBODY_KNOWS[:3])
@pytest.mark.parametrize("first", [PAGE, PAGE_OVER_HTTP])
def test_a_page_whose_browser_hides_its_origin_continues_by_id_and_cookie(
    first: dict[str, str], page: dict[str, str], target: Target
) -> None:
    client, cookie = page_of(target, first)
    publish = {"channel": "/a", "data": 1, "clientId": client}
    assert heard(say(page, target, publish, cookie=cookie))[0]["successful"]
    # The cookie is needed nevertheless, and nothing else gets in with the id.
    refused = heard(say(page, target, publish, cookie="BAYEUX_BROWSER=another"))[0]
    assert refused["error"] == "402::session_unknown"
    for batch in ((publish, CLAIM), (CLAIM, publish)):
        denied = say(page, target, *batch, cookie=cookie)
        assert (denied.status, denied.error()) == DENIED


def test_a_session_that_a_page_made_by_post_continues_by_script(target: Target) -> None:
    headers = {"Origin": "http://holdfast.localhost"}
    with target.wire() as wire:
        wire.send(request(orjson.dumps([HANDSHAKE]), headers))
        answer = wire.answer()
    client, cookie = answer.messages()[0]["clientId"], answer.headers["set-cookie"].split(";")[0]
    publish = {"channel": "/a", "data": 1, "clientId": client}
    assert heard(say({}, target, publish, cookie=cookie))[0]["successful"]


def test_callback_polling_is_off_by_default(target_with: MakeTarget) -> None:
    target = target_with()
    answer = load(target, f"jsonp=f&message={quote(HELLO)}")
    assert (answer.status, answer.error()) == (400, "400::transport_unknown")
    with target.wire() as wire:
        wire.send(request(orjson.dumps([HANDSHAKE])))
        offered = wire.answer().messages()[0]["supportedConnectionTypes"]
    assert offered == ["websocket", "long-polling"]


def call(target: Target, callback: str) -> Answer:
    return load(target, f"jsonp={quote(callback, safe='')}&message={quote(HELLO)}")


@pytest.mark.parametrize(
    "callback",
    ["f", "a.b.c", "org.cometd.callback_1", "_", "0", "a-b", "f" * 64, "__proto__.x"],
)
def test_the_script_calls_the_named_function(callback: str, target: Target) -> None:
    answer = call(target, callback)
    assert answer.body.startswith(f"/**/{callback}([".encode())
    assert answer.headers["content-type"] == "text/javascript;charset=UTF-8"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "callback",
    [
        "",
        "f" * 65,
        "alert(1)//",
        "f;alert(1)",
        "f=",
        "f[0]",
        "$",
        "a b",
        "a\n",
        "a\r\nX-Injected: y",
        "\N{LINE SEPARATOR}",
        "\N{LATIN SMALL LETTER E WITH ACUTE}",
        "\N{FULLWIDTH LATIN SMALL LETTER F}",
        "<script>",
        "CWS\x07\x0e",
        "f\0",
        "%66",
        "${x}",
        "`",
        "f/*",
    ],
)
def test_an_invalid_function_name_is_refused(callback: str, target: Target) -> None:
    answer = call(target, callback)
    assert (answer.status, answer.error()) == INVALID
    assert "x-injected" not in answer.headers
    assert answer.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize("query", ["jsonp=f&jsonp=g", "jsonpcallback=f&jsonpcallback=g", "jsonp="])
def test_two_names_or_an_empty_one_are_refused(query: str, target: Target) -> None:
    answer = load(target, f"{query}&message={quote(HELLO)}")
    assert (answer.status, answer.error()) == INVALID


def test_without_a_function_name_bayeuxs_default_is_used(target: Target) -> None:
    assert load(target, f"message={quote(HELLO)}").body.startswith(b"/**/jsonpcallback([")
    assert load(target, f"jsonpcallback=g&message={quote(HELLO)}").body.startswith(b"/**/g([")


def test_data_cannot_break_out_of_its_string(target: Target) -> None:
    evil = "</script><script>alert(1)</script>\u2028\u2029<!--\\\"'"
    with target.person() as person:
        person.subscribe("/a")
        cookie = person.headers["Cookie"]
        with target.person() as publisher:
            publisher.publish("/a", evil)
            publisher.publish("/a", {evil: 1})
        answer = say(PAGE, target, person.connect_message(), cookie=cookie)
    script = answer.body.decode()
    for forbidden in ("</", "\u2028", "\u2029"):
        assert forbidden not in script
    messages = orjson.loads(script.removeprefix("/**/f(").removesuffix(")"))
    assert [message.get("data") for message in messages[:2]] == [evil, {evil: 1}]


@pytest.mark.parametrize(
    "message",
    [
        "",
        "%5B",
        "%ff%fe",
        "%ed%a0%80",
        "[%22%ed%a0%80%22]",
        "%00",
        "[]&message=",
        "[1]",
        "%22",
        "null",
    ],
)
def test_a_text_that_is_not_a_message_is_malformed(message: str, target: Target) -> None:
    answer = load(target, f"jsonp=f&message={message}")
    assert answer.status == 400
    assert re.fullmatch("400:(not|no|an|message) .*:request_malformed", answer.error())


@pytest.mark.parametrize("raw", [b"\xff", b"[{\xed\xa0\x80}]", b'[{"a":"\xc3"}]', b"\x80" * 9])
def test_a_message_of_raw_bytes_is_malformed(raw: bytes, target: Target) -> None:
    with target.wire() as wire:
        page = b"Host: h\r\nSec-Fetch-Site: same-origin\r\n\r\n"
        wire.send(b"GET /cometd?jsonp=f&message=" + raw + b" HTTP/1.1\r\n" + page)
        answer = wire.answer()
    assert answer.status == 400


def test_several_messages_are_one_batch_and_never_break_out_of_it(target: Target) -> None:
    whole = quote('[{"channel":"/meta/handshake"}]')
    part = quote('{"channel":"/x"},{"channel":"/y"}')
    answer = load(target, f"jsonp=f&message={whole}&message={part}")
    assert answer.status == 200
    assert answer.body.count(b'"channel"') == 3
    broken = load(target, "jsonp=f&message=[{}&message={}]").error()
    assert broken == "400:message 1 is not an object:request_malformed"


def test_a_get_without_messages_is_no_transport(target: Target) -> None:
    answer = load(target, "jsonp=f")
    error = "400:no page but where clients connect by POST or WebSocket:transport_unknown"
    assert (answer.status, answer.error()) == (400, error)


@pytest.mark.parametrize("credentials", [{"token": "x.y.z"}, {"user": "ada", "password": "x"}, 7])
def test_credentials_in_a_url_are_refused(credentials: Any, target: Target) -> None:
    ext = {"authentication": credentials}
    (reply,) = heard(say(PAGE, target, {**HANDSHAKE, "ext": ext}, cookie=""))
    assert not reply["successful"]
    assert reply["error"] == "403::credentials_in_url"
    timeout = CLOSE_LIMITS["timeout"]
    assert reply["advice"] == {"reconnect": "none", "interval": 0, "timeout": timeout}
    assert "clientId" not in reply
    # What has none is served.
    (reply,) = heard(say(PAGE, target, HANDSHAKE, cookie=""))
    assert reply["successful"]
