"""The server discloses nothing of itself and of its clients that it need not."""

import urllib.request

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, Answer, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target

SECRET = "s3cr3t-0123456789"
TOKEN = {"authentication": {"token": SECRET}}


def ask(target: Target, method: str, headers: dict[str, str] | None = None) -> Answer:
    with target.wire() as wire:
        wire.send(request(b"", headers, method=method))
        return wire.answer()


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app/logs.py",
        "/static/..%2fapp/logs.py",
        "/static/%2e%2e/app/logs.py",
        "/static/%252e%252e/app/logs.py",
        "/static/..%5capp%5clogs.py",
        "/static//etc/passwd",
        "/static/%2fetc/passwd",
        "/static/....//app/logs.py",
        "/static/.",
        "/static/",
        "/static/index.html%00.js",
        "/static/" + "../" * 50 + "etc/passwd",
        "/../../etc/passwd",
        "/cometd/../healthz/../../etc/passwd",
    ],
)
def test_no_path_leads_out_of_the_pages(path: str, target: Target) -> None:
    answer = ask(target, f"GET {path}")
    assert answer.status in (400, 403, 404)
    assert b"root:" not in answer.body
    assert b"import logging" not in answer.body


@pytest.mark.parametrize("path", ["/", "/static/welcome.js", "/healthz", "/metrics", "/nowhere"])
def test_responses_forbid_sniffing_and_framing_and_name_no_versions(
    path: str, target: Target
) -> None:
    answer = ask(target, f"GET {path}")
    assert answer.headers["server"] == "Holdfast"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert b"aiohttp" not in answer.body or path == "/static/welcome.js"
    if path in ("/", "/static/welcome.js"):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "HEAD", "BREW"])
def test_other_methods_have_no_effect_and_echo_nothing(method: str, target: Target) -> None:
    target_form = "h:80" if method == "CONNECT" else "/cometd"
    with target.wire() as wire:
        wire.send(request(b"", {"X-Secret": SECRET}, method=f"{method} {target_form}"))
        line = wire.read_line()
        assert line.split()[1] in (b"400", b"404", b"405")
        wire.socket.shutdown(1)
        assert SECRET.encode() not in wire.read_to_the_end()


def test_the_log_has_no_ids_cookies_tokens_or_data(
    target_with: MakeTarget,
) -> None:
    transports = ["websocket", "long-polling", "callback-polling"]
    target = target_with(log_level="debug", transports=transports)
    with target.person(ext={"authentication": {"password": SECRET}}) as person:
        guess = {"supportedConnectionTypes": ["long-polling"], "ext": TOKEN}
        refused = person.ask(person.message("/meta/handshake", **guess))
        assert refused.error() == "403:no_login:handshake_denied"
        person.headers["Authorization"] = f"Bearer {SECRET}"
        person.subscribe("/a")
        person.publish("/a", SECRET)
        person.connect()
        person.ask({"channel": SECRET}, person.message("/meta/connect", id=SECRET))
        seen = [person.client_id, person.headers["Cookie"].partition("=")[2], SECRET]
        ask(target, f"GET /cometd?token={SECRET}")
        ask(target, f"GET /cometd?jsonp={SECRET}!&message=[{{}}]")
        ask(target, f"GET /{SECRET}")
        cookie = person.headers["Cookie"]
        for line in (f"Cookie: {cookie}\0", f"Cookie : {cookie}", f"X: \n{SECRET}", SECRET):
            with target.wire() as wire:
                wire.send(f"POST /cometd HTTP/1.1\r\nHost: h\r\n{line}\r\n\r\n".encode())
                assert wire.answer().status == 400
        with target.socket(Cookie=cookie) as socket:
            socket.say({"channel": SECRET, "clientId": person.client_id})
            socket.hear()
            socket.send_frame(f'["{SECRET}'.encode())
            socket.close_code()
        person.ask(person.message("/meta/disconnect"))
    log = target.log()
    assert log, "nothing was logged, so nothing is shown"
    for secret in seen:
        assert secret not in log


def test_no_line_of_the_log_can_be_forged(target: Target) -> None:
    forged = '\n{"level":"error","message":"forged"}\n'
    with target.person() as person:
        person.ask({"channel": forged, "id": forged}, person.message(f"/a{forged}", data=forged))
    with target.wire() as wire:
        wire.send(b'GET /\r\n{"level":"error"}\r\n HTTP/1.1\r\n\r\n')
        wire.answer()
    # The end of the test checks that every line is JSON and none is an error.
    assert "forged" not in target.log()


def test_metrics_have_labels_of_a_fixed_set(target: Target) -> None:
    with target.person() as person:
        person.subscribe(f"/{SECRET}")
        person.publish(f"/{SECRET}", SECRET)
        with urllib.request.urlopen(f"{target.url}/metrics", timeout=60) as response:
            text = response.read().decode()
    assert SECRET not in text
    assert person.client_id not in text


@pytest.mark.parametrize(
    "data",
    [
        f"POST / HTTP/1.1\r\nHost: h\r\n{SECRET}\r\n\r\n".encode(),
        f"{SECRET} / HTTP/1.1\r\nHost: h\r\n\r\n".encode(),
        b"\x16\x03\x01\x02\x00" + SECRET.encode(),
        f"POST / HTTP/1.1\r\nHost: h\r\nX: {SECRET * 1000}\r\n\r\n".encode(),
    ],
)
def test_bytes_that_are_not_http_are_refused_and_not_repeated(
    data: bytes, either_front_end: Target
) -> None:
    with either_front_end.wire() as wire:
        wire.send(data)
        answer = wire.answer()
        assert (answer.status, answer.error()) == (400, "400:not HTTP:request_malformed")
        assert answer.headers["server"] == "Holdfast"
        assert wire.is_closed()


def test_a_refusal_does_not_repeat_what_was_refused(target: Target) -> None:
    with target.wire() as wire:
        wire.send(request(f'[{{"channel":"<{SECRET}>","error":"x"'.encode()))
        assert SECRET.encode() not in wire.answer().body
        wire.send(request(orjson.dumps([{**HANDSHAKE, "password": SECRET}])))
        assert SECRET.encode() not in wire.answer().body
