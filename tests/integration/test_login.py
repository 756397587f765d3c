"""The example of docs/how-to/extensions.md knows users of a Flask application by cookie."""

import hashlib
import hmac
import http.client
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing
from time import time
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from docs.examples.login import COOKIE, LONGEST_S, Logins
from tests.abuse.attacker import HANDSHAKE, SocketWire
from tests.serving import Server

SECRET = "not-a-secret"
# What Flask's own signer (itsdangerous 2.2) made of `user: ada` at that second; the second cookie
# is so long that it is compressed, the third one's user has not logged in.
SIGNED_AT = 1_795_354_385
OF_ADA = "eyJ1c2VyIjoiYWRhIn0.awLvEQ.H4fYTDgp3D_W5i0HPlEl-8m-bm8"
LONG_ONE_OF_ADA = (
    ".eJyrViotTi1SslJKTElU0lHKyy9JLQbySlITFUYSVqoFAP1YWM8.awLvEQ.vO3kuOsqJ7C3RiW0A-lxv1chZEI"
)
OF_A_GUEST = "eyJjYXJ0IjpbMV19.awLvEQ.aEcuTSfWHT89EyKdDHeC4AHw4F4"


def signed(user: str, now_s: float) -> str:
    """The cookie that the application would set at this time."""

    def encoded(data: bytes) -> str:
        return urlsafe_b64encode(data).rstrip(b"=").decode()

    key = hmac.digest(SECRET.encode(), b"cookie-session", hashlib.sha1)
    text = f"{encoded(orjson.dumps({'user': user}))}.{encoded(int(now_s).to_bytes(4, 'big'))}"
    return f"{text}.{encoded(hmac.digest(key, text.encode(), hashlib.sha1))}"


def test_cookies_that_flask_signed_are_read() -> None:
    logins = Logins(SECRET.encode())
    assert signed("ada", SIGNED_AT) == OF_ADA
    assert logins.user(OF_ADA, SIGNED_AT) == "ada"
    assert logins.user(LONG_ONE_OF_ADA, SIGNED_AT + LONGEST_S) == "ada"


@pytest.mark.parametrize(
    "cookie",
    ["", ".", "..", "a.b.c", OF_A_GUEST, OF_ADA[1:], OF_ADA[:-1], "\xe4" + OF_ADA, OF_ADA + "."],
)
def test_a_cookie_with_an_invalid_signature_or_of_a_guest_names_no_user(cookie: str) -> None:
    assert Logins(SECRET.encode()).user(cookie, SIGNED_AT) is None


def test_a_cookie_that_is_too_old_or_of_another_application_names_no_user() -> None:
    assert Logins(SECRET.encode()).user(OF_ADA, SIGNED_AT + LONGEST_S + 1) is None
    assert Logins(b"another").user(OF_ADA, SIGNED_AT) is None


@pytest.fixture(scope="module", params=[True, False], ids=["fast lane", "aiohttp"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    settings = {
        "extension": ["docs.examples.login:install"],
        "trusted_proxies": ["127.0.0.1"],
        "fast_lane": request.param,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FLASK_SECRET_KEY", SECRET)
        server = Server(settings)
    yield server
    server.stop()


Headers = dict[str, str]
Reply = dict[str, Any]


def over_http(server: Server, headers: Headers, *messages: Reply) -> list[Reply]:
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc)) as connection:
        connection.request("POST", "/cometd", orjson.dumps(messages), headers)
        replies: list[Reply] = orjson.loads(connection.getresponse().read())
        return replies


def over_a_socket(server: Server, headers: Headers, *messages: Reply) -> list[Reply]:
    with SocketWire(server.url, headers) as socket:
        socket.say(*messages)
        return socket.hear()


WAYS = pytest.mark.parametrize("way", [over_http, over_a_socket])


def as_ada(*more: str) -> Headers:
    return {"Cookie": "; ".join([*more, f"{COOKIE}={signed('ada', time())}"])}


@WAYS
def test_a_client_without_a_login_is_refused(way: Any, server: Server) -> None:
    for headers in ({}, {"Cookie": f"{COOKIE}={OF_A_GUEST}"}):
        (reply,) = way(server, headers, HANDSHAKE)
        assert reply["error"] == "403::handshake_denied"
        assert reply["advice"]["reconnect"] == "none"


@WAYS
def test_a_client_gets_only_session_names_of_its_login(way: Any, server: Server) -> None:
    ada, grace = (
        {**HANDSHAKE, "ext": {"delivery": {"session": f"{name}/1"}}} for name in ("ada", "grace")
    )
    assert way(server, as_ada(), ada)[0]["successful"]
    assert way(server, as_ada(), grace)[0]["error"] == "403:not_your_name:session_name_denied"


@WAYS
def test_further_cookies_without_a_login_do_not_prevent_a_login(way: Any, server: Server) -> None:
    tossed = f"{COOKIE}={OF_A_GUEST}"
    assert way(server, as_ada(tossed, f"{COOKIE}=x"), HANDSHAKE)[0]["successful"]


@WAYS
def test_cookies_of_two_users_are_refused_and_two_of_one_user_are_accepted(
    way: Any, server: Server
) -> None:
    tossed = f"{COOKIE}={signed('eve', time())}"
    (reply,) = way(server, as_ada(tossed), HANDSHAKE)
    assert reply["error"] == "403::handshake_denied"
    same = f"{COOKIE}={signed('ada', time() - 60)}"
    assert way(server, as_ada(same), HANDSHAKE)[0]["successful"]


def test_the_address_of_a_client_is_the_one_that_the_proxy_forwards(server: Server) -> None:
    headers = {**as_ada(), "X-Forwarded-For": "1.2.3.4, 203.0.113.7"}
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc)) as connection:
        connection.request("POST", "/cometd", orjson.dumps([HANDSHAKE]), headers)
        response = connection.getresponse()
        cookie = response.headers["Set-Cookie"].partition(";")[0]
        client_id = orjson.loads(response.read())[0]["clientId"]
    browser = f"{headers['Cookie']}; {cookie}"
    question = {"channel": "/service/whoami", "clientId": client_id, "data": {}}
    for address in ("203.0.113.7", "2001:db8::7"):
        asked = {"Cookie": browser, "X-Forwarded-For": address}
        answer = over_http(server, asked, question)[0]
        assert answer["data"] == {"user": "ada", "address": address}
