"""What eavesdroppers and other hosts of the domain cannot do to clients over TLS."""

import re
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from tests.abuse import attacker
from tests.abuse.attacker import CLOSE, HANDSHAKE, Answer, SocketWire, Wire
from tests.abuse.target import Target
from tests.clients.node_client import require
from tests.serving import Server, Servers, Settings

A_YEAR = "max-age=31536000"
HSTS = "strict-transport-security"
SECURE_NAME, PLAIN_NAME = "__Host-BAYEUX_BROWSER", "BAYEUX_BROWSER"

Serve = Callable[..., Server]


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings that turn TLS on."""
    openssl = shutil.which("openssl")
    require(openssl, "openssl")
    home = tmp_path_factory.mktemp("tls")
    cert, key = home / "cert.pem", home / "key.pem"
    command = f"{openssl} req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    command += " -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        [*command.split(), "-keyout", key, "-out", cert], check=True, capture_output=True
    )
    return {"tls_cert": str(cert), "tls_key": str(key)}


@pytest.fixture(params=[True, False], ids=["fast lane", "ordinary front end"])
def serve(servers: Servers, request: pytest.FixtureRequest) -> Serve:
    def with_settings(**settings: Any) -> Server:
        return servers.with_settings({"fast_lane": request.param, **settings})

    return with_settings


def request(body: bytes, method: str = "POST /cometd", **headers: str) -> bytes:
    """To the server by its address."""
    return attacker.request(body, {"Host": "127.0.0.1", **headers}, method=method)


def ask(server: Server, data: bytes) -> Answer:
    with Wire(server.url) as wire:
        wire.send(data)
        return wire.answer()


def handshaken(server: Server, **headers: str) -> Answer:
    answer = ask(server, request(orjson.dumps([HANDSHAKE]), **headers))
    assert answer.messages()[0]["successful"]
    return answer


def get(path: str) -> bytes:
    return request(b"", f"GET {path}")


def test_over_tls_no_other_host_can_set_the_cookie(serve: Serve, tls: Settings) -> None:
    name, _, rest = handshaken(serve(**tls)).headers["set-cookie"].partition("=")
    assert name == SECURE_NAME
    assert rest.split("; ")[1:] == ["Path=/", "Secure", "HttpOnly"]


def test_over_tls_cookies_set_by_other_hosts_are_ignored(serve: Serve, tls: Settings) -> None:
    server = serve(**tls)
    tossed = "; ".join(f"{PLAIN_NAME}=tossed{number}" for number in range(100))
    answer = handshaken(server, Cookie=tossed)
    own = answer.headers["set-cookie"].partition(";")[0]
    publish = {"channel": "/a", "data": 1, "clientId": answer.messages()[0]["clientId"]}
    for cookies, error in (
        (f"{tossed}; {own}", ""),
        (f"\N{NO-BREAK SPACE}{SECURE_NAME}=forged; {own}", ""),
        (tossed, "402:send the cookie:cookie_missing"),
    ):
        sent = ask(server, request(orjson.dumps([publish]), Cookie=cookies))
        assert sent.error() == error


def test_over_tls_a_socket_is_given_the_same_cookie(serve: Serve, tls: Settings) -> None:
    with SocketWire(serve(**tls).url, {"Cookie": f"{PLAIN_NAME}=tossed"}) as socket:
        assert socket.upgrade.status == 101
        assert socket.cookie().startswith(f"{SECURE_NAME}=")
        assert socket.upgrade.headers[HSTS] == A_YEAR
        socket.send_frame(b"", CLOSE)


ANSWERS = {
    "Bayeux": request(orjson.dumps([HANDSHAKE])),
    "a refusal": request(b"{"),
    "a foreign page": request(b"[]", Origin="https://evil.test"),
    "a request that is no HTTP": b"what is this\r\n\r\n",
    "a preflight": request(b"", "OPTIONS /cometd", Origin="https://evil.test"),
    "a page": get("/"),
    "a file": get("/static/js/"),
    "a probe": get("/healthz"),
    "a history": get("/streams/kept/a"),
    "events": get("/events?channel=/kept/a"),
    "a ticket": request(b"", "POST /streams/tickets?channel=/kept/a"),
    "nothing": get("/nothing"),
}


@pytest.mark.parametrize("asked", ANSWERS.values(), ids=ANSWERS)
def test_over_tls_every_response_has_hsts(asked: bytes, serve: Serve, tls: Settings) -> None:
    assert ask(serve(**tls), asked).headers[HSTS] == A_YEAR


def test_over_tls_a_reader_hears_all_and_one_that_reads_nothing_is_disconnected(
    serve: Serve, tls: Settings
) -> None:
    server = serve(**tls, channels={"/kept/**": {"history": 10_000}}, journal=False)
    target = Target(server)
    with Wire(server.url) as reader, Wire(server.url, receive_buffer=4096) as mute:
        for each in reader, mute:
            each.send(get("/events?channel=/kept/tls"))
            assert b" 200 " in each.read_line()
        heard = bytearray()
        for number in range(200):
            data = [
                {"channel": "/kept/tls", "data": f"{number}.{part}" + "x" * 10_000}
                for part in range(5)
            ]
            assert ask(server, request(orjson.dumps(data), "POST /publish")).status == 200
            while b'"%d.4x' % number not in heard[-12_000:]:
                heard += reader.read(1) + reader.read(len(reader._read))
        said = re.findall(rb'"data":"(\d+)\.(\d)x', heard)
        assert [(int(first), int(second)) for first, second in said] == [
            (number, part) for number in range(200) for part in range(5)
        ]
        assert mute.is_closed()
    assert target.growth_mib() < 40


@pytest.mark.parametrize("asked", ANSWERS.values(), ids=ANSWERS)
def test_without_tls_no_response_has_hsts(asked: bytes, serve: Serve) -> None:
    assert HSTS not in ask(serve(), asked).headers


def test_with_a_setting_for_a_proxy_that_terminates_tls_cookies_are_secure(serve: Serve) -> None:
    answer = handshaken(serve(browser_cookie_secure=True))
    assert answer.headers["set-cookie"].startswith(f"{SECURE_NAME}=")
    assert answer.headers[HSTS] == A_YEAR


def test_a_setting_says_how_long_hsts_holds(serve: Serve, tls: Settings) -> None:
    for server in (serve(**tls, hsts=0), serve(hsts=0)):
        assert handshaken(server).headers[HSTS] == "max-age=0"
