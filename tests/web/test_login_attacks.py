"""Attacks on the login, each of which fails."""

import asyncio
import base64
import time
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import ClientWebSocketResponse, web

from holdfast.login import authenticator
from holdfast.login import passwords as hashing
from holdfast.login.tokens import verify
from tests.slowness import times_slower
from tests.unit.login.signing import ec_key, jwk, token
from tests.web.people import (
    Json,
    Person,
    Provider,
    ServerAndClients,
    keys,
    passwords,
    server_and_clients,
    until,
)

DENIED = "403::handshake_denied"
RIGHTS = """
[[rule]]
who = ["*"]
may = ["all"]
channels = ["/rooms/**"]
"""
SMUGGLED = {
    "two": [b"X-Remote-User: eve", b"X-Remote-User: ada"],
    "two spellings": [b"X-Remote-User: eve", b"x-remote-USER: ada"],
    "a list": [b"X-Remote-User: eve, ada"],
    "an underscore": [b"X_Remote_User: ada"],
    "a space before the colon": [b"X-Remote-User : ada"],
    "a folded line": [b"X-Other: 1", b" X-Remote-User: ada"],
    "a bare line feed": [b"X-Other: 1\nX-Remote-User: eve", b"X-Remote-User: ada"],
    "a bare carriage return": [b"X-Other: 1\rX-Remote-User: ada"],
    "a null byte": [b"X-Remote-User: ada\0"],
    "nothing": [b"X-Remote-User:"],
    "two lists of groups": [b"X-Remote-User: ada", b"X-Groups: a", b"X-Groups: admins"],
}


@pytest.mark.parametrize("fast_lane", [True, False], ids=["fast lane", "ordinary"])
async def test_a_smuggled_login_header_logs_nobody_in(tmp_path: Path, *, fast_lane: bool) -> None:
    given: Json = {
        "login_header": "X-Remote-User",
        "login_groups_header": "X-Groups",
        "trusted_proxies": ["127.0.0.1"],
        "fast_lane": fast_lane,
    }
    body = orjson.dumps(
        [{"channel": "/meta/handshake", "supportedConnectionTypes": ["long-polling"]}]
    )
    async with server_and_clients(tmp_path, **given) as home:
        place = home.url.removeprefix("http://").rstrip("/")

        async def answer(*lines: bytes) -> bytes:
            host, _, port = place.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            head = [b"POST /cometd HTTP/1.1", b"Host: " + place.encode(), *lines]
            head += [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
            writer.write(b"\r\n".join([*head, b"Connection: close", b"", body]))
            said = await reader.read()
            writer.close()
            return said

        assert b'"successful":true' in await answer(b"X-Remote-User: ada")
        answers = await asyncio.gather(*(answer(*lines) for lines in SMUGGLED.values()))
        for name, said in zip(SMUGGLED, answers, strict=True):
            assert b'"successful":true' not in said, name
            assert b":handshake_denied" in said or b" 400 " in said, name


async def test_a_session_loses_groups_that_the_proxy_no_longer_sends(tmp_path: Path) -> None:
    given: Json = {
        "login_header": "X-Remote-User",
        "login_groups_header": "X-Groups",
        "trusted_proxies": ["127.0.0.1"],
    }
    async with server_and_clients(tmp_path, **given) as home:
        ada = home.person(**{"X-Remote-User": "ada", "X-Groups": "staff, admins"})
        await ada.handshake()
        assert not await ada.is_out()
        for groups, is_out in (("admins,staff", False), ("staff", True), ("", True)):
            later = home.person(**{"X-Remote-User": "ada", "X-Groups": groups})
            later.http.cookie_jar.update_cookies({e.key: e.value for e in ada.http.cookie_jar})
            later.client_id = ada.client_id
            assert await later.is_out() is is_out, groups


async def test_a_session_is_closed_to_another_user_of_the_proxy(tmp_path: Path) -> None:
    """In the same browser, another user has logged in at the proxy, or the user has logged out."""
    given: Json = {"login_header": "X-Remote-User", "trusted_proxies": ["127.0.0.1"]}
    async with server_and_clients(tmp_path, **given) as home:
        ada = home.person(**{"X-Remote-User": "ada"})
        # In a session without acks, waiting messages could travel with any reply.
        hello = await ada.reply("/meta/handshake", supportedConnectionTypes=["long-polling"])
        ada.client_id = hello["clientId"]
        await ada.reply("/meta/subscribe", subscription="/x")

        bob = home.person(**{"X-Remote-User": "bob"})
        await bob.handshake()
        await bob.reply("/x", data="for ada")
        for headers in ({"X-Remote-User": "bob"}, {}, {"X-Remote-Users": "ada"}):
            other = home.person(**headers)
            cookies = {each.key: each.value for each in ada.http.cookie_jar}
            other.http.cookie_jar.update_cookies(cookies)
            other.client_id = ada.client_id
            for channel, more in (("/x", {"data": 1}), ("/meta/subscribe", {"subscription": "/y"})):
                [refused] = await other.ask(channel, **more)
                assert refused["error"].startswith("402")
            [refused] = await other.connect()
            assert refused["error"].startswith("402")
            assert refused["advice"]["reconnect"] == "handshake"
        assert [each.get("data") for each in await ada.connect()] == ["for ada", None]


def shows(home: ServerAndClients, owner: Person, **headers: str) -> Person:
    """A request with the session id and the browser's cookie of another client."""
    person = home.person(**headers)
    person.http.cookie_jar.update_cookies({e.key: e.value for e in owner.http.cookie_jar})
    person.client_id = owner.client_id
    return person


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("how", ["message", "header", "cookie", "password", "nobody"])
async def test_a_users_cookie_with_anothers_credentials_is_refused(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = keys(
        tmp_path,
        login_passwords=passwords(tmp_path),
        login_cookie="login",
        login_anonymous=how == "nobody",
        login_leeway=0,
    )
    ways: dict[str, Json] = {
        "header": {"Authorization": f"Bearer {token()}"},
        "cookie": {"Cookie": f"login={token()}"},
        "password": {"Authorization": basic("ada", "correct horse")},
    }
    async with server_and_clients(tmp_path, **given) as home:
        ada = home.person(**ways.get(how, {}))
        await ada.handshake(**({"token": token()} if how == "message" else {}))
        eves, old = token(sub="eve"), token(exp=5)
        wrong: list[Json] = [
            {"Authorization": f"Bearer {eves}"},
            {"Authorization": f"Bearer {old}"},
            {"Authorization": f"Bearer {token(b'k' * 40)}"},
            {"Authorization": basic("eve", "x")},
            {"Cookie": f"login={eves}"},
            {"Cookie": f"login={token()}; login={eves}"},
            {"Cookie": f"login={old}"},
            {"Cookie": f"login={token()}", "Authorization": basic("eve", "x")},
        ]
        cookies = "; ".join(f"{e.key}={e.value}" for e in ada.http.cookie_jar)
        for headers in wrong:
            if "Cookie" in headers:
                headers["Cookie"] += f"; {cookies}"
            [refused] = await shows(home, ada, **headers).connect()
            assert refused["error"].startswith("402"), headers
            assert refused["advice"]["reconnect"] == "handshake"
        socket = await shows(home, ada, **wrong[0]).http.ws_connect("/cometd")
        refused = await SocketTalk(socket, ada.client_id).until_refused()
        assert refused["error"].startswith("402")
        assert not await ada.is_out()
        assert not await shows(home, ada).is_out()
        for name, value in (("Authorization", "Bearer "), ("Cookie", f"{cookies}; login=")):
            own = shows(home, ada, **{name: value + token(jti=name)})
            assert await own.is_out() is (how == "nobody")
    assert "failed: another subject than the session's" in caplog.text
    assert "failed: an expired token" in caplog.text
    for secret in (*eves.split("."), *old.split("."), "correct horse"):
        assert secret not in caplog.text


async def test_a_revoked_token_on_a_living_session_is_refused(tmp_path: Path) -> None:
    """The login of the session is by another token, which is still valid."""
    async with server_and_clients(tmp_path, rights=RIGHTS, **keys(tmp_path)) as home:
        ada = home.person()
        await ada.handshake(token=token(jti="1"))
        second = shows(home, ada, Authorization=f"Bearer {token(jti='2')}")
        third = shows(home, ada, Authorization=f"Bearer {token(jti='3')}")
        assert not await second.is_out()
        assert not await third.is_out()
        (home.home / "rights.toml").write_text(RIGHTS + "[revoked]\ntokens=['2']")
        await until(second.is_out)
        assert not await third.is_out()
        assert not await ada.is_out()


async def test_credentials_that_requests_repeat_are_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = keys(tmp_path, login_passwords=passwords(tmp_path))
    checked: list[str] = []

    def count(name: str, check: Any) -> Any:
        def counted(*args: Any) -> Any:
            checked.append(name)
            return check(*args)

        return counted

    monkeypatch.setattr(authenticator, "verify", count("token", verify))
    monkeypatch.setattr(hashing, "verify", count("password", hashing.verify))
    async with server_and_clients(tmp_path, **given) as home:
        by_password = home.person(Authorization=basic("ada", "correct horse"))
        by_token = home.person(Authorization=f"Bearer {token()}")
        for person in (by_password, by_token):
            await person.handshake()
        renewed = shows(home, by_token, Authorization=f"Bearer {token(jti='2')}")
        for _ in range(5):
            for person in (by_password, by_token, renewed):
                assert not await person.is_out()
    assert checked == ["password", "token", "token"]


async def test_redirects_of_a_provider_are_not_followed(
    tmp_path: Path, aiohttp_server: Any
) -> None:
    """A redirect could lead to other keys, or to services inside."""
    other = Provider()
    elsewhere = await other.run(aiohttp_server)
    other.keys = [jwk(ec_key(), kid="1")]

    async def redirect(request: web.Request) -> web.Response:
        raise web.HTTPFound(f"{elsewhere}{request.path}")

    app = web.Application()
    app.router.add_get("/{path:.*}", redirect)
    front = await aiohttp_server(app)
    url = f"http://127.0.0.1:{front.port}"
    mine = token(ec_key(), "ES256", kid="1", iss=url)
    for number, given in enumerate(({"login_issuer": url}, {"login_keys": f"{url}/keys"})):
        (tmp_path / str(number)).mkdir()
        async with server_and_clients(tmp_path / str(number), **given) as home:
            assert (await home.person().handshake(token=mine))["error"] == DENIED
    assert other.fetches == 0


NONSENSE = {
    "an object": b"{}",
    "no JSON": b"[",
    "too much": b"x" * (1024 * 1024 + 1),
    "a secret": b'{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}',
}


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
async def test_unusable_keys_of_a_provider_log_nobody_in(
    tmp_path: Path, aiohttp_server: Any, body: bytes
) -> None:
    async def nonsense(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_get("/{path:.*}", nonsense)
    front = await aiohttp_server(app)
    async with server_and_clients(
        tmp_path, login_keys=f"http://127.0.0.1:{front.port}/keys"
    ) as home:
        reply = await home.person().handshake(token=token(ec_key(), "ES256"))
        assert reply["error"] == DENIED


class SocketTalk:
    """A session over a WebSocket."""

    def __init__(self, socket: ClientWebSocketResponse, client_id: str = "") -> None:
        self._socket = socket
        self._client_id = client_id
        self.heard: list[object] = []

    async def begin(self, text: str) -> None:
        reply = await self.ask(
            "/meta/handshake",
            supportedConnectionTypes=["websocket"],
            ext={"authentication": {"token": text}},
        )
        self._client_id = reply["clientId"]
        assert (await self.ask("/meta/subscribe", subscription="/rooms/1"))["successful"]

    async def until_refused(self) -> Json:
        """Connect again and again, as clients do, until a connect is refused."""
        while True:
            reply = await self.ask("/meta/connect", connectionType="websocket")
            if not reply["successful"]:
                return reply

    async def ask(self, channel: str, **fields: Any) -> Json:
        message = {"channel": channel, "clientId": self._client_id, **fields}
        await self._socket.send_str(orjson.dumps([message]).decode())
        async with asyncio.timeout(60):
            while True:
                for each in orjson.loads((await self._socket.receive()).data):
                    self.heard.append(each.get("data"))
                    if each["channel"] == channel and "successful" in each:
                        return dict(each)


async def test_the_end_of_a_login_closes_a_session_over_a_socket(tmp_path: Path) -> None:
    given = keys(tmp_path, login_leeway=0)
    async with server_and_clients(tmp_path, rights=RIGHTS, **given) as home:
        writer = home.person()
        await writer.handshake(token=token(sub="bob"))
        talks = {}
        valid_s = 3 * round(times_slower(most=4.0))
        ends: dict[str, Json] = {
            "expired": {"exp": int(time.time()) + valid_s},
            "revoked": {"jti": "9"},
        }
        for name, claims in ends.items():
            talks[name] = SocketTalk(await home.person().http.ws_connect("/cometd"))
            await talks[name].begin(token(**claims))
        (home.home / "rights.toml").write_text(RIGHTS + "[revoked]\ntokens=['9']")

        for name, talk in talks.items():
            last = await talk.until_refused()
            assert last["error"].startswith("402"), name
            assert last["advice"]["reconnect"] == "handshake", name
            await writer.reply("/rooms/1", data="secret")
            refused = await talk.ask("/rooms/1", data="mine")
            assert refused["error"].startswith("402"), name
            assert "secret" not in talk.heard, name


async def test_the_log_has_the_cause_of_a_failed_login_but_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = keys(tmp_path, login_passwords=passwords(tmp_path), login_rights_claim="may")
    secrets = [token(exp=5), token(b"k" * 40), token(may=["all"]), "not-a-token"]
    basic = base64.b64encode(b"ada:battery staple").decode()
    async with server_and_clients(tmp_path, **given) as home:
        for each in secrets:
            await home.person().handshake(token=each)
        await home.person().handshake(user="ada", password="battery staple")
        await home.person(Authorization=f"Basic {basic}").handshake()

    assert "a login from 127.0.0.1 failed: an expired token" in caplog.text
    parts = [part for each in secrets for part in each.split(".")]
    for secret in (*parts, "battery", basic):
        assert secret not in caplog.text
