"""Requests for a host that is not this server: none of them gets further than here."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from app.bayeux.errors import BayeuxError
from app.delivery.notices import MISDIRECTED
from app.web.admin import faults
from app.web.endpoint import FIXED_HEADERS, JSON_TYPE, Endpoint, error_body
from app.web.hosts import Hosts

_SETTING = "host_name"
_TEXT = (
    "This server does not answer to the name in the address. If it is a name of this server, its "
    "operator says so: --host-name NAME, or host_name in the settings."
)
# What the log repeats of a host.
_LONGEST = 100

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def answering_to(hosts: Hosts, endpoint: Endpoint) -> Callable[..., Awaitable[web.StreamResponse]]:
    """The middleware of an application that is reached by these names."""

    @web.middleware
    async def check_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host")
        if hosts.are_ours(host):
            return await handler(request)
        why = f"{_SETTING} does not have it"
        endpoint.bayeux.notices.tell(MISDIRECTED, (host or "")[:_LONGEST], why)
        refused = _refusal(request.path, endpoint)
        if not request.content.is_eof():
            # The rest of the body is not worth reading.
            refused.force_close()
        return refused

    return check_host


def _refusal(path: str, endpoint: Endpoint) -> web.Response:
    """The answer, in the form that is usual at the path."""
    error = BayeuxError.HOST_UNKNOWN
    if path.startswith("/admin/"):
        return faults.failure(error.code, faults.NOT_ALLOWED, _TEXT)
    if any(path == each or path.startswith(f"{each}/") for each in endpoint.options.paths):
        headers = {"Content-Type": JSON_TYPE, **FIXED_HEADERS}
        return web.Response(status=error.code, body=error_body(error, _SETTING), headers=headers)
    return web.Response(status=error.code, text=f"{_TEXT}\n")
