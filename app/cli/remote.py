"""The administration of a running server, as the command line reaches it."""

import asyncio
import getpass
import os
import sys
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

import aiohttp
import orjson
import typer
from aiohttp import ClientResponse, ClientSession, ClientTimeout

from app.cli.failures import EXITS, Exit, RemoteFailed, advice, reason
from app.cli.output import complain
from app.delivery.json_text import to_json
from app.web.admin.address import API, LINES
from app.web.admin.tokens import OPERATOR_FILE, OPERATOR_NAME

DEFAULT_URL = "http://127.0.0.1:8080"
_API = "/admin" + API
# Commands may wait for a minute.
_TIMEOUT = ClientTimeout(total=None, sock_connect=5.0, sock_read=75.0)
_JSON = {"Content-Type": "application/json"}
_LINES = {"Content-Type": LINES}
# Items that are asked for at one go.
_PART = 500
_ENDLESS = sys.maxsize

Outcome = TypeVar("Outcome")
Json = dict[str, Any]
Params = Mapping[str, str | int | bool | None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the server is, and what opens it."""

    url: str = DEFAULT_URL
    token_file: Path | None = None

    def token(self) -> str:
        path = self.token_file or _data_directory() / OPERATOR_FILE
        try:
            token = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is no token"
            raise RemoteFailed(
                Exit.USAGE,
                f"{path}: {reason}. The server makes this file in its data directory: name it with "
                "--token-file or HOLDFAST_TOKEN_FILE",
            ) from None
        if not token.isprintable() or not token:
            raise RemoteFailed(Exit.USAGE, f"{path}: there is no token in it")
        return token


def _data_directory() -> Path:
    """Where a server that was started here keeps its data."""
    if name := os.environ.get("HOLDFAST_DATA"):
        return Path(name)
    try:
        settings = tomllib.loads(Path("holdfast.toml").read_text("utf-8"))
    except (OSError, ValueError):
        settings = {}
    return Path(str(settings.get("data", "data")))


class Remote:
    """A server's administration; raises `RemoteFailed`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        token = place.token()
        self._base, socket = _address(place.url)
        connector = None if socket is None else aiohttp.UnixConnector(socket)
        headers = {"Authorization": f"Bearer {token}"}
        if OPERATOR_NAME.fullmatch(name := _user()):
            headers["X-Operator"] = name
        self._http = ClientSession(connector=connector, headers=headers, timeout=_TIMEOUT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.close()

    async def get(self, path: str, params: Params | None = None) -> Json:
        """What there is at a path."""
        return await self._ask("GET", path, params=params)

    async def delete(self, path: str, params: Params | None = None) -> Json:
        """Remove what there is at a path."""
        return await self._ask("DELETE", path, params=params)

    async def put(self, path: str, body: Json) -> Json:
        """Put something at a path."""
        return await self._ask("PUT", path, body=to_json(body))

    async def post(self, path: str, body: Json) -> Json:
        """Have something done."""
        return await self._ask("POST", path, body=to_json(body))

    async def post_lines(self, path: str, lines: AsyncIterator[bytes]) -> Json:
        """Have something done with JSON lines."""
        return await self._ask("POST", path, body=lines)

    async def items(
        self, path: str, params: Params, limit: int | None = None
    ) -> AsyncIterator[Json]:
        """So many items of a list, or all of them, however many parts it has."""
        cursor: str | None = None
        left = _ENDLESS if limit is None else limit
        while left > 0:
            asked = {**params, "cursor": cursor, "limit": min(left, _PART)}
            page = await self.get(path, asked)
            for item in page["items"]:
                yield item
            left -= len(page["items"])
            cursor = page["cursor"]
            if cursor is None:
                return

    async def lines(self, path: str, params: Params) -> AsyncIterator[bytes]:
        """An answer line by line, whole or failed."""
        try:
            async with self._http.get(
                self._base + path, params=_given(params), allow_redirects=False
            ) as response:
                await self._check(response)
                rest = b""
                async for part in response.content.iter_any():
                    *whole, rest = (rest + part).split(b"\n")
                    for line in whole:
                        yield line
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._unreachable(error)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | AsyncIterator[bytes] | None = None,
    ) -> Json:
        headers = {} if body is None else _JSON if isinstance(body, bytes) else _LINES
        try:
            async with self._http.request(
                method,
                self._base + path,
                params=_given(params or {}),
                data=body,
                headers=headers,
                allow_redirects=False,
            ) as response:
                await self._check(response)
                answer: Json = orjson.loads(await response.read() or b"{}")
                return answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._unreachable(error)

    async def _check(self, response: ClientResponse) -> None:
        if response.status < 300:
            return
        try:
            error = orjson.loads(await response.read())["error"]
            code, message = str(error["code"]), str(error["message"])
        except (ValueError, KeyError, TypeError):
            raise RemoteFailed(
                Exit.FAILED,
                f"{self._place.url}: there is no administration of Holdfast here (status "
                f"{response.status}). A server that others can reach has it at the address of its "
                "setting admin: name that with --url",
            ) from None
        text = advice(
            response.status,
            code,
            message,
            path=response.url.path,
            retry_after=response.headers.get("Retry-After"),
        )
        raise RemoteFailed(EXITS.get(response.status, Exit.FAILED), text)

    def _unreachable(self, error: Exception) -> NoReturn:
        if isinstance(error, aiohttp.ClientPayloadError):
            text = "the answer broke off before its end, so it is not complete: try again"
            raise RemoteFailed(Exit.FAILED, text) from None
        if isinstance(error, aiohttp.ClientSSLError):
            text = f"{self._place.url}: its certificate is not trusted; SSL_CERT_FILE may name one"
            raise RemoteFailed(Exit.UNREACHABLE, text) from None
        raise RemoteFailed(
            Exit.UNREACHABLE,
            f"{self._place.url} cannot be reached ({reason(error)}). Does a server run there? "
            "Start one with holdfast serve, or say where it is with --url or HOLDFAST_URL",
        ) from None


def _address(url: str) -> tuple[str, str | None]:
    """Where requests go, and through which socket if it is one."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix" and parts.path:
            return "http://localhost" + _API, parts.path
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return url.rstrip("/") + _API, None
    except ValueError:
        pass
    text = f"{url}: a URL is like {DEFAULT_URL} or unix:/run/holdfast.sock"
    raise RemoteFailed(Exit.USAGE, text)


def _given(params: Params) -> dict[str, str]:
    """Parameters as they stand in a URL; those without a value are left out."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in params.items()
        if value is not None
    }


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def talk(place: Place, conversation: Callable[[Remote], Awaitable[Outcome]]) -> Outcome:
    """Have a conversation with the server; what goes wrong ends the program."""

    async def _talk() -> Outcome:
        async with Remote(place) as remote:
            return await conversation(remote)

    try:
        return asyncio.run(_talk())
    except RemoteFailed as error:
        complain(str(error))
        raise typer.Exit(error.exit) from None
