"""The client of a running server's administration."""

import getpass
import os
import re
import socket
import ssl
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
    RemoteDisconnected,
)
from pathlib import Path
from urllib.parse import SplitResult, quote, urlencode, urlsplit

import orjson

from holdfast.cli.failures import EXITS, Exit, advice, failed
from holdfast.cli.output import Json, complain
from holdfast.cli.unreachable import unreachable
from holdfast.delivery.basics.json_text import to_json
from holdfast.web.admin.paths import API, LINES
from holdfast.web.admin.tokens import OPERATOR_FILE, OPERATOR_NAME

DEFAULT_URL = "http://127.0.0.1:8080"
_API = "/admin" + API
# Items per request.
_PART = 500
_ENDLESS = sys.maxsize
_CONNECT_TIMEOUT_S = 5.0
# Administrative commands may wait for a minute.
_READ_TIMEOUT_S = 75.0
_CHUNK = 64 * 1024

Params = Mapping[str, str | int | bool | None]


@dataclass(frozen=True, slots=True)
class Server:
    """The administration of the server that a command uses; a failure ends the program."""

    url: str = DEFAULT_URL
    token_file: Path | None = None
    # Whether the command prints answers as JSON.
    as_json: bool = False
    # Shards that have not answered, of which the command has spoken.
    named: set[str] = field(default_factory=set, compare=False)

    def token(self) -> str:
        path = self.token_file or data_directory() / OPERATOR_FILE
        try:
            token = path.read_text("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not a token"
            raise failed(
                f"{path}: {reason}. The server creates this file in its data directory; name it "
                "with --token-file or HOLDFAST_TOKEN_FILE",
                Exit.USAGE,
            ) from None
        if not token.isprintable() or not token:
            raise failed(f"{path}: the file has no token", Exit.USAGE)
        return token

    def get(self, path: str, params: Params | None = None) -> Json:
        """GET a path."""
        return self.ask("GET", path, params=params)

    def ask(
        self,
        method: str,
        path: str,
        body: Json | Iterable[bytes] | None = None,
        *,
        params: Params | None = None,
    ) -> Json:
        """Send a request, with a body of JSON or of lines; return its answer."""
        with self._answer(method, path, body, params) as response:
            answer: Json = orjson.loads(response.read() or b"{}")
        self._name_shards(answer)
        return answer

    def items(self, path: str, params: Params, limit: int | None = None) -> Iterator[Json]:
        """Return the first items of a list, or all of them, page by page."""
        cursor: str | None = None
        left = _ENDLESS if limit is None else limit
        while left > 0:
            page = self.get(path, {**params, "cursor": cursor, "limit": min(left, _PART)})
            yield from page["items"]
            left -= len(page["items"])
            cursor = page["cursor"]
            if cursor is None:
                return

    def lines(self, path: str, params: Params) -> Iterator[bytes]:
        """Return the lines of a response, which ends the program if it is incomplete."""
        with self._answer("GET", path, None, params) as response:
            rest = b""
            while part := response.read1(_CHUNK):
                *whole, rest = (rest + part).split(b"\n")
                yield from whole
            if response.length:
                raise IncompleteRead(rest, response.length)

    def _name_shards(self, answer: Json) -> None:
        """Say which shards are not in the answer, once each."""
        for each in answer.get("unanswered", ()):
            text = f"shard {each['shard']} is not in this: {each['reason']}"
            if text not in self.named:
                self.named.add(text)
                complain(text)

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Json | Iterable[bytes] | None, params: Params | None
    ) -> Iterator[HTTPResponse]:
        """A successful response, open while it is read."""
        try:
            headers = {"Authorization": f"Bearer {self.token()}"}
            if OPERATOR_NAME.fullmatch(name := _user()):
                headers["X-Operator"] = name
            if body is not None:
                headers["Content-Type"] = "application/json" if isinstance(body, dict) else LINES
            data = to_json(body) if isinstance(body, dict) else body
            place = _API + path + _query(params or {})
            with _sent(self.url, method, place, data, headers) as got:
                self._check(got, place)
                yield got
        except IncompleteRead:
            raise failed("the response is incomplete: try again") from None
        except RemoteDisconnected:
            # Clients of messages say it so, too.
            why = unreachable(self.url, ConnectionResetError("Server disconnected"))
            raise failed(why, Exit.UNREACHABLE) from None
        except (HTTPException, OSError) as error:
            raise failed(unreachable(self.url, error), Exit.UNREACHABLE) from None

    def _check(self, response: HTTPResponse, path: str) -> None:
        if response.status < 300:
            return
        try:
            error = orjson.loads(response.read())["error"]
            code, message = str(error["code"]), str(error["message"])
        except (ValueError, KeyError, TypeError):
            raise failed(
                f"{self.url}: this is not Holdfast's administration (status "
                f"{response.status}). A server that other machines can reach serves it at the "
                "address in its setting admin: use that as --url",
            ) from None
        text = advice(
            response.status,
            code,
            message,
            path=path,
            retry_after=response.headers.get("Retry-After"),
        )
        raise failed(text, EXITS.get(response.status, Exit.FAILED))


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


@contextmanager
def _sent(
    url: str, method: str, path: str, body: bytes | Iterable[bytes] | None, headers: dict[str, str]
) -> Iterator[HTTPResponse]:
    """Send a request; yield the response."""
    parts = address(url)
    with closing(_connection(parts)) as connection:
        connection.connect()
        connection.sock.settimeout(_READ_TIMEOUT_S)
        base = "" if parts.scheme == "unix" else quote(parts.path.rstrip("/"), safe="/%")
        # A server that refuses what it reads may close before it has read everything.
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, base + path, body, headers)
        yield connection.getresponse()


def _connection(parts: SplitResult) -> HTTPConnection:
    if parts.scheme == "unix":
        return _UnixConnection(parts.path, timeout=_CONNECT_TIMEOUT_S)
    host = parts.hostname or ""
    if parts.scheme == "https":
        return HTTPSConnection(host, parts.port, timeout=_CONNECT_TIMEOUT_S, context=_tls())
    return HTTPConnection(host, parts.port, timeout=_CONNECT_TIMEOUT_S)


@cache
def _tls() -> ssl.SSLContext:
    """Return the context of all connections: to read the authorities takes its time."""
    return ssl.create_default_context()


class _UnixConnection(HTTPConnection):
    """To a socket in a file."""

    def __init__(self, path: str, *, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def address(url: str) -> SplitResult:
    """Return the parts of a server's URL."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "unix" and parts.path:
            return parts
        # Fails for a name that no machine can have.
        name = (parts.hostname or "").encode("idna")
        if parts.scheme in ("http", "https") and name and parts.port != 0:
            return parts
    except ValueError:
        pass
    text = f"{url}: write a URL such as {DEFAULT_URL} or unix:/run/holdfast.sock"
    raise failed(text, Exit.USAGE)


def _query(params: Params) -> str:
    """Return the query of a request; parameters without a value are omitted."""
    given = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in params.items()
        if value is not None
    }
    return f"?{urlencode(given)}" if given else ""


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def readiness(url: str) -> str:
    """Return what a server says about whether it is ready; nothing if it does not answer."""
    try:
        with _sent(url, "GET", "/readyz", None, {}) as response:
            return response.read().decode()
    except (HTTPException, OSError):
        return ""


def metric(url: str, name: str) -> float | None:
    """Return a metric of a server, of all its workers; None if it does not show it here."""
    try:
        with _sent(url, "GET", "/metrics", None, {}) as response:
            text = response.read().decode()
    except (HTTPException, OSError):
        return None
    found = re.findall(rf'^{name}(?:{{shard="\d+"}})? (\S+)$', text, re.MULTILINE)
    return sum(map(float, found)) if found else None
