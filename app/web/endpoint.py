"""What all doors to the Bayeux server share: whatever is not bytes of one transport."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil
from operator import attrgetter
from typing import TYPE_CHECKING

import orjson

from app.bayeux.caller import Caller
from app.bayeux.errors import BayeuxError, RequestRefused
from app.bayeux.exchange import Exchange
from app.bayeux.server import Bayeux
from app.delivery.messages import Event
from app.web.burst import Burst
from app.web.cookies import BrowserCookie
from app.web.hosts import Hosts
from app.web.intake import Intake
from app.web.origins import Origins, Standing
from app.web.peers import Peers
from app.web.turns import Turns

if TYPE_CHECKING:
    from aiohttp import web

    from app.web.origins import Headers

# Not told apart by content, so never to be guessed by a browser; different for different origins.
FIXED_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Origin",
    "Server": "Holdfast",
}
JSON_TYPE = "application/json;charset=UTF-8"

_wire_of = attrgetter("wire")


@dataclass(frozen=True, slots=True)
class WebOptions:
    """What an operator can set about HTTP and WebSocket."""

    paths: tuple[str, ...] = ("/cometd", "/bayeux")
    transports: frozenset[str] = frozenset({"websocket", "long-polling"})
    fast_lane: bool = True
    max_request_size: int = 4 * 1024 * 1024
    request_timeout_s: float = 30.0
    write_timeout_s: float = 30.0
    superseded_status: int = 409
    callback_parameter: str = "jsonp"
    callback_max_length: int = 64
    ws_messages_per_frame: int = 1
    ws_idle_timeout_s: float = 300.0
    ws_session_timeout_s: float = 10.0
    ws_protocol: str | None = None
    hsts_s: int | None = None
    cookie: BrowserCookie = field(default_factory=BrowserCookie)
    origins: Origins = field(default_factory=Origins)
    hosts: Hosts = field(default_factory=Hosts)
    peers: Peers = field(default_factory=Peers)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The Bayeux server as the doors see it."""

    bayeux: Bayeux
    options: WebOptions
    clock: Callable[[], float]
    burst: Burst
    intake: Intake = field(default_factory=Intake)
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "turns", Turns(self.bayeux, self.clock, self.intake))

    def check_origin(self, headers: "Headers") -> Standing:
        """What the page behind a request is to us, unless it may not use this server.

        Raises `RequestRefused`.
        """
        standing = self.options.origins.standing_of(headers)
        if standing is Standing.FOREIGN:
            raise RequestRefused(BayeuxError.ORIGIN_DENIED)
        return standing

    def caller(self, request: "web.BaseRequest") -> Caller:
        """Who sent a request that has just come. Raises `RequestRefused` beyond a budget."""
        caller = self.options.peers.caller(request.headers, request.transport)
        self.admit(caller)
        return caller

    def admit(self, caller: Caller) -> None:
        """A request of this caller has come. Raises `RequestRefused` beyond a budget."""
        if caller.network:
            self.bayeux.budgets.admit(caller, self.clock())

    def admit_body(self, caller: Caller, body: bytes) -> None:
        """Its body has come. Raises `RequestRefused` beyond a budget."""
        if caller.network:
            self.bayeux.budgets.admit_bytes(caller, len(body), self.clock())

    def status(self, exchange: Exchange) -> int:
        """The HTTP status of an answer: Bayeux's own failures are a 200."""
        return self.options.superseded_status if exchange.is_superseded else 200

    def headers(self, exchange: Exchange, origin: str | None, host: str | None) -> dict[str, str]:
        """The headers that not every answer has."""
        headers = self.options.origins.headers(origin, host) if origin is not None else {}
        if exchange.new_browser is not None:
            headers["Set-Cookie"] = self.options.cookie.header(exchange.new_browser)
        return headers


def hsts_headers(seconds: int | None) -> dict[str, str]:
    """What tells browsers to use TLS alone, if anything does; part of every answer."""
    return {} if seconds is None else {"Strict-Transport-Security": f"max-age={seconds}"}


def join(exchange: Exchange, messages: Sequence[Event]) -> bytes:
    """Messages and replies as one array, without its brackets: queued messages come first."""
    if not messages:
        return b",".join(exchange.replies)
    wires = list(map(_wire_of, messages))
    if exchange.is_handshake:
        return b",".join([*exchange.replies, *wires])
    wires += exchange.replies
    return b",".join(wires)


def retry_headers(wait_s: float) -> dict[str, str]:
    """When a client may come again, if that is known."""
    return {"Retry-After": str(ceil(wait_s))} if wait_s > 0.0 else {}


def error_body(error: BayeuxError, *args: str) -> bytes:
    """The answer to a request that was refused as a whole, in the form of any other answer."""
    return orjson.dumps([{"successful": False, "error": error.wire(*args)}])
