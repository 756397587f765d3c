"""Clients whose messages an application decides about, with books of what became of each."""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, Self

import aiohttp
import orjson
from aiohttp import web

from tests.web.backend_application import LIMIT_S, BackendApplication, Json

CLOSED = "/orders/closed"
RIGHTS = """
[[rule]]
who = ["*"]
ask = ["subscribe", "publish"]
channels = ["/orders/**"]

[[rule]]
who = ["*"]
may = ["create", "history", "replay"]
channels = ["/orders/**"]

[[rule]]
who = ["*"]
may = ["publish", "create"]
channels = ["/free/**"]
"""
CHANNELS: Json = {"/orders/**": {"durable": True, "history": 10_000}}


class Decider:
    """The application, which answers late, wrongly or not at all, and goes away at times.

    A member may use the channel of its name; nobody may use the closed one.
    """

    def __init__(self, *names: str) -> None:
        self._names = names
        self._random = random.Random(11)
        self.application = BackendApplication()

    async def open(self) -> None:
        await self.application.__aenter__()
        self._plan()

    async def close(self) -> None:
        await self.application.__aexit__()

    async def fail(self, pause_s: float) -> None:
        """Be killed, and come back at the same port."""
        await self.close()
        await asyncio.sleep(pause_s)
        self.application = BackendApplication(self.application.port)
        await self.open()

    def _plan(self) -> None:
        self.application.users = {f"of-{name}": name for name in self._names}
        for name in self._names:
            for action in ("subscribe", "publish"):
                answer = {"allow": True, "expires_in": 1}
                self.application.table[action, f"/orders/{name}"] = answer
        self.application.plan.extend([self._answer] * 100_000)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        what = self._random.random()
        await asyncio.sleep(what * 0.1)
        if what < 0.05:
            return web.Response(status=500)
        if what < 0.08:
            return web.Response(text="<html>allowed</html>")
        if what < 0.1 and request.transport is not None:
            request.transport.abort()
        try:
            return web.json_response(
                self.application.decide(request, orjson.loads(await request.read()))
            )
        except PermissionError as error:
            return web.json_response({"detail": str(error)}, status=403)

    @contextmanager
    def always(self) -> Iterator[None]:
        """Answer at once and rightly."""
        self.application.plan.clear()
        yield


class Member:
    """Publishes growing numbers in requests of three messages, one request after the other.

    The first message goes to the channel of its name, the second to the closed one, and the third
    to a channel about which nobody is asked.
    """

    def __init__(self, url: Callable[[], str], name: str) -> None:
        self._url, self._name = url, name
        self.channel = f"/orders/{name}"
        self._http = aiohttp.ClientSession(
            headers={"Cookie": f"sessionid=of-{name}"}, cookie_jar=aiohttp.CookieJar(unsafe=True)
        )
        self._client_id = ""
        self._last = 0
        # The numbers by what was answered. Of the others nothing is known.
        self.accepted: list[int] = []
        self.refused: list[int] = []
        self.errors: set[str] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def publish(self, count: int) -> None:
        """Publish until so many more are accepted."""
        wanted = len(self.accepted) + count
        async with asyncio.timeout(LIMIT_S):
            while len(self.accepted) < wanted:
                try:
                    await self._go_on()
                except (aiohttp.ClientError, ConnectionError):
                    # What became of the number is unknown.
                    self._client_id = ""
                    await asyncio.sleep(0.05)

    async def _go_on(self) -> None:
        if not self._client_id:
            hello = {"supportedConnectionTypes": ["long-polling"]}
            [reply] = await self._ask([{"channel": "/meta/handshake", **hello}])
            self._client_id = reply.get("clientId", "")
            if not self._client_id:
                self.errors.add(reply["error"])
                await asyncio.sleep(0.05)
            return
        number = self._last = self._last + 1
        channels = (self.channel, CLOSED, f"/free/{self._name}")
        sent = [{"channel": each, "data": number} for each in channels]
        replies = await self._ask([{**each, "clientId": self._client_id} for each in sent])
        assert [each["channel"] for each in replies] == [*channels], replies
        own, closed, _ = replies
        assert not closed["successful"], replies
        self.errors |= {each["error"] for each in replies if "error" in each}
        if any(each.get("error", "").startswith("402:") for each in replies):
            self._client_id = ""
        if own["successful"]:
            self.accepted.append(number)
        elif "unknown" not in own["error"]:
            self.refused.append(number)

    async def _ask(self, messages: list[Json]) -> list[Json]:
        async with self._http.post(f"{self._url()}/cometd", json=messages) as response:
            found = await response.json(content_type=None)
            if response.status != 200:
                # The whole request was refused.
                self.errors.add(found[0]["error"])
                raise aiohttp.ClientConnectionError(found)
            return [each for each in found if "successful" in each]

    async def history(self, channel: str) -> list[Any]:
        """Read all that a channel keeps."""
        heard: list[Any] = []
        offset = "-1"
        async with asyncio.timeout(LIMIT_S):
            while True:
                asked = {"offset": offset}
                url = f"{self._url()}/streams{channel}"
                async with self._http.get(url, params=asked) as response:
                    body = await response.read()
                if response.status == 503:
                    await asyncio.sleep(0.1)
                    continue
                assert response.status == 200, body
                heard += orjson.loads(body or b"[]")
                offset = response.headers["Stream-Next-Offset"]
                if "Stream-Up-To-Date" in response.headers:
                    return heard

    async def check(self) -> None:
        """Compare the books with what the channel has: nothing missing, nothing forbidden."""
        kept = await self.history(self.channel)
        assert all(before < after for before, after in pairwise(kept)), kept
        assert {*self.accepted} <= {*kept}, sorted({*self.accepted} - {*kept})
        assert not {*self.refused} & {*kept}
