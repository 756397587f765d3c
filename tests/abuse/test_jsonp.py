"""Callback-polling: nothing that a stranger wrote is ever run as a script."""

from urllib.parse import quote

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, Answer, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target

HELLO = orjson.dumps([HANDSHAKE]).decode()
INVALID = (400, "400::callback_invalid")
MALFORMED = (400, "400::request_malformed")


def load(target: Target, query: str, **headers: str) -> Answer:
    with target.wire() as wire:
        wire.send(request(b"", headers, method=f"GET /cometd?{query}"))
        return wire.answer()


def call(target: Target, callback: str) -> Answer:
    return load(target, f"jsonp={quote(callback, safe='')}&message={quote(HELLO)}")


@pytest.mark.parametrize(
    "callback",
    ["f", "a.b.c", "org.cometd.callback_1", "_", "0", "a-b", "f" * 64, "__proto__.x"],
)
def test_a_name_is_called(callback: str, target: Target) -> None:
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
def test_what_is_no_name_is_refused(callback: str, target: Target) -> None:
    answer = call(target, callback)
    assert (answer.status, answer.error()) == INVALID
    assert "x-injected" not in answer.headers
    assert answer.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize("query", ["jsonp=f&jsonp=g", "jsonpcallback=f&jsonpcallback=g", "jsonp="])
def test_two_names_or_an_empty_one_are_refused(query: str, target: Target) -> None:
    answer = load(target, f"{query}&message={quote(HELLO)}")
    assert (answer.status, answer.error()) == INVALID


def test_bayeux_names_the_function_if_nobody_does(target: Target) -> None:
    assert load(target, f"message={quote(HELLO)}").body.startswith(b"/**/jsonpcallback([")
    assert load(target, f"jsonpcallback=g&message={quote(HELLO)}").body.startswith(b"/**/g([")


def test_data_cannot_leave_the_string_in_which_they_are(target: Target) -> None:
    evil = "</script><script>alert(1)</script>\u2028\u2029<!--\\\"'"
    with target.person() as person:
        person.subscribe("/a")
        cookie = person.headers["Cookie"]
        with target.person() as publisher:
            publisher.publish("/a", evil)
            publisher.publish("/a", {evil: 1})
        connect = quote(orjson.dumps([person.connect_message()]).decode())
        answer = load(target, f"jsonp=f&message={connect}", Cookie=cookie)
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
def test_a_message_that_is_none_is_malformed(message: str, target: Target) -> None:
    answer = load(target, f"jsonp=f&message={message}")
    assert (answer.status, answer.error()) == MALFORMED


@pytest.mark.parametrize("raw", [b"\xff", b"[{\xed\xa0\x80}]", b'[{"a":"\xc3"}]', b"\x80" * 9])
def test_a_message_of_raw_bytes_is_malformed(raw: bytes, target: Target) -> None:
    with target.wire() as wire:
        wire.send(b"GET /cometd?jsonp=f&message=" + raw + b" HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = wire.answer()
    assert answer.status == 400


def test_several_messages_are_one_batch_and_never_break_out_of_it(target: Target) -> None:
    whole = quote('[{"channel":"/meta/handshake"}]')
    part = quote('{"channel":"/x"},{"channel":"/y"}')
    answer = load(target, f"jsonp=f&message={whole}&message={part}")
    assert answer.status == 200
    assert answer.body.count(b'"channel"') == 3
    assert load(target, "jsonp=f&message=[{}&message={}]").error() == MALFORMED[1]


def test_a_get_without_messages_is_no_transport(target: Target) -> None:
    answer = load(target, "jsonp=f")
    assert (answer.status, answer.error()) == (400, "400::transport_unknown")


def test_it_can_be_switched_off(target_with: MakeTarget) -> None:
    target = target_with(transports=["long-polling", "websocket"])
    answer = load(target, f"jsonp=f&message={quote(HELLO)}")
    assert (answer.status, answer.error()) == (400, "400::transport_unknown")
