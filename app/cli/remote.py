"""The client of a running server's administration."""

import asyncio
import getpass
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

import orjson
import typer

from holdfast.cli.certificates import certificates_read_late
from holdfast.cli.failures import EXITS, Exit, RemoteFailed, advice
from holdfast.cli.output import Json, complain
from holdfast.cli.unreachable import unreachable
from holdfast.delivery.basics.json_text import to_json
from holdfast.web.admin.paths import API, LINES
from holdfast.web.admin.tokens import OPERATOR_FILE, OPERATOR_NAME

if TYPE_CHECKING:
    from aiohttp import ClientResponse

DEFAULT_URL = "http://127.0.0.1:8080"
_API = "/admin" + API
_JSON = {"Content-Type": "application/json"}
_LINES = {"Content-Type": LINES}
# Items per request.
_PART = 500
_ENDLESS = sys.maxsize

Outcome = TypeVar("Outcome")
Params = Mapping[str, str | int | bool | None]


@dataclass(frozen=True, slots=True)
class Server:
    """The server that a command uses, and whether to print its answers as JSON."""

    url: str = DEFAULT_URL
    token_file: Path | None = None
    as_json: bool = False

    def token(self) -> str:
        path = self.token_file or data_directory() / OPERATOR_FILE
        try:
            token = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a token"
            raise RemoteFailed(
                Exit.USAGE,
                f"{path}: {reason}. The server creates this file in its data directory; name it "
                "with --token-file or HOLDFAST_TOKEN_FILE",
            ) from None
        if not token.isprintable() or not token:
            raise RemoteFailed(Exit.USAGE, f"{path}: the file has no token")
        return token

    def talk(self, conversation: Callable[["Remote"], Awaitable[Outcome]]) -> Outcome:
        """Run a conversation; a failure ends the program."""

        async def talk() -> Outcome:
            async with Remote(self) as remote:
                return await conversation(remote)

        try:
            return asyncio.run(talk())
        except RemoteFailed as error:
            complain(str(error))
            raise typer.Exit(error.exit) from None

    def get(self, path: str, params: Params | None = None) -> Json:
        """GET a path."""
        return self.talk(lambda remote: remote.get(path, params))


def data_directory() -> Path:
    """The data directory of a server that was started here."""
    if name := os.environ.get("HOLDFAST_DATA"):
        return Path(name)
    try:
        text = Path("holdfast.toml").read_text("utf-8")
    except (OSError, ValueError):
        return Path("data")
    # Most commands do without.
    import tomllib

    try:
        settings = tomllib.loads(text)
    except ValueError:
        settings = {}
    return Path(str(settings.get("data", "data")))


class Remote:
    """A server's administration; all methods raise `RemoteFailed`."""

    def __init__(self, server: Server) -> None:
        # Commands that talk to no server need not wait until it is loaded.
        with certificates_read_late():
            import aiohttp

        self._server = server
        # Shards that have not answered, of which this command has spoken.
        self._named: set[str] = set()
        token = server.token()
        base, socket = address(server.url)
        self._base = base + _API
        connector = None if socket is None else aiohttp.UnixConnector(socket)
        headers = {"Authorization": f"Bearer {token}"}
        if OPERATOR_NAME.fullmatch(name := _user()):
            headers["X-Operator"] = name
        # Administrative commands may wait for a minute.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=75.0)
        self._http = aiohttp.ClientSession(connector=connector, headers=headers, timeout=timeout)

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
        """GET a path."""
        return await self.ask("GET", path, params=params)

    async def items(
        self, path: str, params: Params, limit: int | None = None
    ) -> AsyncIterator[Json]:
        """Return the first items of a list, or all of them, page by page."""
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
        """Return the lines of a response; raises if it is incomplete."""
        async with self._answer("GET", path, params=params) as response:
            rest = b""
            async for part in response.content.iter_any():
                *whole, rest = (rest + part).split(b"\n")
                for line in whole:
                    yield line

    async def ask(
        self,
        method: str,
        path: str,
        body: Json | AsyncIterator[bytes] | None = None,
        *,
        params: Params | None = None,
    ) -> Json:
        """Send a request, with a body of JSON or of lines; return its answer."""
        async with self._answer(method, path, body, params=params) as response:
            answer: Json = orjson.loads(await response.read() or b"{}")
        self._name_shards(answer)
        return answer

    def _name_shards(self, answer: Json) -> None:
        """Say which shards are not in the answer, once each."""
        for each in answer.get("unanswered", ()):
            text = f"shard {each['shard']} is not in this: {each['reason']}"
            if text not in self._named:
                self._named.add(text)
                complain(text)

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        body: Json | AsyncIterator[bytes] | None = None,
        *,
        params: Params | None,
    ) -> "AsyncIterator[ClientResponse]":
        """A successful response, open while it is read."""
        from aiohttp import ClientError

        is_json = isinstance(body, dict)
        headers = {} if body is None else _JSON if is_json else _LINES
        try:
            async with self._http.request(
                method,
                self._base + path,
                params=_given(params or {}),
                data=to_json(body) if is_json else body,
                headers=headers,
                allow_redirects=False,
            ) as response:
                await self._check(response)
                yield response
        except (ClientError, TimeoutError, OSError) as error:
            self._unreachable(error)

    async def _check(self, response: "ClientResponse") -> None:
        if response.status < 300:
            return
        try:
            error = orjson.loads(await response.read())["error"]
            code, message = str(error["code"]), str(error["message"])
        except (ValueError, KeyError, TypeError):
            raise RemoteFailed(
                Exit.FAILED,
                f"{self._server.url}: this is not Holdfast's administration (status "
                f"{response.status}). A server that other machines can reach serves it at the "
                "address in its setting admin: use that as --url",
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
        from aiohttp import ClientPayloadError

        if isinstance(error, ClientPayloadError):
            text = "the response is incomplete: try again"
            raise RemoteFailed(Exit.FAILED, text) from None
        raise RemoteFailed(Exit.UNREACHABLE, unreachable(self._server.url, error)) from None


def address(url: str) -> tuple[str, str | None]:
    """Return the base URL of requests, and the Unix socket if there is one.

    Raises `RemoteFailed`.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix" and parts.path:
            return "http://localhost", parts.path
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return url.rstrip("/"), None
    except ValueError:
        pass
    text = f"{url}: write a URL such as {DEFAULT_URL} or unix:/run/holdfast.sock"
    raise RemoteFailed(Exit.USAGE, text)


def _given(params: Params) -> dict[str, str]:
    """Query parameters; those without a value are omitted."""
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


async def metric(url: str, name: str) -> float | None:
    """Return a metric of a server, of all its workers; None if it does not show it here."""
    import aiohttp

    base, socket = address(url)
    connector = None if socket is None else aiohttp.UnixConnector(socket)
    try:
        async with (
            aiohttp.ClientSession(connector=connector) as http,
            http.get(f"{base}/metrics") as response,
        ):
            text = await response.text()
    except (aiohttp.ClientError, TimeoutError, OSError):
        return None
    found = re.findall(rf'^{name}(?:{{shard="\d+"}})? (\S+)$', text, re.MULTILINE)
    return sum(map(float, found)) if found else None
