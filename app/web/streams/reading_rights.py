"""Who may read which histories without a session, and what every response to them has."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from aiohttp import web

from holdfast.bayeux.state.waiting_readers import Live, ReaderGrants, WaitingReader
from holdfast.bayeux.wire.caller import Caller
from holdfast.bayeux.wire.errors import ErrorReply, Refused, RequestRefused
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.basics.json_text import to_json
from holdfast.web.answering.endpoint import FIXED_HEADERS, JSON_TYPE, Endpoint, retry_headers
from holdfast.web.http.origins import OriginTrust
from holdfast.web.streams.reader_limits import Readers

G = TypeVar("G", bound=ReaderGrants)


class ReaderLogins(Protocol[G]):
    """Proves logins of requests without a session. All its methods raise `Refused`."""

    async def grants_of(self, caller: Caller, now: float, /) -> G:
        """Return the rights of a request that proves a login."""
        ...

    async def decide(self, caller: Caller, grants: G, channels: Sequence[str], /) -> None:
        """Have the backend asked what a request may read, where rules say so."""
        ...

    def ticket_of(self, grants: G, channels: Sequence[str], /) -> tuple[str, float]:
        """Return a ticket that lets a URL read channels, and when it ends."""
        ...

    def grants_by(self, ticket: str, /) -> G:
        """Return the rights that a ticket gives."""
        ...


# Names under which clients of other servers send a token in a URL.
_TOKENS: Final = ("access_token", "token", "authorization")
_MOST_CHANNELS: Final = 100
_SHOWN: Final = "Stream-Next-Offset, Stream-Up-To-Date, Stream-Cursor, ETag, Retry-After"
# Browsers themselves send the last one without asking; clients that read by `fetch` do ask.
_ASKED: Final = "Authorization, If-None-Match, Last-Event-ID"
_VARY: Final = "Origin, Authorization, Cookie, Accept-Encoding"

R = TypeVar("R", bound=web.StreamResponse)


class Admission:
    """Admits requests that read histories.

    Args:
        logins: Prove logins of requests; None if none is required.
    """

    def __init__(self, endpoint: Endpoint, logins: ReaderLogins[Any] | None) -> None:
        self._endpoint = endpoint
        self._channels = endpoint.bayeux.state.channels
        self._logins = logins
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
        return self._logins is None

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
        grants = await self._grants(caller, only_value(request, "ticket"))
        if not 1 <= len(names) <= _MOST_CHANNELS:
            raise RequestRefused(ErrorReply.CHANNEL_MISSING)
        channels = [self._channel(each, is_one=live is not Live.EVENTS) for each in names]
        if self._logins is not None:
            await self._logins.decide(caller, grants, [each.name for each in channels])
        reader = WaitingReader(caller, grants, channels, live=live, since_ms=self._node.now_ms())
        self.check(reader)
        return reader

    def check(self, reader: WaitingReader) -> None:
        """Raise `RequestRefused` if the reader may not read its channels, or not any more."""
        rights, grants = self._endpoint.bayeux.state.rights, reader.grants
        if grants is not None and grants.is_ticket and grants.ends_s <= time.time():
            raise RequestRefused(ErrorReply.TICKET_EXPIRED)
        try:
            for channel in reader.channels:
                rights.check_reader(grants, channel)
        except Refused as refused:
            raise of_request(refused) from None

    def spend(self, reader: WaitingReader, size: int) -> None:
        """Count bytes against the budget of the reader's address. Raises `RequestRefused`."""
        reader.bytes += size
        self._endpoint.coalescer.sent += size
        if reader.caller.network:
            self._endpoint.budgets.admit_bytes(reader.caller, size, self._endpoint.clock())

    async def _grants(self, caller: Caller, ticket: str | None) -> ReaderGrants | None:
        if self._logins is None:
            return None
        try:
            grants: ReaderGrants
            if ticket is None:
                grants = await self._logins.grants_of(caller, self._endpoint.clock())
            else:
                grants = self._logins.grants_by(ticket)
        except Refused as refused:
            raise of_request(refused) from None
        return grants

    def _channel(self, name: str, *, is_one: bool) -> Channel:
        channel = self._channels.get(name)
        if channel is None:
            raise RequestRefused(ErrorReply.HISTORY_MISSING, "not the name of a channel")
        if channel.is_wild and is_one:
            raise RequestRefused(ErrorReply.HISTORY_MISSING, "a pattern is read by /events")
        if channel.is_system or channel.kind is not Kind.BROADCAST:
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
        self._endpoint.bayeux.state.counters.errors[refused.error.reason] += 1
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
            allowed["Access-Control-Allow-Methods"] = "GET, HEAD, POST, OPTIONS"
            allowed["Access-Control-Allow-Headers"] = _ASKED
        return web.Response(headers=FIXED_HEADERS | allowed)


def of_request(refused: Refused) -> RequestRefused:
    """Return the refusal of a request as a whole."""
    wait_s = (refused.advice or {}).get("interval", 0) / 1000
    return RequestRefused(refused.error, *refused.arguments, wait_s=wait_s)


def only_value(request: web.Request, name: str) -> str | None:
    """Return the value of a parameter, or None. Raises `RequestRefused` if it is repeated."""
    values = request.query.getall(name, [])
    if len(values) > 1:
        raise RequestRefused(ErrorReply.OFFSET_INVALID, "a parameter is given twice")
    return values[0] if values else None


def channels_of(request: web.Request) -> list[str]:
    """Return the channels that a request names."""
    return request.query.getall("channel", [])
