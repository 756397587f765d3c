"""Lets the suite of Durable Streams write to channels, which programs only publish to.

PUT makes a stream: its channel is one that has a history. POST publishes to it. Messages are JSON,
so text is published as a JSON string, and unwrapped for its readers, who see the type that it was
given. All else that readers ask for and get is passed on as it is.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

# The rule of channels that has a history.
MADE = "/made/**"
_JSON = "application/json"
# Headers of one connection, and of how it carries a body.
_OF_CONNECTION = {
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "host",
    "keep-alive",
    "transfer-encoding",
}
# A history is read in parts that are smaller than this.
_LARGEST_EVENT = 1024 * 1024


@asynccontextmanager
async def adapted(url: str) -> AsyncIterator[str]:
    """Yield the URL of streams that are channels of the server at `url`."""
    async with aiohttp.ClientSession(url, read_bufsize=_LARGEST_EVENT) as http:
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", Adapter(http).answer)
        # A reader that leaves leaves the server, too.
        async with TestServer(application, handler_cancellation=True) as server:
            yield str(server.make_url("")).rstrip("/")


class Adapter:
    """The streams that were made, by path, with their types."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self._types: dict[str, str] = {}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if request.method not in ("PUT", "POST"):
            return await self._pass_on(request)
        if any(name.lower().startswith(("stream-", "producer-")) for name in request.headers):
            raise web.HTTPNotImplemented
        return await (self._make if request.method == "PUT" else self._append)(request)

    async def _make(self, request: web.Request) -> web.Response:
        kind = request.headers.get("Content-Type", "application/octet-stream")
        known = self._types.get(request.path)
        if known is not None:
            is_same = _bare(known) == _bare(kind)
            return web.Response(status=200 if is_same else 409, headers=await self._head(request))
        messages = _messages_in(await request.read(), kind)
        self._types[request.path] = kind
        await self._publish(request, messages)
        headers = {**await self._head(request), "Location": str(request.url)}
        return web.Response(status=201, headers=headers)

    async def _append(self, request: web.Request) -> web.Response:
        kind, known = request.headers.get("Content-Type"), self._types.get(request.path)
        if known is None:
            raise web.HTTPNotFound
        if kind is None:
            raise web.HTTPBadRequest
        if _bare(kind) != _bare(known):
            raise web.HTTPConflict
        messages = _messages_in(await request.read(), kind)
        if not messages:
            raise web.HTTPBadRequest
        status = await self._publish(request, messages)
        return web.Response(
            status=204 if status == 200 else status, headers=await self._head(request)
        )

    async def _publish(self, request: web.Request, data: list[Any]) -> int:
        if not data:
            return 200
        messages = [{"channel": self._channel(request), "data": each} for each in data]
        async with self._http.post("/publish", json=messages) as response:
            return response.status

    async def _head(self, request: web.Request) -> dict[str, str]:
        """Return what the server says of the stream."""
        async with self._http.head(f"/streams{self._channel(request)}") as response:
            return self._headers(request, response)

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        query = f"?{request.rel_url.raw_query_string}" if request.rel_url.raw_query_string else ""
        url = URL(f"/streams{self._channel(request)}{query}", encoded=True)
        asked = _passed_on(request.headers) | {"Accept-Encoding": "identity"}
        async with self._http.request(request.method, url, headers=asked) as response:
            headers = self._headers(request, response)
            if response.content_type == "text/event-stream":
                return await self._pass_events_on(request, response, headers)
            body = await response.read()
        if body and response.status == 200 and self._is_text(request):
            body = _text_in(body).encode()
        return web.Response(status=response.status, body=body or None, headers=headers)

    async def _pass_events_on(
        self, request: web.Request, response: aiohttp.ClientResponse, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        passed = web.StreamResponse(headers=headers)
        await passed.prepare(request)
        while block := await response.content.readuntil(b"\n\n"):
            event, _, data = block.partition(b"\ndata:")
            if event == b"event: data" and self._is_text(request):
                block = b"event: data\n%b\n" % _lines_of(_text_in(data))
            await passed.write(block)
        return passed

    def _channel(self, request: web.Request) -> str:
        """Return the channel of a stream; one that was not made has no history."""
        return ("/made" if request.path in self._types else "/unmade") + request.path

    def _is_text(self, request: web.Request) -> bool:
        return _bare(self._types.get(request.path, _JSON)) != _JSON

    def _headers(self, request: web.Request, response: aiohttp.ClientResponse) -> dict[str, str]:
        headers = _passed_on(response.headers)
        if response.status == 200 and response.content_type == _JSON and self._is_text(request):
            headers["Content-Type"] = self._types[request.path]
        return headers


def _bare(kind: str) -> str:
    return kind.partition(";")[0].strip().lower()


def _messages_in(body: bytes, kind: str) -> list[Any]:
    """Return what the body of a write has. Raises the answer if that cannot be published."""
    if not body:
        return []
    try:
        if _bare(kind) != _JSON:
            return [body.decode()]
        found = orjson.loads(body)
    except UnicodeDecodeError:
        raise web.HTTPUnsupportedMediaType from None
    except orjson.JSONDecodeError:
        raise web.HTTPBadRequest from None
    return found if isinstance(found, list) else [found]


def _text_in(array: bytes) -> str:
    return "".join(orjson.loads(array))


def _lines_of(text: str) -> bytes:
    """Return the lines of a text as an event has them. Readers remove one blank of each."""
    lines = re.split("\r\n|\r|\n", text)
    return "".join(f"data:{' ' * line.startswith(' ')}{line}\n" for line in lines).encode()


def _passed_on(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: each for name, each in headers.items() if name.lower() not in _OF_CONNECTION}
