"""Who may read which histories without a session, and what every response to them has."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from aiohttp import web

from holdfast.bayeux.state.waiting_readers import Live, ReaderGrants, WaitingReader
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.errors import ErrorReply, Refused, RequestRefused
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.basics.json_text import to_json
from holdfast.web.answering.endpoint import FIXED_HEADERS, JSON_TYPE, Endpoint, retry_headers
from holdfast.web.http.origins import OriginTrust
from holdfast.web.streams.reader_limits import Readers

# Returns the rights of a request that proves a login. Raises `Refused`.
Prove = Callable[[Caller, float], Awaitable[ReaderGrants]]

# Names under which clients of other servers send a token in a URL.
_TOKENS: Final = ("access_token", "token", "authorization")
_SHOWN: Final = "Stream-Next-Offset, Stream-Up-To-Date, Stream-Cursor, ETag, Retry-After"
_VARY: Final = "Origin, Authorization, Cookie, Accept-Encoding"

R = TypeVar("R", bound=web.StreamResponse)


class Admission:
    """Admits requests that read histories.

    Args:
        prove: Proves the login of a request; None if none is required.
    """

    def __init__(self, endpoint: Endpoint, prove: Prove | None) -> None:
        self._endpoint = endpoint
        self._channels = endpoint.bayeux.state.channels
        self._prove = prove
        options, state = endpoint.options, endpoint.bayeux.state
        self._node = node = state.node
        self.readers = Readers(
            options.max_readers,
            options.quota_readers,
            state.readers,
            lambda: f"{node.stamp():019d}",
            self.check,
        )

    @property
    def is_open(self) -> bool:
        """Whether everybody may read everything."""
        return self._prove is None

    async def reader(self, request: web.Request, names: Sequence[str], live: Live) -> WaitingReader:
        """Return who wants to read what, if it may. Raises `RequestRefused`.

        Args:
            names: The channels, as the request names them.
        """
        endpoint = self._endpoint
        endpoint.check_origin(request.headers)
        if any(name in request.query for name in _TOKENS):
            raise RequestRefused(ErrorReply.CREDENTIALS_IN_URL)
        caller = endpoint.caller(request)
        grants = await self._grants(caller)
        channels = [self._channel(each, is_one=live is not Live.EVENTS) for each in names]
        reader = WaitingReader(caller, grants, channels, live=live, since_ms=self._node.now_ms())
        self.check(reader)
        return reader

    def check(self, reader: WaitingReader) -> None:
        """Raise `RequestRefused` if the reader may not read its channels, or not any more."""
        rights = self._endpoint.bayeux.state.rights
        try:
            for channel in reader.channels:
                rights.check_reader(reader.grants, channel)
        except Refused as refused:
            raise _of_request(refused) from None

    def spend(self, reader: WaitingReader, size: int) -> None:
        """Count bytes against the budget of the reader's address. Raises `RequestRefused`."""
        reader.bytes += size
        if reader.caller.network:
            self._endpoint.budgets.admit_bytes(reader.caller, size, self._endpoint.clock())

    async def _grants(self, caller: Caller) -> ReaderGrants | None:
        if self._prove is None:
            return None
        try:
            return await self._prove(caller, self._endpoint.clock())
        except Refused as refused:
            raise _of_request(refused) from None

    def _channel(self, name: str, *, is_one: bool) -> Channel:
        channel = self._channels.get(name)
        is_ordinary = (
            channel is not None
            and channel.kind is Kind.BROADCAST
            and not (channel.is_system or (is_one and channel.is_wild))
        )
        if channel is None or not is_ordinary:
            raise RequestRefused(ErrorReply.HISTORY_MISSING)
        return channel

    def headers(self, request: web.Request) -> dict[str, str]:
        """Return the headers of a response."""
        headers = {**FIXED_HEADERS, "Vary": _VARY, "Cross-Origin-Resource-Policy": "same-origin"}
        cors = self._endpoint.cors(request.headers)
        if cors:
            headers |= cors | {"Access-Control-Expose-Headers": _SHOWN}
        if self._endpoint.origins.trust_of(request.headers) is OriginTrust.ALLOWED:
            headers["Cross-Origin-Resource-Policy"] = "cross-origin"
        return headers

    def refusal(
        self, request: web.Request, refused: RequestRefused, said: Mapping[str, object]
    ) -> web.Response:
        """Return a response with the code of the error as its status."""
        body = to_json([{"successful": False, "error": str(refused), **said}])
        headers = self.headers(request) | retry_headers(refused.wait_s)
        if "next" in said:
            headers["Stream-Next-Offset"] = str(said["next"])
        headers["Content-Type"] = JSON_TYPE
        return self.closing(web.Response(status=refused.error.code, body=body, headers=headers))

    def closing(self, response: R) -> R:
        """Let the connection end if the client's next request must reach another server."""
        if self._endpoint.bayeux.state.is_stopping:
            response.force_close()
        return response

    async def preflight(self, request: web.Request) -> web.Response:
        """Answer a browser that asks whether a page may read."""
        origin, host = request.headers.get("Origin"), request.headers.get("Host")
        allowed = self._endpoint.origins.preflight_headers(origin, host)
        if allowed:
            allowed["Access-Control-Allow-Methods"] = "GET, HEAD, OPTIONS"
            allowed["Access-Control-Allow-Headers"] = "Authorization, If-None-Match"
        return web.Response(headers=FIXED_HEADERS | allowed)


def _of_request(refused: Refused) -> RequestRefused:
    wait_s = (refused.advice or {}).get("interval", 0) / 1000
    return RequestRefused(refused.error, *refused.arguments, wait_s=wait_s)


def only_value(request: web.Request, name: str) -> str | None:
    """Return the value of a parameter, or None. Raises `RequestRefused` if it is repeated."""
    values = request.query.getall(name, [])
    if len(values) > 1:
        raise RequestRefused(ErrorReply.OFFSET_INVALID, "a parameter is given twice")
    return values[0] if values else None
