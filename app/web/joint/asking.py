"""Asks the administrations of all shards, each at a private socket of its worker."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import orjson
from aiohttp import web
from yarl import URL

from holdfast.web.admin.application import Person
from holdfast.web.admin.faults import WRONG_USE, RequestFailed
from holdfast.web.admin.handlers import read_body
from holdfast.web.http.encodings import is_transfer_known

Json = dict[str, Any]

WHO = "X-Holdfast-Who"
GIVEN_ID = "X-Holdfast-Id"
# How long a reading waits for other shards, and for this one: with millions of entries, its own
# answer may take longer.
READ_S = 1.0
_OWN_S = 10.0
# How long changes wait; a change waits for its store up to 5 s. Sweeps change many things.
CHANGE_S = 10.0
SWEEP_S = 60.0
# What shards need of the headers, to judge the body as they would judge a client's.
_HEADERS = ("Content-Type", "Content-Encoding")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request whose sender has been let in."""

    method: str
    # Both as in the request.
    path: str
    query: tuple[tuple[str, str], ...] = ()
    who: str
    headers: Mapping[str, str]
    body: bytes | None = None

    @property
    def limit_s(self) -> float:
        return READ_S if self.method == "GET" else CHANGE_S

    def given(self, name: str) -> str | None:
        return dict(self.query).get(name)

    def asking(self, **query: object) -> "Ask":
        """Return the request with other values in the query."""
        kept = [each for each in self.query if each[0] not in query]
        new = [(name, str(value)) for name, value in query.items() if value is not None]
        return replace(self, query=(*kept, *new))

    def reading(self, path: str) -> "Ask":
        """Return a request that reads something by the same person."""
        return replace(self, method="GET", path=path, headers={}, body=None)


async def ask_of(request: web.Request, person: Person, *, with_body: bool = True) -> Ask:
    """Return what to ask other shards. Raises `RequestFailed`."""
    if not is_transfer_known(request.headers):
        text = "the only supported transfer coding is chunked"
        raise RequestFailed(WRONG_USE, text, status=501)
    return Ask(
        method=request.method,
        path=request.rel_url.raw_path,
        query=tuple(request.query.items()),
        who=person.who,
        headers={name: request.headers[name] for name in _HEADERS if name in request.headers},
        body=await read_body(request) if with_body and request.body_exists else None,
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a shard has answered."""

    shard: int
    status: int
    body: bytes

    @property
    def json(self) -> Json:
        found: Json = orjson.loads(self.body or b"{}")
        return found


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A shard has not answered."""

    shard: int
    reason: str
    # Whether its process may live: it was reached.
    is_silent: bool = False


class Shards:
    """The administrations of all shards, this one among them.

    Args:
        number: This shard.
        sockets: Where each shard answers other workers.
        new_id: Returns an id that no shard gives to anything else.
    """

    def __init__(self, number: int, sockets: Sequence[Path], new_id: Callable[[], str]) -> None:
        self.number = number
        self.new_id = new_id
        self._sockets = sockets
        self._http: dict[int, aiohttp.ClientSession] = {}
        self._is_closed = False

    @property
    def numbers(self) -> range:
        return range(len(self._sockets))

    async def ask_all(self, ask: Ask, limit_s: float | None = None) -> list[Answer | NoAnswer]:
        """Ask all shards at the same time."""
        asked = [self.ask(shard, ask, limit_s) for shard in self.numbers]
        return [*await asyncio.gather(*asked)]

    async def ask(self, shard: int, ask: Ask, limit_s: float | None = None) -> Answer | NoAnswer:
        """Ask one shard."""
        limit_s = ask.limit_s if limit_s is None else limit_s
        if shard == self.number:
            limit_s = max(limit_s, _OWN_S)
        try:
            async with asyncio.timeout(limit_s), self.open(shard, ask) as response:
                return Answer(shard, response.status, await response.read())
        except TimeoutError:
            return NoAnswer(shard, f"it did not answer within {limit_s:g} s", is_silent=True)
        except (aiohttp.ClientError, OSError):
            return NoAnswer(shard, "it cannot be reached")

    async def send(self, shard: int, ask: Ask, body: AsyncIterator[bytes]) -> Answer | NoAnswer:
        """Ask one shard, with a body that grows; there is no limit of time."""
        try:
            async with self.open(shard, ask, body) as response:
                return Answer(shard, response.status, await response.read())
        except (aiohttp.ClientError, OSError):
            return NoAnswer(shard, "it cannot be reached")

    def open(
        self, shard: int, ask: Ask, body: AsyncIterator[bytes] | None = None
    ) -> "aiohttp.client._RequestContextManager":
        """Return the response of one shard, to be read step by step."""
        url = URL.build(scheme="http", host=f"shard{shard}", path=ask.path, encoded=True)
        headers = {WHO: quote(ask.who), **ask.headers}
        return self._client(shard).request(
            ask.method, url.with_query(ask.query), headers=headers, data=body or ask.body
        )

    def _client(self, shard: int) -> aiohttp.ClientSession:
        if self._is_closed:
            raise aiohttp.ClientConnectionError("this worker ends")
        found = self._http.get(shard)
        if found is None:
            # Another process may listen there for the next request.
            connector = aiohttp.UnixConnector(str(self._sockets[shard]), force_close=True)
            found = self._http[shard] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                skip_auto_headers=("Content-Type", "User-Agent"),
            )
        return found

    async def close(self) -> None:
        """Close all connections. From now on no shard can be reached."""
        self._is_closed = True
        for client in self._http.values():
            await client.close()
