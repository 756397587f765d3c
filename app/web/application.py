"""The HTTP routes: Bayeux, pages, metrics and health probes."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial

from aiohttp import web

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.answering.callback_polling import callback_poll
from holdfast.web.answering.endpoint import (
    FIXED_HEADERS,
    JSON_TYPE,
    PUBLISH_PATH,
    Endpoint,
    hsts_headers,
)
from holdfast.web.answering.long_polling import long_poll, refusal
from holdfast.web.http.hosts import Hosts
from holdfast.web.http.request_kinds import PROBES, RequestKind
from holdfast.web.misdirected import answering_to, showing_the_way
from holdfast.web.prometheus.forms import accepted_form
from holdfast.web.prometheus.metrics import MetricsPage
from holdfast.web.publish_requests import Divider, OneShard, PublishRequests
from holdfast.web.scheduling.speaking import until_speaking
from holdfast.web.site.documentation import Documentation
from holdfast.web.site.pages import PAGE_HEADERS, add_console, add_pages
from holdfast.web.site.static_files import StaticFiles
from holdfast.web.streams.reading_routes import Reading
from holdfast.web.websockets.websocket import WebSocketFrontEnd, is_upgrade

# Which shard has which buckets, if there is one.
ONE_SHARD = b'{"v":1,"ranges":[[0,999,0]]}'
# For people who open the path of clients in a browser.
_NO_PAGE = "no page but where clients connect by POST or WebSocket"
_BY_POST = "clients connect by POST or WebSocket"
# They are answered even while this process must not speak to clients.
_TELLING = PROBES | {"/metrics"}
# Returns why the server is not ready, or None, and what an operator should know although it is.
Readiness = Callable[[bool], Awaitable[tuple[str | None, str]]]


def make_application(
    endpoint: Endpoint,
    websockets: WebSocketFrontEnd,
    metrics: MetricsPage,
    readiness: Readiness,
    files: StaticFiles,
    admin: web.Application | None = None,
    *,
    chat: bool = True,
    login: Collection[str] = (),
    shards: bytes = ONE_SHARD,
    divider: Divider | None = None,
    reading: Reading | None = None,
    docs: Documentation | str = "",
) -> web.Application:
    """Return the application that serves everything except a separate administration.

    Proxies learn from `shards` which shard has which buckets. The divider says which shard handles
    what is published without a session; `reading` reads histories without one, if that is allowed.
    """
    application = _with_probes(endpoint, readiness, endpoint.hosts)
    bayeux = _bayeux_handler(endpoint, websockets)
    for path in endpoint.options.paths:
        application.router.add_route("*", path, bayeux)
        application.router.add_route("*", path + "/{suffix:.*}", bayeux)
    _add_publish(application, endpoint, divider or OneShard(endpoint.bayeux.state.client_ids))
    if reading is not None:
        reading.add_to(application)
    _add_metrics(application, metrics)
    _add_map(application, shards)
    add_pages(
        *(application, endpoint, files),
        chat=chat,
        console=admin is not None,
        login=login,
        docs=docs,
    )
    if admin is not None:
        application.add_subapp("/admin", admin)
    return application


def make_administration_apart(
    endpoint: Endpoint,
    readiness: Readiness,
    files: StaticFiles,
    admin: web.Application,
    hosts: Hosts,
) -> web.Application:
    """Return the administration alone, for a separate listener."""
    application = _with_probes(endpoint, readiness, hosts)
    add_console(application, files)
    application.add_subapp("/admin", admin)
    return application


def _bayeux_handler(
    endpoint: Endpoint, websockets: WebSocketFrontEnd
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def bayeux(request: web.Request) -> web.StreamResponse:
        response = await dispatch(request)
        if endpoint.bayeux.state.is_stopping:
            # The client's next request must reach another server.
            response.force_close()
        return response

    async def dispatch(request: web.Request) -> web.StreamResponse:
        """Dispatch to a transport by method, headers and query."""
        if request.method == "POST":
            return await long_poll(request, endpoint)
        if request.method == "OPTIONS":
            return _preflight(request, endpoint)
        if is_upgrade(request):
            if "websocket" in endpoint.options.transports:
                return await websockets.serve(request)
        elif request.method == "GET":
            if "message" in request.query:
                return await callback_poll(request, endpoint)
            no_page = RequestRefused(ErrorReply.TRANSPORT_UNKNOWN, _NO_PAGE)
            return refusal(request, no_page, endpoint)
        return refusal(request, RequestRefused(ErrorReply.TRANSPORT_UNKNOWN, _BY_POST), endpoint)

    return bayeux


def _preflight(request: web.Request, endpoint: Endpoint) -> web.Response:
    return web.Response(headers=endpoint.preflight_headers(request.headers))


def _add_publish(application: web.Application, endpoint: Endpoint, divider: Divider) -> None:
    async def preflight(request: web.Request) -> web.Response:
        return _preflight(request, endpoint)

    application.router.add_post(PUBLISH_PATH, PublishRequests(endpoint, divider).answer)
    application.router.add_options(PUBLISH_PATH, preflight)


def _with_probes(endpoint: Endpoint, readiness: Readiness, hosts: Hosts) -> web.Application:
    """Return an application with health probes that accepts only requests for these hosts."""
    # The handlers limit bodies themselves; aiohttp's limit is set to the same value.
    application = web.Application(
        client_max_size=endpoint.options.max_request_size,
        middlewares=[_in_turn(endpoint), answering_to(hosts, endpoint), showing_the_way(endpoint)],
    )
    application.on_response_prepare.append(
        partial(_add_common_headers, hsts_headers(endpoint.options.hsts_s))
    )

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        missing, remark = await readiness("all" in request.query)
        if missing is None:
            return web.Response(text=f"ready\n{remark}\n" if remark else "ready\n")
        return web.Response(status=503, text=f"{missing}\n")

    application.router.add_get("/healthz", healthz)
    application.router.add_get("/readyz", readyz)
    return application


def _in_turn(endpoint: Endpoint) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that makes each request wait until a turn has time for it.

    Its response waits, too, while this process must not speak. Probes tell why.
    """

    @web.middleware
    async def wait(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if endpoint.right.is_silent and request.path in _TELLING:
            return await handler(request)
        await endpoint.scheduler.wait_for_turn(_kind_of(request))
        response = await handler(request)
        await until_speaking(endpoint.right)
        return response

    return wait


def _kind_of(request: web.Request) -> RequestKind:
    if request.body_exists:
        return RequestKind.OTHER
    if is_upgrade(request):
        return RequestKind.UPGRADE
    if request.path in PROBES:
        return RequestKind.PROBE
    is_first = getattr(request.protocol, "unused_since", None) is not None
    return RequestKind.FIRST_QUESTION if is_first else RequestKind.QUESTION


def _add_metrics(application: web.Application, metrics: MetricsPage) -> None:
    async def figures(request: web.Request) -> web.Response:
        return await _metrics_response(request, metrics, is_operator=False)

    application.router.add_get("/metrics", figures)


def add_metrics_of_operators(admin: web.Application, metrics: MetricsPage) -> None:
    """Let the administration show metrics, too, with messages as examples of times."""

    async def figures(request: web.Request) -> web.Response:
        return await _metrics_response(request, metrics, is_operator=True)

    admin.router.add_get("/metrics", figures)


async def _metrics_response(
    request: web.Request, metrics: MetricsPage, *, is_operator: bool
) -> web.Response:
    """Return the metrics in the form that the request accepts; only operators get ids."""
    accept = ",".join(request.headers.getall("Accept", ()))
    form = accepted_form(accept, is_operator=is_operator)
    headers = {"Content-Type": form.kind, "Vary": "Accept"}
    return web.Response(body=await metrics.text(form), headers=headers)


def _add_map(application: web.Application, shards: bytes) -> None:
    async def cluster_map(_: web.Request) -> web.Response:
        return web.Response(body=shards, headers={"Content-Type": JSON_TYPE})

    application.router.add_get("/cluster/map", cluster_map)


async def _add_common_headers(
    hsts: Mapping[str, str], request: web.Request, response: web.StreamResponse
) -> None:
    """Add the headers of every response. None of them reveals a version."""
    response.headers["Server"] = FIXED_HEADERS["Server"]
    response.headers.update(hsts)
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if request.path.startswith("/static/"):
        response.headers.update(PAGE_HEADERS)
