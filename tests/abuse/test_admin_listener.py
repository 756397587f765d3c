"""The administration's listener without a token."""

from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, SocketWire, Wire, request
from tests.web.programs import admin_url, program

HELLO = orjson.dumps([HANDSHAKE])
JSON = {"Content-Type": "application/json"}
FEED = "/admin/feed"


class AdminListener(NamedTuple):
    url: str
    operator: str
    reader: str

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: Any
    ) -> tuple[int, bytes]:
        with closing(HTTPConnection(urlsplit(self.url).netloc, timeout=60)) as connection:
            connection.request(method, path, body, JSON | headers)
            response = connection.getresponse()
            return response.status, response.read()

    def send(self, token: str, *messages: object, cookie: str = "") -> tuple[dict[str, str], str]:
        """The last reply, and the cookie that came with it."""
        headers = {"Authorization": f"Bearer {token}", "Cookie": cookie, **JSON}
        with Wire(self.url) as wire:
            wire.send(request(orjson.dumps(messages), headers, method=f"POST {FEED}"))
            answer = wire.answer()
            assert answer.status == 200, answer
            cookie = answer.headers.get("set-cookie", cookie).partition(";")[0]
            return answer.messages()[-1], cookie


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminListener]:
    """One that is reached from everywhere, beside a server on loopback."""
    home = tmp_path_factory.mktemp("admin")
    flags = ["--port", "0", "--admin", "0.0.0.0:0", "--request-timeout", "500"]
    with program(*flags, home=home) as running:
        running.place()
        url = admin_url(running).replace("0.0.0.0", "127.0.0.1")
        names = ("admin-token", "reader-token")
        yield AdminListener(url, *((home / "data" / name).read_text().strip() for name in names))
        assert running.stop()[0] == 0


def test_the_operators_listener_serves_no_bayeux(admin: AdminListener) -> None:
    assert admin.ask("POST", "/cometd", HELLO)[0] == 404
    assert admin.ask("POST", "/bayeux/handshake", HELLO)[0] == 404
    assert admin.ask("GET", f"/cometd?jsonp=f&message={quote(HELLO)}")[0] == 404
    with SocketWire(admin.url) as socket:
        assert socket.upgrade.status == 404


@pytest.mark.parametrize(
    "path",
    [
        *("/chat", "/chat/", "/metrics", "/bayeux", "/static/", "/static/chat/main.js"),
        *("/static/cometd/cometd.js", "/static/js/delivery.js", "/static/index.html"),
        *("/static/welcome.js", "/static/console/../chat/main.js"),
    ],
)
def test_the_operators_listener_serves_nothing_else(admin: AdminListener, path: str) -> None:
    assert admin.ask("GET", path)[0] in (403, 404)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer " + "x" * 43}], ids=str)
def test_the_metrics_of_the_administration_need_a_token(
    admin: AdminListener, headers: dict[str, Any]
) -> None:
    status, body = admin.ask("GET", "/admin/metrics", **headers)
    assert status == 401
    assert b"holdfast_" not in body
    status, body = admin.ask("GET", "/admin/metrics", Authorization=f"Bearer {admin.reader}")
    assert status == 200
    assert b"holdfast_hand_over_seconds_bucket" in body


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer " + "x" * 43}], ids=str)
def test_the_feed_of_the_console_needs_a_token(
    admin: AdminListener, headers: dict[str, Any]
) -> None:
    shown = [{**HANDSHAKE, "ext": {"authentication": {"token": admin.operator}}}]
    for hello in (HELLO, orjson.dumps(shown)):
        status, body = admin.ask("POST", FEED, hello, **headers)
        assert status == 401
        assert b"clientId" not in body
    assert admin.ask("GET", f"{FEED}?jsonp=f&message={quote(HELLO)}", **headers)[0] in (401, 405)


def test_an_id_and_a_cookie_do_not_open_the_feed_without_a_token(admin: AdminListener) -> None:
    hello = {**HANDSHAKE, "ext": {"authentication": {"token": admin.reader}}}
    reply, cookie = admin.send(admin.reader, hello)
    connect = {
        "channel": "/meta/connect",
        "clientId": reply["clientId"],
        "connectionType": "long-polling",
    }
    assert admin.ask("POST", FEED, orjson.dumps([connect]), Cookie=cookie)[0] == 401
    assert admin.send(admin.reader, connect, cookie=cookie)[0]["successful"]


@pytest.mark.parametrize("head", [b"G", b"GET /console/ HTTP/1.1\r\nHost: localhost\r\n"])
def test_an_incomplete_request_to_the_operators_listener_times_out(
    admin: AdminListener, head: bytes
) -> None:
    with Wire(admin.url) as wire:
        wire.send(head)
        assert wire.answer().status == 408
        assert wire.is_closed()


def test_the_operators_listener_serves_the_console_and_the_probes(admin: AdminListener) -> None:
    assert admin.ask("GET", "/healthz") == (200, b"ok\n")
    assert admin.ask("GET", "/readyz") == (200, b"ready\n")
    for path in ("/console/", "/static/console/main.js", "/static/js/storage.js"):
        assert admin.ask("GET", path)[0] == 200
    assert admin.ask("GET", "/")[0] == 302
    bearer = f"Bearer {admin.operator}"
    assert admin.ask("GET", "/admin/api/v1/about", Authorization=bearer)[0] == 200
