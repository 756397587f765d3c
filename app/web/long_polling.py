"""Long-polling through aiohttp's ordinary door: a route, a request, a response."""

import asyncio
import logging
from collections.abc import Sequence

from aiohttp import web

from app.bayeux.caller import Caller
from app.bayeux.errors import BayeuxError, RequestRefused
from app.bayeux.exchange import ConnectionType, Exchange, Source
from app.delivery.messages import Event
from app.web.bodies import read_body
from app.web.cookies import is_cookieless
from app.web.endpoint import (
    FIXED_HEADERS,
    JSON_TYPE,
    Endpoint,
    error_body,
    join,
    retry_headers,
)
from app.web.origins import said, source_of

log = logging.getLogger(__name__)


class Waiting:
    """A carrier whose request is a coroutine that waits for the answer."""

    def __init__(self, request: web.Request, connection_type: ConnectionType) -> None:
        self.connection_type = connection_type
        self._request = request
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        transport = self._request.transport
        if self._answer.done() or transport is None or transport.is_closing():
            return False
        self._answer.set_result(join(exchange, messages))
        return True

    def is_draining(self) -> bool:
        transport = self._request.transport
        return transport is not None and self._request.protocol.writing_paused

    def fail(self, error: BayeuxError | None) -> None:
        """The request could not be handled to its end, if there is an error."""
        if error is not None and not self._answer.done():
            self._answer.set_exception(RequestRefused(error))

    def is_lost(self) -> bool:
        # Where every request has its own connection, that this one has ended says nothing.
        transport = self._request.transport
        return self._request.keep_alive and (transport is None or transport.is_closing())

    async def wait(self) -> bytes:
        return await self._answer


async def exchange_over_http(
    request: web.Request,
    endpoint: Endpoint,
    caller: Caller,
    connection_type: ConnectionType,
    body: bytes,
    source: Source,
) -> tuple[Exchange, bytes]:
    """Carry out one request; returns with its answer, however long that takes."""
    endpoint.admit_body(caller, body)
    carrier = Waiting(request, connection_type)
    browsers = endpoint.options.cookie.find(request.headers.getall("Cookie", ()))
    is_program = connection_type is ConnectionType.LONG_POLLING and is_cookieless(request.headers)
    exchange = Exchange(carrier, browsers, is_cookieless=is_program, caller=caller, source=source)
    try:
        rest = endpoint.turns.receive(body, exchange)
    except RequestRefused:
        raise
    except BaseException:
        carrier.fail(endpoint.turns.give_up(exchange))
    else:
        if rest is not None:
            rest.done = carrier.fail
    try:
        return exchange, await carrier.wait()
    except asyncio.CancelledError:
        # The client is gone: its connection was lost while the request was held.
        endpoint.bayeux.abort(exchange, endpoint.clock())
        raise


async def long_poll(request: web.Request, endpoint: Endpoint) -> web.Response:
    """A POST to the Bayeux path."""
    try:
        source = source_of(endpoint.check_origin(request.headers))
        if ConnectionType.LONG_POLLING.value not in endpoint.options.transports:
            raise RequestRefused(BayeuxError.TRANSPORT_UNKNOWN)
        caller = endpoint.caller(request)
        body = await read_body(request, endpoint)
        exchange, answer = await exchange_over_http(
            request, endpoint, caller, ConnectionType.LONG_POLLING, body, source
        )
    except RequestRefused as refused:
        return refusal(request, refused.error, endpoint, refused.wait_s)
    origin, host = said(request.headers, "Origin"), request.headers.get("Host")
    headers = {
        "Content-Type": JSON_TYPE,
        **FIXED_HEADERS,
        **endpoint.headers(exchange, origin, host),
    }
    status = endpoint.status(exchange)
    return web.Response(status=status, body=b"[" + answer + b"]", headers=headers)


def refusal(
    request: web.Request, error: BayeuxError, endpoint: Endpoint, wait_s: float = 0.0
) -> web.Response:
    """The answer to a request that was refused as a whole."""
    origin, host = said(request.headers, "Origin"), request.headers.get("Host")
    cors = endpoint.options.origins.headers(origin, host)
    headers = {"Content-Type": JSON_TYPE, **FIXED_HEADERS, **cors, **retry_headers(wait_s)}
    response = web.Response(status=error.code, body=error_body(error), headers=headers)
    if not request.content.is_eof():
        # The rest of the body is not worth reading.
        response.force_close()
    return response
