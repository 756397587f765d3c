"""What clients and probes get while there is no server: `try again`."""

import socket
from collections.abc import Sequence

from aiohttp import web

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.web.admin.faults import AWAY_FOR_NOW, RequestFailed, failure
from holdfast.web.answering.endpoint import (
    EVENTS_PATH,
    FIXED_HEADERS,
    JSON_TYPE,
    error_body,
    retry_headers,
)
from holdfast.web.http.addresses import BACKLOG, Address
from holdfast.web.http.origins import Origins
from holdfast.web.tasks import reached

# When a client should try again: a server may be there at any time.
_RETRY_S = 1.0
# For how long the clients that connected last may take to ask.
_ANSWERING_S = 0.2


class StandbyDoor:
    """Listens where the server will, until that can.

    Args:
        origins: Pages of these learn that they should try again.
    """

    def __init__(
        self, address: Address, origins: Origins, *, is_healthy: bool, reason: str
    ) -> None:
        self._address, self._origins = address, origins
        self._is_healthy = is_healthy
        self._reason = reason
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        application.router.add_get("/readyz", self._readyz)
        application.router.add_get(EVENTS_PATH, self._refuse_page)
        application.router.add_route("*", "/admin/{path:.*}", self._refuse_operator)
        application.router.add_route("*", "/{path:.*}", _refuse)
        self._runner = web.AppRunner(application, access_log=None)

    async def open(self, listening: Sequence[socket.socket]) -> None:
        """Answer at these sockets."""
        await self._runner.setup()
        for each in listening:
            tls = self._address.tls
            await web.SockSite(self._runner, each, ssl_context=tls, backlog=BACKLOG).start()

    async def close(self) -> None:
        """Make room for the server. Clients that have just connected are still answered."""
        for each in [*self._runner.sites]:
            await each.stop()
        server = self._runner.server
        if server is not None:
            await reached(_ANSWERING_S, lambda: not server.connections)
        await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        if self._is_healthy:
            return _last(web.Response(text="ok\n"))
        return self._unready()

    async def _readyz(self, _: web.Request) -> web.Response:
        return self._unready()

    async def _refuse_operator(self, _: web.Request) -> web.Response:
        """Say it in the words of the administration."""
        return _last(failure(RequestFailed(AWAY_FOR_NOW, self._reason)))

    async def _refuse_page(self, request: web.Request) -> web.Response:
        """Let a browser try again: after another status than 200, `EventSource` never does."""
        # Not until somebody asks: a standby starts with little.
        from holdfast.web.streams.open_response import HEADERS
        from holdfast.web.streams.sent_events import farewell

        refused = RequestRefused(ErrorReply.SERVER_BUSY, wait_s=_RETRY_S)
        headers = self._origins.headers(request.headers.get("Origin"), request.headers.get("Host"))
        return _last(
            web.Response(body=farewell(refused), headers={**FIXED_HEADERS, **headers, **HEADERS})
        )

    def _unready(self) -> web.Response:
        return _last(web.Response(status=503, text=self._reason + "\n"))


async def _refuse(_: web.Request) -> web.Response:
    refused = error_body(RequestRefused(ErrorReply.SERVER_BUSY))
    return _last(web.Response(status=503, body=refused, headers={"Content-Type": JSON_TYPE}))


def _last(response: web.Response) -> web.Response:
    """Close the connection with this response: the next request is for the server."""
    if response.status != 200:
        response.headers.update(retry_headers(_RETRY_S))
    response.force_close()
    return response
