"""Finds what answers a request. It is made for the first one: many servers get none."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import web

from holdfast.web.admin.paths import API
from holdfast.web.admin.request_keys import PLACES

if TYPE_CHECKING:
    from holdfast.web.admin.handlers import Handler

# Returns what answers each route.
Handlers = Callable[[], Awaitable["Sequence[Handler]"]]

# Where an application has its routes; `.` would exclude paths with a line break.
ANY_PATH = r"/{path:[\s\S]*}"


class Once:
    """Makes the handlers when somebody asks for them, and returns the same from then on."""

    def __init__(self, make: Handlers) -> None:
        self._make = make
        self._made: Sequence[Handler] | None = None
        self._making = asyncio.Lock()

    async def __call__(self) -> "Sequence[Handler]":
        async with self._making:
            if self._made is None:
                self._made = await self._make()
            return self._made


class Routing:
    """Answers requests for any path of an application, below which all routes are."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._router: web.UrlDispatcher | None = None

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self._router is None:
            self._router = await self._made(_place_of(request))
        match = await self._router.resolve(request)
        request[PLACES] = dict(match)
        return await match.handler(request)

    async def _made(self, place: str) -> web.UrlDispatcher:
        router = web.UrlDispatcher()
        for each in await self._handlers():
            router.add_route(each.route.method, place + API + each.route.path, each.respond)
        return router


def _place_of(request: web.Request) -> str:
    """Return where the application is."""
    found = request.match_info.route.resource
    return "" if found is None else found.canonical.removesuffix("/{path}")
