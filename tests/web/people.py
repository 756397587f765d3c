"""A server with a login, its clients, and an identity provider."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from holdfast.compose import serving
from holdfast.login.passwords import PasswordFile, User, hashed
from holdfast.settings import Settings
from tests.abuse.attacker import BUSY
from tests.unit.login.signing import SECRET

Json = dict[str, Any]


class Person:
    """A client with a cookie jar of its own."""

    def __init__(self, url: str, secure: ssl.SSLContext | None = None, /, **headers: str) -> None:
        self.http = aiohttp.ClientSession(
            url,
            cookie_jar=aiohttp.CookieJar(unsafe=True),
            connector=aiohttp.TCPConnector(ssl=True if secure is None else secure),
            headers=headers,
        )
        self.client_id = ""
        # What it asks for in the handshake, and its reply channel if it asked for one.
        self.wants: Json = {}
        self.ret = ""

    async def ask(self, channel: str, **fields: Any) -> list[Json]:
        message = {"channel": channel, "clientId": self.client_id, **fields}
        async with self.http.post("/cometd", json=[message]) as response:
            assert response.status == 200
            messages: list[Json] = await response.json()
            return messages

    async def reply(self, channel: str, **fields: Any) -> Json:
        return next(
            each for each in await self.ask(channel, **fields) if each["channel"] == channel
        )

    async def handshake(self, session: str | None = None, **authentication: Any) -> Json:
        ext: Json = {"ack": True, "delivery": {"session": session} if session else True}
        ext |= self.wants
        if authentication:
            ext["authentication"] = authentication
        wanted: Json = {"supportedConnectionTypes": ["long-polling"], "ext": ext}
        reply = await self.reply("/meta/handshake", **wanted)
        # While its event loop lags, as it may when it starts here, a server refuses handshakes.
        while reply.get("error") == BUSY:
            await asyncio.sleep(0.1)
            reply = await self.reply("/meta/handshake", **wanted)
        self.client_id = reply.get("clientId", "")
        self.ret = reply.get("ext", {}).get("ret", "")
        return reply

    async def connect(self, timeout_ms: int = 0, **ext: Any) -> list[Json]:
        return await self.ask(
            "/meta/connect",
            connectionType="long-polling",
            advice={"timeout": timeout_ms},
            **({"ext": ext} if ext else {}),
        )

    async def is_out(self) -> bool:
        return not (await self.connect())[-1]["successful"]


def passwords(home: Path) -> Path:
    PasswordFile(home / "passwords").put(User("ada", hashed("correct horse"), ("staff",)))
    return home / "passwords"


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Ask until the answer is true."""
    for _ in range(600):
        if await is_so():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it never was")


class ServerAndClients:
    """A server and its clients."""

    def __init__(self, url: str, home: Path) -> None:
        self.url, self.home = url, home
        self.people: list[Person] = []

    def person(self, secure: ssl.SSLContext | None = None, /, **headers: str) -> Person:
        person = Person(self.url, secure, **headers)
        self.people.append(person)
        return person


def settings(home: Path, **more: Any) -> Settings:
    given: Json = {"port": 0, "data": home / "data", "journal": False, **more}
    return Settings(**given)


@asynccontextmanager
async def server_and_clients(home: Path, **given: Any) -> AsyncIterator[ServerAndClients]:
    """A server whose clients log in with tokens, unless it is told otherwise."""
    if not any(name.startswith("login_") for name in given):
        (home / "key").write_bytes(SECRET)
        given |= {"login_keys": str(home / "key"), "login_leeway": 0}
    if "rights" in given:
        (home / "rights.toml").write_text(given["rights"])
        given["rights"] = home / "rights.toml"
    async with serving(settings(home, **given)) as url:
        made = ServerAndClients(url, home)
        try:
            yield made
        finally:
            for person in made.people:
                await person.http.close()


def keys(home: Path, **more: Any) -> Json:
    """Settings for tokens, and further ones for the login."""
    (home / "key").write_bytes(SECRET)
    return {"login_keys": str(home / "key"), **more}


class Provider:
    """An identity provider that publishes its keys."""

    def __init__(self) -> None:
        self.keys: list[Json] = []
        self.fetches = 0
        self.delay_s = 0.0
        self.document: Json = {}
        self.url = ""

    async def run(self, home: Any) -> str:
        app = web.Application()
        app.router.add_get("/keys", self._keys)
        app.router.add_get("/.well-known/openid-configuration", self._discover)
        server = await home(app)
        self.url = f"http://127.0.0.1:{server.port}"
        self.document = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return self.url

    async def _keys(self, _: web.Request) -> web.Response:
        self.fetches += 1
        await asyncio.sleep(self.delay_s)
        return web.json_response({"keys": self.keys})

    async def _discover(self, _: web.Request) -> web.Response:
        return web.json_response(self.document)
