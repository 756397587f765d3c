"""Long-polling on the aiohttp front end."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aiohttp import web

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.bayeux.wire.unfit import malformed
from holdfast.delivery.messages.message import Event
from holdfast.web.answering.bodies import read_messages
from holdfast.web.answering.endpoint import (
    FIXED_HEADERS,
    JSON_TYPE,
    Endpoint,
    hsts_headers,
    retry_headers,
    with_cookie,
)
from holdfast.web.http.origins import speaker_kind_of


class Waiting:
    """A carrier for a request handler that awaits its response."""

    def __init__(self, request: web.Request, connection_type: ConnectionType) -> None:
        self.connection_type = connection_type
        self._request = request
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        # Another `Set-Cookie` of the response.
        self.cookie: str | None = None

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        transport = self._request.transport
        if self._answer.done() or transport is None or transport.is_closing():
            return False
        self._answer.set_result(exchange.body_with(messages))
        return True

    def is_draining(self) -> bool:
        transport = self._request.transport
        return transport is not None and self._request.protocol.writing_paused

    def has_unread(self) -> bool:
        # A later request on the connection may come from any client.
        return False

    def fail(self, refused: RequestRefused | None) -> None:
        """End the exchange; with a refusal, the request could not be completed."""
        if refused is not None and not self._answer.done():
            self._answer.set_exception(refused)

    def is_lost(self) -> bool:
        # If every request has a separate connection, the end of this one means nothing.
        transport = self._request.transport
        return self._request.keep_alive and (transport is None or transport.is_closing())

    async def wait(self) -> bytes:
        return await self._answer

    def set_cookie(self, _: Exchange, cookie: str) -> None:
        """Send this `Set-Cookie` with the response."""
        self.cookie = cookie


class Answered(NamedTuple):
    """An exchange with its answer."""

    exchange: Exchange
    body: bytes
    # Another `Set-Cookie` of the response.
    cookie: str | None

    def headers(self, endpoint: Endpoint, others: Mapping[str, str]) -> Mapping[str, str]:
        """Return these headers with the ones that depend on the exchange."""
        headers = endpoint.headers(self.exchange, others)
        return headers if self.cookie is None else with_cookie(headers, self.cookie)


async def exchange_over_http(
    request: web.Request,
    endpoint: Endpoint,
    speaker: Speaker,
    connection_type: ConnectionType,
    body: bytes,
) -> Answered:
    """Run one exchange. Returns when it is answered, however long that takes."""
    endpoint.admit_body(speaker.caller, body)
    carrier = Waiting(request, connection_type)
    exchange = Exchange(carrier, speaker)
    try:
        rest = endpoint.requests.receive(body, exchange)
    except RequestRefused:
        raise
    except BaseException:
        carrier.fail(endpoint.requests.fail(exchange))
    else:
        if rest is not None:
            rest.done = carrier.fail
    try:
        return Answered(exchange, await carrier.wait(), carrier.cookie)
    except asyncio.CancelledError:
        # The client's connection was lost while the request was held.
        endpoint.requests.abort(exchange)
        raise


async def long_poll(request: web.Request, endpoint: Endpoint) -> web.Response:
    """Handle a POST to a Bayeux path."""
    try:
        kind = speaker_kind_of(endpoint.check_origin(request.headers))
        if ConnectionType.LONG_POLLING not in endpoint.options.transports:
            raise RequestRefused(ErrorReply.TRANSPORT_UNKNOWN)
        caller = endpoint.caller(request)
        body = await read_messages(request, endpoint, caller.network)
        speaker = endpoint.speaker(request.headers, caller, kind)
        answered = await exchange_over_http(
            request, endpoint, speaker, ConnectionType.LONG_POLLING, body
        )
    except RequestRefused as refused:
        return refusal(request, refused, endpoint)
    fixed = {"Content-Type": JSON_TYPE, **FIXED_HEADERS, **endpoint.cors(request.headers)}
    headers = answered.headers(endpoint, fixed)
    status = endpoint.status(answered.exchange)
    return web.Response(status=status, body=answered.body, headers=headers)


def refusal(request: web.Request, refused: RequestRefused, endpoint: Endpoint) -> web.Response:
    """Return the response to a request that is refused as a whole."""
    cors = endpoint.cors(request.headers)
    headers = {"Content-Type": JSON_TYPE, **FIXED_HEADERS, **cors, **retry_headers(refused.wait_s)}
    body = endpoint.error_body(refused)
    response = web.Response(status=refused.error.code, body=body, headers=headers)
    if not request.content.is_eof():
        # Do not read the rest of the body.
        response.force_close()
    return response


def not_http(endpoint: Endpoint) -> web.Response:
    """Return the response to bytes that are no request. It quotes nothing from them."""
    refused = malformed("not HTTP")
    hsts = hsts_headers(endpoint.options.hsts_s)
    headers = {"Content-Type": JSON_TYPE, **FIXED_HEADERS, **hsts}
    body = endpoint.error_body(refused)
    response = web.Response(status=refused.error.code, body=body, headers=headers)
    response.force_close()
    return response
