"""Finds what answers a request. It is made for the first one: many servers get none."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from aiohttp import web

from holdfast.web.admin.paths import API

if TYPE_CHECKING:
    from holdfast.web.admin.route import Route

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# Returns each route with what answers it.
Handlers = Callable[[], Awaitable["Sequence[tuple[Route, Handler]]"]]

# Where an application has its routes; `.` would exclude paths with a line break.
ANY_PATH = r"/{path:[\s\S]*}"
# The parts of the path that the route has names for.
PLACES = web.RequestKey("places", dict[str, str])


class Once:
    """Makes the handlers when somebody asks for them, and returns the same from then on."""

    def __init__(self, make: Handlers) -> None:
        self._make = make
        self._made: Sequence[tuple[Route, Handler]] | None = None
        self._making = asyncio.Lock()

    async def __call__(self) -> "Sequence[tuple[Route, Handler]]":
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
        for route, handler in await self._handlers():
            router.add_route(route.method, place + API + route.path, handler)
        return router


def _place_of(request: web.Request) -> str:
    """Return where the application is."""
    found = request.match_info.route.resource
    return "" if found is None else found.canonical.removesuffix("/{path}")
