"""Long-polling and callback-polling: requests, each with a response of its own."""

import asyncio
import gzip
import re
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import count
from typing import Protocol
from urllib.parse import quote

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from tests.conversations.runner.notation import JSON
from tests.conversations.runner.stories import Body
from tests.conversations.runner.wire import TIMEOUT_S, Heard, connector, decoded, encoded

SAID_OF_PAGES = ("Origin", "Referer", "Sec-Fetch-Site")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    target: str
    headers: CIMultiDict[str] = field(default_factory=CIMultiDict)
    body: bytes = b""


class Dialect(Protocol):
    """How a transport puts Bayeux messages into HTTP."""

    def request(self, body: Body) -> HttpRequest: ...

    def messages(self, heard: Heard) -> list[JSON]: ...


class LongPolling:
    def __init__(self, path: str) -> None:
        self._path = path

    def request(self, body: Body) -> HttpRequest:
        headers = CIMultiDict({"Content-Type": "application/json;charset=UTF-8"})
        return HttpRequest("POST", self._path, headers, encoded(body))

    def messages(self, heard: Heard) -> list[JSON]:
        content_type = heard.headers.get("Content-Type", "")
        assert content_type.startswith("application/json"), f"Content-Type is {content_type!r}"
        return decoded(heard.body)


class CallbackPolling:
    """A script element on a page of the server, in a browser that speaks plain HTTP."""

    def __init__(self, server: str, path: str) -> None:
        self._page = f"{server}/page.html"
        self._path = path
        self._numbers = count(1)

    def request(self, body: Body) -> HttpRequest:
        query = f"jsonp=called{next(self._numbers)}&message={quote(encoded(body))}"
        return HttpRequest("GET", f"{self._path}?{query}", CIMultiDict(Referer=self._page))

    def messages(self, heard: Heard) -> list[JSON]:
        call = re.fullmatch(r"/\*\*/called\d+\((.*)\)", heard.body, re.DOTALL)
        if heard.outcome != "200":
            return decoded(call[1] if call else heard.body)
        content_type = heard.headers.get("Content-Type", "").lower().replace(" ", "")
        assert content_type == "text/javascript;charset=utf-8", f"Content-Type is {content_type!r}"
        assert heard.headers.get("X-Content-Type-Options") == "nosniff"
        assert call, f"no call of the function: {heard.body}"
        return decoded(call[1])


class HttpWire:
    """Open requests of one client, those that are answered at once apart from held ones."""

    def __init__(self, server: str, jar: aiohttp.CookieJar, dialect: Dialect) -> None:
        self._server = server
        self._jar = jar
        self._dialect = dialect
        self._session = self._new_session()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._prompt: list[asyncio.Task[Heard]] = []
        self._held: list[asyncio.Task[Heard]] = []

    async def say(self, body: Body, *, headers: CIMultiDict[str], is_held: bool) -> None:
        request = self._dialect.request(body)
        if any(name in headers for name in SAID_OF_PAGES):
            # The story says what page it is.
            request.headers.pop("Referer", None)
        request.headers.update(headers)
        if headers.get("Content-Encoding") == "gzip":
            request = replace(request, body=gzip.compress(request.body))
        await self.send(request, is_held=is_held)

    async def send(self, request: HttpRequest, *, is_held: bool) -> None:
        open_requests = self._held if is_held else self._prompt
        open_requests.append(asyncio.create_task(self._answer(request)))

    async def hear(self, count: int, *, is_held: bool, is_frame: bool) -> Heard:
        assert not is_frame, "frames come over WebSocket only"
        open_requests = self._held if is_held else self._prompt
        assert open_requests, "nothing was asked that could be answered"
        heard = await asyncio.wait_for(asyncio.shield(open_requests[0]), TIMEOUT_S)
        del open_requests[0]
        if count:
            heard.messages.extend(self._dialect.messages(heard))
        return heard

    def unheard(self) -> str | None:
        if self._prompt:
            return "the answer to a request is due"
        return self.answered_early(newest_only=False)

    def answered_early(self, *, newest_only: bool) -> str | None:
        for task in self._held[-1:] if newest_only else self._held:
            if task.done():
                heard = task.result()
                return f"{heard.outcome} {heard.body}"
        return None

    def read_on(self, is_reading: bool) -> None:
        if is_reading:
            self._may_read.set()
        else:
            self._may_read.clear()

    async def drop(self) -> None:
        tasks = [*self._prompt, *self._held]
        self._prompt.clear()
        self._held.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()
        self._session = self._new_session()

    async def close(self) -> None:
        await self.drop()
        await self._session.close()

    async def _answer(self, request: HttpRequest) -> Heard:
        async with self._session.request(
            request.method,
            URL(self._server + request.target, encoded=True),
            headers=request.headers,
            data=BytesIO(request.body) if request.body else None,
            allow_redirects=False,
        ) as response:
            await self._may_read.wait()
            text = await response.text("utf-8")
            return Heard(str(response.status), headers=response.headers.copy(), body=text)

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=connector(),
            cookie_jar=self._jar,
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=["Content-Type", "User-Agent"],
        )
