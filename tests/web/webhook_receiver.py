"""A web application that webhooks call."""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import orjson
from aiohttp import web

LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a webhook."""

    id: str
    body: Any
    raw: bytes
    headers: Mapping[str, str]

    @property
    def data(self) -> Any:
        """The data of the message that the call is about."""
        return self.body["data"]["data"]


class WebhookReceiver:
    """Answers calls with the statuses that a test has planned, then with 204."""

    def __init__(self, port: int = 0) -> None:
        self.calls: list[Call] = []
        # What the next calls get: a status, or a function that answers.
        self.plan: deque[int | Callable[[web.Request], Any]] = deque()
        self.answer: web.Response | None = None
        self._port = port
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=0)
        application.router.add_route("*", "/{path:.*}", self._hear)
        self._runner = web.AppRunner(application, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self.port: int = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def _hear(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = dict(request.headers)
        self.calls.append(Call(headers["webhook-id"], orjson.loads(raw), raw, headers))
        self._changed.set()
        planned = self.plan.popleft() if self.plan else 204
        if callable(planned):
            answer: web.StreamResponse = await planned(request)
            return answer
        return web.Response(status=planned, text="as planned" if planned >= 400 else None)

    async def called(self, count: int) -> list[Call]:
        """Wait for so many calls. Returns all of them."""
        async with asyncio.timeout(LIMIT_S):
            while len(self.calls) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.calls
