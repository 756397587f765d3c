"""A foreign page whose host name was made to lead to this machine (DNS rebinding)."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, Answer, SocketWire, Wire, request
from tests.abuse.conftest import FRONT_ENDS
from tests.web.programs import admin_url, program

HELLO = orjson.dumps([HANDSHAKE])
EVIL = "rebound.example"


class ServerByName:
    """A server, and the requests of a browser that reached it by some host name."""

    def __init__(self, url: str, admin: str, token: str) -> None:
        self.url, self.admin = url, admin
        self.bearer: dict[str, Any] = {"Authorization": f"Bearer {token}"}

    def ask(
        self,
        host: str,
        line: str = "POST /cometd",
        body: bytes = HELLO,
        *,
        at: str = "",
        **headers: Any,
    ) -> Answer:
        with Wire(at or self.url) as wire:
            wire.send(request(body, {"Host": host, **headers}, method=line))
            return wire.answer()


@pytest.fixture(scope="module", params=FRONT_ENDS, ids=["fast lane", "ordinary front end"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerByName]:
    home = tmp_path_factory.mktemp("hosts")
    flags = [
        *("--port", "0", "--admin", "127.0.0.1:0", "--host-name", "push.example.org"),
        *("--host-name", "*.club.example", "--allow-origin", "https://friend.example"),
        "--fast-lane" if request.param else "--no-fast-lane",
    ]
    with program(*flags, home=home) as running:
        url = running.place().removesuffix("/cometd")
        token = (home / "data/admin-token").read_text().strip()
        yield ServerByName(url, admin_url(running), token)
        assert running.stop()[0] == 0
        assert f"a request for the host {EVIL} was refused" in running.errors()


def test_a_page_with_a_foreign_name_gets_no_session(server: ServerByName) -> None:
    answer = server.ask(EVIL, Origin=f"http://{EVIL}")
    assert (answer.status, answer.error()) == (421, "421:host_name:host_unknown")
    assert "set-cookie" not in answer.headers
    script = server.ask(f"{EVIL}:8080", f"GET /cometd?jsonp=f&message={quote(HELLO)}", b"")
    assert script.status == 421
    with SocketWire(server.url, {"Host": EVIL, "Origin": f"http://{EVIL}"}) as socket:
        assert socket.upgrade.status == 421
    preflight = server.ask(EVIL, "OPTIONS /cometd", b"", Origin=f"http://{EVIL}")
    assert preflight.status == 421


def test_a_page_with_a_foreign_name_gets_421_everywhere(server: ServerByName) -> None:
    for path in ("/", "/chat/", "/metrics", "/healthz", "/readyz", "/static/welcome.js", "/none"):
        answer = server.ask(EVIL, f"GET {path}", b"")
        assert answer.status == 421
        assert b"--host-name" in answer.body


def test_a_page_with_a_foreign_name_gets_421_from_the_administration(server: ServerByName) -> None:
    for line in ("GET /admin/api/v1/about", "GET /console/", "GET /readyz"):
        assert server.ask(EVIL, line, b"", at=server.admin, **server.bearer).status == 421
    refused = server.ask(EVIL, "POST /admin/feed", at=server.admin, **server.bearer)
    assert refused.status == 421
    told = orjson.loads(refused.body)["error"]["message"]
    assert "its operator must list it with --host-name NAME" in told
    about = "GET /admin/api/v1/about"
    assert server.ask("localhost:1", about, b"", at=server.admin, **server.bearer).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:1", "192.0.2.7:8080", "[::1]", "[2001:db8::1]:80"),
        *("localhost", "LOCALHOST:8080", "localhost.", "app.localhost:3000"),
        *("push.example.org", "Push.Example.Org:443", "push.example.org."),
        *("127.0.0.1.", "joe.club.example", "a.b.club.example", "friend.example"),
    ],
)
def test_addresses_and_own_names_are_served(server: ServerByName, host: str) -> None:
    assert server.ask(host, Origin=f"http://{host}").messages()[0]["successful"]


@pytest.mark.parametrize(
    "host",
    [
        *("", "example.org", "club.example", "xclub.example", "evil.push.example.org"),
        *("localhost.evil.example", "127.0.0.1.evil.example", "0x7f.1", "2130706433"),
        *(
            "[::1].evil.example",
            "[evil.example]",
            "localhost:evil",
            "localhost:80:80",
            "[::1",
            "x" * 4000,
        ),
    ],
)
def test_hosts_that_only_resemble_own_names_are_refused(server: ServerByName, host: str) -> None:
    assert server.ask(host).status == 421


def test_each_request_of_a_connection_is_checked(server: ServerByName) -> None:
    with Wire(server.url) as wire:
        for host, status in [("localhost", 200), (EVIL, 421), ("localhost", 200), (EVIL, 421)] * 2:
            wire.send(request(HELLO, {"Host": host}))
            assert wire.answer().status == status


def test_the_server_does_not_wait_for_the_rest_of_a_refused_body(server: ServerByName) -> None:
    with Wire(server.url) as wire:
        wire.send(request(b"", {"Host": EVIL, "Content-Length": "100000"}))
        assert wire.answer().status == 421
        assert wire.is_closed()
