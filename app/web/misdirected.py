"""Refuses requests for hosts that are not this server's, and shows the way from wrong paths."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from holdfast.bayeux.wire.command_refused import NOT_ALLOWED
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.delivery.basics.notices import MISDIRECTED
from holdfast.web.admin import faults
from holdfast.web.admin.faults import RequestFailed
from holdfast.web.answering.endpoint import (
    EVENTS_PATH,
    FIXED_HEADERS,
    JSON_TYPE,
    LONGEST_SHOWN,
    PUBLISH_PATH,
    STREAMS_PATH,
    Endpoint,
)
from holdfast.web.http.hosts import Hosts

_SETTING = "host_name"
_TEXT = (
    "This server does not answer to the name in the address. If it is a name of this server, its "
    "operator must list it with --host-name NAME, or host_name in the settings."
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answering_to(hosts: Hosts, endpoint: Endpoint) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that admits only requests for these hosts."""

    @web.middleware
    async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host")
        if hosts.are_ours(host):
            return await handler(request)
        why = f"{_SETTING} does not have it"
        endpoint.notices.report(MISDIRECTED, (host or "")[:LONGEST_SHOWN], why)
        refused = _refusal(request.path, endpoint)
        if not request.content.is_eof():
            # Do not read the rest of the body.
            refused.force_close()
        return refused

    return check_host


def showing_the_way(endpoint: Endpoint) -> Callable[..., Awaitable[web.StreamResponse]]:
    """Return the middleware that says on wrong paths, and to wrong methods, what is right."""
    paths = " or ".join(endpoint.options.paths)
    way = (
        f"There is nothing at this path. Clients connect to {paths} by POST or WebSocket, scripts "
        f"publish by POST to {PUBLISH_PATH}, and people begin at /\n"
    )

    @web.middleware
    async def show(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except (web.HTTPMethodNotAllowed, web.HTTPNotFound) as error:
            cors = endpoint.cors(request.headers)
            if cors and request.method == "OPTIONS":
                # The browser asks first. If it is refused, the page never sees the sentence.
                return web.Response(headers=endpoint.preflight_headers(request.headers))
            error.text = way
            if isinstance(error, web.HTTPMethodNotAllowed):
                error.text = f"This path takes {' or '.join(sorted(error.allowed_methods))} only.\n"
            error.headers.update({"Vary": "Origin", **cors})
            raise

    return show


def _refusal(path: str, endpoint: Endpoint) -> web.Response:
    """Return the refusal, in the form that suits the path."""
    error = ErrorReply.HOST_UNKNOWN
    if path.startswith("/admin/"):
        return faults.failure(RequestFailed(NOT_ALLOWED, _TEXT, status=error.code))
    paths = (*endpoint.options.paths, STREAMS_PATH, EVENTS_PATH)
    if path == PUBLISH_PATH or any(path == each or path.startswith(f"{each}/") for each in paths):
        headers = {"Content-Type": JSON_TYPE, **FIXED_HEADERS}
        body = endpoint.error_body(RequestRefused(error, _SETTING))
        return web.Response(status=error.code, body=body, headers=headers)
    return web.Response(status=error.code, text=f"{_TEXT}\n")
