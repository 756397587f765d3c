"""Tells clients the host with their session, which is where proxies then send their requests."""

from collections.abc import Callable
from typing import Final, Protocol, cast

from holdfast.bayeux.session import Exchange, Pipe
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.http.host_cookie import HostCookie
from holdfast.web.scheduling.request_scheduler import UnfinishedRequest
from holdfast.web.scheduling.request_sink import RequestSink

# In what may be a handshake. It may be written in several ways, and others may have it, too.
_HANDSHAKE: Final = b"handshake"


class _SetsCookies(Protocol):
    """The carrier of a request that came by HTTP."""

    def set_cookie(self, exchange: Exchange, cookie: str, /) -> None:
        """Send this `Set-Cookie` with the response to the exchange."""
        ...


def _is_led_astray(exchange: Exchange, host: str) -> bool:
    """Return whether the cookie of a request is not the one of this host.

    Sockets have had all their headers, and publishes without a session have no host.
    """
    shown = exchange.speaker.host
    return shown is not None and shown != host and exchange.pipe is None and host != ""


def _keeps_cookies(speaker: Speaker) -> bool:
    """Return whether a client has shown a cookie: others would be told again with each reply."""
    return bool(speaker.host or speaker.browsers)


def _tell(exchange: Exchange, cookie: HostCookie, host: str) -> None:
    cast("_SetsCookies", exchange.carrier).set_cookie(exchange, cookie.header(host))


class OwnSessions:
    """Handles the requests of sessions in this process, and tells their clients this host."""

    def __init__(self, sink: RequestSink, cookie: HostCookie) -> None:
        self._sink, self._cookie = sink, cookie

    def receive(self, body: bytes, exchange: Exchange) -> UnfinishedRequest | None:
        own = self._cookie.own
        if _is_led_astray(exchange, own) and (
            _keeps_cookies(exchange.speaker) or _HANDSHAKE in body
        ):
            _tell(exchange, self._cookie, own)
        return self._sink.receive(body, exchange)

    def fail(self, exchange: Exchange) -> RequestRefused:
        return self._sink.fail(exchange)

    def abort(self, exchange: Exchange) -> None:
        self._sink.abort(exchange)

    def detach(self, pipe: Pipe) -> None:
        self._sink.detach(pipe)

    def drained(self, pipe: Pipe) -> None:
        self._sink.drained(pipe)


def telling(cookie: HostCookie, host_of: Callable[[], str]) -> Callable[[Exchange], None]:
    """Return what tells the client of an exchange the host of its session, with the answer.

    Args:
        host_of: Returns the host that answers; empty if that is unknown.
    """

    def tell(exchange: Exchange) -> None:
        host = host_of()
        # A client that gets an identity may keep this cookie, too.
        if _is_led_astray(exchange, host) and (
            _keeps_cookies(exchange.speaker) or exchange.new_browser is not None
        ):
            _tell(exchange, cookie, host)

    return tell
