"""The examples of docs/how-to/login.md do what the page says."""

import asyncio
import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from docs.examples import openid, proxy, tokens
from holdfast.compose import serving
from tests.slowness import times_slower
from tests.unit.login.signing import SECRET, jwk, rsa_key, token
from tests.web.people import Json, Provider, ServerAndClients, server_and_clients, settings, until

DENIED = "403::handshake_denied"
CLIENT, CLIENT_SECRET = "orders", "not-a-secret"


async def test_an_application_gives_its_pages_tokens(tmp_path: Path, aiohttp_client: Any) -> None:
    (tmp_path / "key").write_bytes(SECRET)
    given = {"login_keys": str(tmp_path / "key"), "login_audience": ["push"]}
    async with server_and_clients(tmp_path, **given) as home:
        page = await aiohttp_client(tokens.application(SECRET), cookies={"session": "7f3a"})
        stranger = await aiohttp_client(tokens.application(SECRET))
        assert (await stranger.post("/token")).status == 401

        async def new_token() -> str:
            return str((await (await page.post("/token")).json())["token"])

        ada = home.person()
        reply = await ada.handshake("ada/1", token=await new_token())

        told = reply["ext"]["authentication"]
        assert told["subject"] == "ada"
        assert abs(told["expires"] / 1000 - time.time() - tokens.VALID_S - 30) < 5
        newer = {"authentication": {"token": await new_token()}}
        assert (await ada.reply("/service/login", data={}, ext=newer))["successful"]
        # A token for another application.
        assert (await home.person().handshake(token=token(aud="shop")))["error"] == DENIED


class Keycloak(Provider):
    """A provider with services of its own, and claims as Keycloak has them."""

    def __init__(self, valid_s: int) -> None:
        super().__init__()
        self.valid_s = valid_s
        self.issued = 0
        self.keys = [jwk(rsa_key(), kid="1", use="sig", alg="RS256")]

    async def run(self, home: Any) -> str:
        app = web.Application()
        app.router.add_post("/token", self._token)
        endpoint = await home(app)
        url = await super().run(home)
        self.document["token_endpoint"] = f"http://127.0.0.1:{endpoint.port}/token"
        return url

    async def _token(self, request: web.Request) -> web.Response:
        asked = await request.post()
        right = aiohttp.encode_basic_auth(CLIENT, CLIENT_SECRET)
        given = request.headers["Authorization"]
        if asked["grant_type"] != "client_credentials" or given != right:
            return web.json_response({"error": "unauthorized_client"}, status=401)
        self.issued += 1
        text = token(
            rsa_key(),
            "RS256",
            kid="1",
            iss=self.url,
            aud=["push", "account"],
            sub="5f9b62a2-1d7f-4bd9-ae0a-0f1bb8d3a6a7",
            preferred_username=f"service-account-{CLIENT}",
            realm_access={"roles": ["listener"]},
            exp=int(time.time()) + self.valid_s,
        )
        return web.json_response({"access_token": text, "token_type": "Bearer"})


OF_KEYCLOAK: Json = {
    "login_audience": ["push"],
    "login_subject_claim": "preferred_username",
    "login_groups_claim": "realm_access.roles",
    "login_leeway": 0,
}
OF_LISTENERS = """
[[rule]]
who = ["@listener"]
may = ["subscribe", "create"]
channels = ["/orders/**"]
"""


async def test_a_service_logs_in_at_its_provider_and_renews_its_login(
    tmp_path: Path,
    aiohttp_server: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    slower = round(times_slower(most=4.0))
    provider = Keycloak(valid_s=3 * slower)
    issuer = await provider.run(aiohttp_server)
    monkeypatch.setenv("CLIENT_SECRET", CLIENT_SECRET)
    given = OF_KEYCLOAK | {
        "login_issuer": issuer,
        "rights": OF_LISTENERS,
        "login_warning": 2000 * slower,
    }
    async with server_and_clients(tmp_path, **given) as home:
        listening = asyncio.ensure_future(openid.main(issuer, CLIENT, home.url, "/orders/new"))
        try:
            # It lives longer than the first two of its tokens.
            async def has_renewed() -> bool:
                return provider.issued >= 4 or listening.done()

            await until(has_renewed)
            assert not listening.done()
        finally:
            listening.cancel()
    assert capsys.readouterr().out == f"listening as service-account-{CLIENT}\n"


async def test_a_service_without_the_secret_or_the_role_is_refused(
    tmp_path: Path, aiohttp_server: Any
) -> None:
    provider = Keycloak(valid_s=60)
    issuer = await provider.run(aiohttp_server)
    jar = aiohttp.CookieJar(unsafe=True)
    async with (
        server_and_clients(
            tmp_path, **OF_KEYCLOAK, login_issuer=issuer, rights=OF_LISTENERS
        ) as home,
        aiohttp.ClientSession(cookie_jar=jar) as http,
    ):
        with pytest.raises(aiohttp.ClientResponseError):
            await openid.access_token(http, issuer, CLIENT, "a guess")
        listener = openid.Listener(http, home.url)
        with pytest.raises(openid.Refused, match=DENIED):
            await listener.log_in(token())
        await listener.log_in(await openid.access_token(http, issuer, CLIENT, CLIENT_SECRET))
        await listener.subscribe("/orders/new")
        with pytest.raises(openid.Refused, match="denied_by_rights"):
            await listener.subscribe("/invoices")


async def test_only_the_proxy_can_name_its_users(tmp_path: Path, aiohttp_server: Any) -> None:
    socket = str(tmp_path / "socket")
    behind = settings(
        tmp_path,
        unix=Path(socket),
        trusted_proxies=["unix"],
        login_header=proxy.USER,
        login_groups_header=proxy.GROUPS,
    )
    async with serving(behind):
        front = await aiohttp_server(proxy.application(socket))
        home = ServerAndClients(f"http://127.0.0.1:{front.port}", tmp_path)
        ada = home.person(Authorization=aiohttp.encode_basic_auth("ada", "correct horse"))
        reply = await ada.handshake("ada/1")
        assert reply["ext"]["authentication"] == {"subject": "ada", "method": "header"}
        assert (await ada.reply("/meta/subscribe", subscription="/x"))["successful"]

        # What a client says of itself does not get through.
        spoofing = {proxy.USER: "ada", "x-remote-user": "ada", proxy.GROUPS: "admins"}
        of_bob = aiohttp.encode_basic_auth("bob", "battery staple")
        bob = home.person(Authorization=of_bob, **spoofing)
        reply = await bob.handshake()
        assert reply["ext"]["authentication"]["subject"] == "bob"
        guessed = {"Authorization": aiohttp.encode_basic_auth("ada", "a guess")}
        for headers in ({}, spoofing, guessed):
            stranger = home.person(**headers)
            async with stranger.http.post("/cometd", json=[]) as response:
                assert response.status == 401
        for person in home.people:
            await person.http.close()
