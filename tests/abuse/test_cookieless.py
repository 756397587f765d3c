"""Programs whose sockets send no cookie: a client id is enough, but only for such programs."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import orjson
import pytest

from tests.abuse.attacker import HANDSHAKE, SocketWire, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target

UNKNOWN = "402::session_unknown"
NO_COOKIE = "402:send the cookie:cookie_missing"
OWN_PAGE = "Host: a\r\nReferer: http://a/page.html"


@pytest.fixture(params=[True, False], ids=["fast lane", "ordinary front end"])
def either_front_end(target_with: MakeTarget, request: pytest.FixtureRequest) -> Target:
    """A server with callback-polling, which might reach programs' sessions, too."""
    transports = ["websocket", "long-polling", "callback-polling"]
    return target_with(fast_lane=request.param, transports=transports)


@dataclass
class Program:
    """A session over a socket without a cookie, and the cookie that the server gave it."""

    target: Target
    socket: SocketWire
    client_id: str
    cookie: str

    def connect_message(self, **fields: Any) -> dict[str, Any]:
        fields = {"connectionType": "websocket", **fields}
        return {"channel": "/meta/connect", "clientId": self.client_id, **fields}

    def asked_over_http(self, headers: Mapping[str, str]) -> dict[str, Any]:
        """The answer to a connect of this session."""
        message = self.connect_message(connectionType="long-polling", advice={"timeout": 0})
        with self.target.wire() as wire:
            wire.send(request(orjson.dumps([message]), headers))
            return wire.answer().messages()[-1]

    def asked_over_a_socket(self, headers: Mapping[str, str]) -> dict[str, Any]:
        with SocketWire(self.target.url, headers) as socket:
            socket.say(self.connect_message(advice={"timeout": 0}))
            return socket.hear()[-1]


@pytest.fixture
def program(either_front_end: Target) -> Iterator[Program]:
    with either_front_end.socket() as socket:
        socket.say(HANDSHAKE)
        client_id = socket.hear()[0]["clientId"]
        program = Program(either_front_end, socket, client_id, socket.cookie())
        socket.say(program.connect_message())
        assert socket.hear()[-1]["successful"]
        yield program


def test_a_program_without_cookies_continues_over_its_next_socket(program: Program) -> None:
    program.socket.close()
    for _ in range(3):
        assert program.asked_over_a_socket({})["successful"]


ANOTHER = "BAYEUX_BROWSER=0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": ANOTHER},
        {"Cookie": "BAYEUX_BROWSER="},
        {"Cookie": "theme=dark"},
        {"Cookie": ""},
        {"Origin": "http://holdfast.localhost"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Referer": "http://holdfast.localhost/"},
    ],
)
def test_pages_and_clients_with_cookies_cannot_use_the_session_of_a_program(
    program: Program, headers: dict[str, str]
) -> None:
    own_page = {"Host": "holdfast.localhost", **headers}
    assert program.asked_over_a_socket(own_page)["error"] == UNKNOWN
    unknown = UNKNOWN if headers.get("Cookie") == ANOTHER else NO_COOKIE
    assert program.asked_over_http(headers)["error"] == unknown
    assert program.asked_over_a_socket({})["successful"]


def test_requests_over_http_cannot_use_the_session_of_a_program(program: Program) -> None:
    assert program.asked_over_http({})["error"] == NO_COOKIE
    message = orjson.dumps([program.connect_message(connectionType="callback-polling")]).decode()
    with program.target.wire() as wire:
        wire.send(f"GET /cometd?message={quote(message)} HTTP/1.1\r\n{OWN_PAGE}\r\n\r\n".encode())
        assert NO_COOKIE.encode() in wire.answer().body


@pytest.mark.parametrize("way", [Program.asked_over_http, Program.asked_over_a_socket])
def test_a_program_that_has_sent_its_cookie_needs_it_from_then_on(
    program: Program, way: Callable[[Program, Mapping[str, str]], dict[str, Any]]
) -> None:
    assert way(program, {"Cookie": program.cookie})["successful"]
    assert program.asked_over_a_socket({})["error"] == UNKNOWN
    assert way(program, {"Cookie": program.cookie})["successful"]


def test_a_foreign_page_that_learned_an_id_does_not_even_get_a_socket(program: Program) -> None:
    with program.target.socket(Origin="http://elsewhere.example") as socket:
        assert socket.upgrade.status == 403


def test_a_session_that_a_page_made_over_its_socket_is_not_a_programs(
    either_front_end: Target,
) -> None:
    with either_front_end.socket(Origin=either_front_end.url) as socket:
        socket.say(HANDSHAKE)
        client_id = socket.hear()[0]["clientId"]
        page = Program(either_front_end, socket, client_id, socket.cookie())
        assert page.asked_over_a_socket({})["error"] == UNKNOWN
        assert page.asked_over_http({})["error"] == NO_COOKIE
        assert page.asked_over_a_socket({"Cookie": page.cookie})["successful"]


def posted(headers: Mapping[str, str]) -> bytes:
    return request(orjson.dumps([HANDSHAKE]), headers)


def loaded_as_script() -> bytes:
    message = quote(orjson.dumps([HANDSHAKE]).decode())
    return f"GET /cometd?message={message} HTTP/1.1\r\n{OWN_PAGE}\r\n\r\n".encode()


def client_of(target: Target, handshake: bytes) -> str:
    with target.wire() as wire:
        wire.send(handshake)
        client_id = re.search(rb'"clientId":"([\w-]+)"', wire.answer().body)
        assert client_id is not None
        return client_id[1].decode()


def errors_of_sockets(target: Target, client_id: str) -> list[str | None]:
    """The errors that two sockets without a cookie get, one after the other."""
    connect = {"channel": "/meta/connect", "clientId": client_id, "connectionType": "websocket"}
    errors = []
    for _ in range(2):
        with target.socket() as socket:
            socket.say({**connect, "advice": {"timeout": 0}})
            errors.append(socket.hear()[-1].get("error"))
    return errors


@pytest.mark.parametrize(
    "handshake", [posted({"Origin": "http://holdfast.localhost"}), loaded_as_script()]
)
def test_a_session_that_a_page_made_over_http_is_not_a_programs(
    either_front_end: Target, handshake: bytes
) -> None:
    client_id = client_of(either_front_end, handshake)
    # One socket may join each handshake without a cookie, see the threat model.
    assert errors_of_sockets(either_front_end, client_id) == [None, UNKNOWN]


def test_a_session_that_a_program_made_over_http_continues_over_sockets(
    either_front_end: Target,
) -> None:
    client_id = client_of(either_front_end, posted({}))
    assert errors_of_sockets(either_front_end, client_id) == [None, None]
