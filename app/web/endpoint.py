"""What all doors to the Bayeux server share: whatever is not bytes of one transport."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

import orjson

from app.bayeux.dispatch import Rest
from app.bayeux.errors import BayeuxError, RequestRefused
from app.bayeux.exchange import Exchange
from app.bayeux.server import Bayeux
from app.delivery.messages import Event
from app.web.burst import Burst
from app.web.cookies import BrowserCookie
from app.web.intake import Intake
from app.web.origins import Origins, Standing

log = logging.getLogger(__name__)

# Not told apart by content, so never to be guessed by a browser; different for different origins.
FIXED_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Origin",
    "Server": "Holdfast",
}
JSON_TYPE = "application/json;charset=UTF-8"

_wire_of = attrgetter("wire")

# Is told that a request was handled, or what to say as it failed.
Done = Callable[[BayeuxError | None], None]


@dataclass(frozen=True, slots=True)
class WebOptions:
    """What an operator can set about HTTP and WebSocket."""

    paths: tuple[str, ...] = ("/cometd", "/bayeux")
    transports: frozenset[str] = frozenset({"websocket", "long-polling", "callback-polling"})
    fast_lane: bool = True
    max_request_size: int = 4 * 1024 * 1024
    request_timeout_s: float = 30.0
    write_timeout_s: float = 30.0
    superseded_status: int = 409
    callback_parameter: str = "jsonp"
    callback_max_length: int = 64
    ws_messages_per_frame: int = 1
    ws_idle_timeout_s: float = 300.0
    ws_protocol: str | None = None
    cookie: BrowserCookie = field(default_factory=BrowserCookie)
    origins: Origins = field(default_factory=Origins)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The Bayeux server as the doors see it."""

    bayeux: Bayeux
    options: WebOptions
    clock: Callable[[], float]
    burst: Burst
    intake: Intake = field(default_factory=Intake)

    def check_origin(self, origin: str | None, host: str | None) -> None:
        """Raises `RequestRefused` for pages that nobody allowed to use this server."""
        if self.options.origins.standing(origin, host) is Standing.FOREIGN:
            raise RequestRefused(BayeuxError.ORIGIN_DENIED)

    def go_on(self, rest: Rest, exchange: Exchange, done: Done) -> None:
        """Handle the rest of a request from the next turn on, while others have theirs."""
        asyncio.get_running_loop().call_soon(self._go_on, rest, exchange, done)

    def _go_on(self, rest: Rest, exchange: Exchange, done: Done) -> None:
        try:
            is_done = rest.go_on(self.bayeux, self.clock())
        except Exception:
            done(self.give_up(exchange))
            return
        if is_done:
            done(None)
        else:
            self.go_on(rest, exchange, done)

    async def finish(self, rest: Rest, exchange: Exchange) -> BayeuxError | None:
        """The same, for who must wait for it; what to say if it failed."""
        outcome: asyncio.Future[BayeuxError | None] = asyncio.get_running_loop().create_future()
        self.go_on(rest, exchange, outcome.set_result)
        return await asyncio.shield(outcome)

    def give_up(self, exchange: Exchange) -> BayeuxError:
        """A fault of ours, in an `except` clause: no later answer is owed; says what to say now."""
        log.exception("a request failed")
        self.bayeux.abort(exchange, self.clock())
        return BayeuxError.SERVER_BUSY

    def status(self, exchange: Exchange) -> int:
        """The HTTP status of an answer: Bayeux's own failures are a 200."""
        return self.options.superseded_status if exchange.is_superseded else 200

    def headers(self, exchange: Exchange, origin: str | None, host: str | None) -> dict[str, str]:
        """The headers that not every answer has."""
        headers = self.options.origins.headers(origin, host) if origin is not None else {}
        if exchange.new_browser is not None:
            headers["Set-Cookie"] = self.options.cookie.header(exchange.new_browser)
        return headers


def join(exchange: Exchange, messages: Sequence[Event]) -> bytes:
    """Messages and replies as one array, without its brackets: queued messages come first."""
    if not messages:
        return b",".join(exchange.replies)
    wires = list(map(_wire_of, messages))
    if exchange.is_handshake:
        return b",".join([*exchange.replies, *wires])
    wires += exchange.replies
    return b",".join(wires)


def error_body(error: BayeuxError) -> bytes:
    """The answer to a request that was refused as a whole, in the form of any other answer."""
    return orjson.dumps([{"successful": False, "error": error.wire()}])
