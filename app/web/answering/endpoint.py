"""What all transports have in common: callers, budgets, origins, statuses and headers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

import orjson
from multidict import CIMultiDict

from holdfast.bayeux.limits.budgets import Budgets
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import Caller, Speaker
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.transports import SpeakerKind
from holdfast.delivery.basics.notices import FOREIGN, Notices
from holdfast.settings import Settings
from holdfast.web.http.cookies import BrowserCookie, is_cookieless
from holdfast.web.http.hosts import Hosts
from holdfast.web.http.origins import Origins, OriginTrust, only_value, shown_origin
from holdfast.web.http.peers import Peers
from holdfast.web.scheduling.endings import Endings
from holdfast.web.scheduling.intake import Intake
from holdfast.web.scheduling.reading_gate import ReadingGate
from holdfast.web.scheduling.request_scheduler import RequestScheduler
from holdfast.web.scheduling.speaking import SpeakingRight
from holdfast.web.scheduling.turn_budget import Turn
from holdfast.web.scheduling.write_coalescer import WriteCoalescer

if TYPE_CHECKING:
    from aiohttp import web

    from holdfast.web.http.host_cookie import HostCookie
    from holdfast.web.http.origins import Headers
    from holdfast.web.scheduling.request_sink import RequestSink

# Browsers must not guess the content type, and caches must distinguish origins.
FIXED_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Vary": "Origin",
    "Server": "Holdfast",
}
JSON_TYPE = "application/json;charset=UTF-8"
# The setting that lists the pages which may use the server.
_ALLOWED = "allow_origin"
# Where scripts publish without a session.
PUBLISH_PATH = "/publish"
# Where channels are read without a session: one below the first, several at the second.
STREAMS_PATH = "/streams"
EVENTS_PATH = "/events"
# The longest part of a host or an origin that the log repeats.
LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The Bayeux server as the transports see it."""

    bayeux: Bayeux
    notices: Notices
    budgets: Budgets
    options: Settings
    cookie: BrowserCookie
    origins: Origins
    hosts: Hosts
    peers: Peers
    clock: Callable[[], float]
    coalescer: WriteCoalescer
    turn: Turn
    intake: Intake
    scheduler: RequestScheduler
    # What front ends pass requests to: mostly the scheduler.
    requests: "RequestSink"
    right: SpeakingRight
    endings: Endings = field(default_factory=Endings)
    gate: ReadingGate = field(default_factory=ReadingGate)
    # What tells clients the host of their sessions, if there are several.
    host_cookie: "HostCookie | None" = None
    # The page of errors as clients find it; empty without documentation.
    errors: str = ""

    def check_origin(self, headers: "Headers") -> OriginTrust:
        """Return how far the page that sent a request is trusted.

        Raises `RequestRefused` if the page may not use this server.
        """
        trust = self.origins.trust_of(headers)
        if trust is OriginTrust.FOREIGN:
            self.report_foreign(headers)
            raise origin_denied()
        return trust

    def report_foreign(self, headers: "Headers") -> None:
        """Log that a request of a foreign page is refused."""
        why = f"{_ALLOWED} does not have it"
        self.notices.report(FOREIGN, shown_origin(headers)[:LONGEST_SHOWN], why)

    def caller(self, request: "web.BaseRequest") -> Caller:
        """Identify and admit the caller of a request. Raises `RequestRefused` beyond a budget."""
        caller = self.peers.caller(request.headers, request.transport)
        self.admit(caller)
        return caller

    def admit(self, caller: Caller) -> None:
        """Count a request against the caller's budgets. Raises `RequestRefused` beyond one."""
        if caller.network:
            self.budgets.admit(caller, self.clock())

    def admit_body(self, caller: Caller, body: bytes) -> None:
        """Count a body against the caller's budgets. Raises `RequestRefused` beyond one."""
        if caller.network:
            self.budgets.admit_bytes(caller, len(body), self.clock())

    def speaker(self, headers: "Headers", caller: Caller, kind: SpeakerKind) -> Speaker:
        """Identify the browser, or the program, behind a request."""
        is_program = kind is SpeakerKind.PROGRAM
        cookies = headers.getall("Cookie", ())
        return Speaker(
            caller,
            self.cookie.find(cookies),
            is_cookieless=is_program and is_cookieless(headers),
            kind=kind,
            host=None if self.host_cookie is None else self.host_cookie.find(cookies),
        )

    def cors(self, headers: "Headers") -> dict[str, str]:
        """Return the CORS headers of responses to a request with these headers."""
        return self.origins.headers(only_value(headers, "Origin"), headers.get("Host"))

    def preflight_headers(self, headers: "Headers") -> dict[str, str]:
        """Return the headers that tell a browser whether its page may send a request."""
        if self.origins.trust_of(headers) is OriginTrust.FOREIGN:
            # The browser will not send the request.
            self.report_foreign(headers)
        origin, host = only_value(headers, "Origin"), headers.get("Host")
        return FIXED_HEADERS | self.origins.preflight_headers(origin, host)

    def status(self, exchange: Exchange) -> int:
        """Return the HTTP status of a response; error replies of Bayeux have status 200."""
        if not exchange.is_superseded:
            return 200
        return self.options.duplicate_meta_connect_http_response_code

    def error_body(self, refused: RequestRefused) -> bytes:
        """Return the body of the response to a refused request, and count the error."""
        self.bayeux.state.counters.errors[refused.error.reason] += 1
        return error_body(refused)

    def headers(self, exchange: Exchange, others: Mapping[str, str]) -> Mapping[str, str]:
        """Return these headers with the ones that depend on the exchange."""
        if exchange.new_browser is None:
            return others
        return with_cookie(others, self.cookie.header(exchange.new_browser))


def with_cookie(headers: Mapping[str, str], cookie: str) -> Mapping[str, str]:
    """Return these headers with one more `Set-Cookie`."""
    found = CIMultiDict(headers)
    found.add("Set-Cookie", cookie)
    return found


def hsts_headers(seconds: int | None) -> dict[str, str]:
    """Return the HSTS header of every response, if it is configured."""
    return {} if seconds is None else {"Strict-Transport-Security": f"max-age={seconds}"}


def retry_headers(wait_s: float) -> dict[str, str]:
    """`Retry-After`, if it is known when the client may try again."""
    return {"Retry-After": str(ceil(wait_s))} if wait_s > 0.0 else {}


def origin_denied() -> RequestRefused:
    """Return the refusal of a foreign page. It names the setting that would allow the page."""
    return RequestRefused(ErrorReply.ORIGIN_DENIED, _ALLOWED)


def error_body(refused: RequestRefused) -> bytes:
    """The body of the response to a request that is refused as a whole: one error reply."""
    return orjson.dumps([{"successful": False, "error": str(refused)}])
