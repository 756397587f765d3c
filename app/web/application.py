"""The routes: Bayeux at its paths, pages and probes beside it."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from app.bayeux.errors import BayeuxError
from app.web.callback_polling import callback_poll
from app.web.endpoint import FIXED_HEADERS, Endpoint, WebOptions, hsts_headers
from app.web.hosts import Hosts
from app.web.long_polling import long_poll, refusal
from app.web.metrics import Metrics
from app.web.misdirected import answering_to
from app.web.origins import said
from app.web.pages import PAGE_HEADERS, add_console, add_pages
from app.web.websocket import WebSocketDoor

# Says whether the server can do its work; a word about what is missing, or None.
Readiness = Callable[[], Awaitable[str | None]]


def make_application(
    endpoint: Endpoint,
    door: WebSocketDoor,
    metrics: Metrics,
    readiness: Readiness,
    pages: Path,
    admin: web.Application | None = None,
    *,
    chat: bool = True,
) -> web.Application:
    """One application for everything that this server answers over HTTP."""
    application = _with_probes(endpoint, readiness, endpoint.options.hosts)
    bayeux = _bayeux_handler(endpoint, door)
    for path in endpoint.options.paths:
        application.router.add_route("*", path, bayeux)
        application.router.add_route("*", path + "/{suffix:.*}", bayeux)
    _add_metrics(application, metrics)
    add_pages(application, endpoint, pages, chat=chat, console=admin is not None)
    if admin is not None:
        application.add_subapp("/admin", admin)
    return application


def make_administration_apart(
    endpoint: Endpoint, readiness: Readiness, pages: Path, admin: web.Application, hosts: Hosts
) -> web.Application:
    """What operators need, for a listener of their own: whoever else comes finds nothing there."""
    application = _with_probes(endpoint, readiness, hosts)
    add_console(application, pages)
    application.add_subapp("/admin", admin)
    return application


def _bayeux_handler(
    endpoint: Endpoint, door: WebSocketDoor
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    origins = endpoint.options.origins

    async def bayeux(request: web.Request) -> web.StreamResponse:
        """The transport is told by the method: there is no other place where it stands."""
        if request.method == "POST":
            return await long_poll(request, endpoint)
        if request.method == "OPTIONS":
            origin, host = said(request.headers, "Origin"), request.headers.get("Host")
            headers = FIXED_HEADERS | origins.preflight_headers(origin, host)
            return web.Response(headers=headers)
        if request.method == "GET" and request.headers.get("Upgrade", "").lower() == "websocket":
            if "websocket" in endpoint.options.transports:
                return await door.serve(request)
        elif request.method == "GET" and "message" in request.query:
            return await callback_poll(request, endpoint)
        return refusal(request, BayeuxError.TRANSPORT_UNKNOWN, endpoint)

    return bayeux


def _with_probes(endpoint: Endpoint, readiness: Readiness, hosts: Hosts) -> web.Application:
    """An application that is reached by these names, and says how the server is."""
    # The doors bound what they read themselves: aiohttp's own limit would be a second one.
    application = web.Application(
        client_max_size=endpoint.options.max_request_size,
        middlewares=[answering_to(hosts, endpoint)],
    )
    application.on_response_prepare.append(partial(_add_common_headers, endpoint.options))

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        missing = await readiness()
        if missing is None:
            return web.Response(text="ready\n")
        return web.Response(status=503, text=f"{missing}\n")

    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    return application


def _add_metrics(application: web.Application, metrics: Metrics) -> None:
    async def figures(_: web.Request) -> web.Response:
        headers = {"Content-Type": CONTENT_TYPE_LATEST}
        return web.Response(body=await metrics.text(), headers=headers)

    application.router.add_get("/metrics", figures)


async def _add_common_headers(
    options: WebOptions, request: web.Request, response: web.StreamResponse
) -> None:
    """What every answer says, and what none says: which versions of what are at work here."""
    response.headers["Server"] = FIXED_HEADERS["Server"]
    response.headers.update(hsts_headers(options.hsts_s))
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if request.path.startswith("/static/"):
        response.headers.update(PAGE_HEADERS)
