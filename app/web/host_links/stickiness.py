"""Tells clients the host with their session, which is where proxies then send their requests."""

from collections.abc import Callable
from typing import Final, Protocol, cast

from holdfast.bayeux.session import Exchange, Pipe
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.frames import unpack_reply
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


class ToldShard(FarShard):
    """Tells clients the host of their sessions with what that answers.

    Args:
        host_of: Returns the host that has a shard; empty if that is unknown.
    """

    def __init__(
        self,
        shard: int,
        clock: Callable[[], float],
        cookie: HostCookie,
        host_of: Callable[[int], str],
    ) -> None:
        super().__init__(shard, clock)
        self._shard = shard
        self._cookie, self._host_of = cookie, host_of

    def _answer(self, number: int, data: bytes) -> None:
        forwarded = self._exchanges.get(number)
        if forwarded is not None:
            exchange, host = forwarded.exchange, self._host_of(self._shard)
            # A client that gets an identity may keep this cookie, too.
            if _is_led_astray(exchange, host) and (
                _keeps_cookies(exchange.speaker) or unpack_reply(data).browser
            ):
                _tell(exchange, self._cookie, host)
        super()._answer(number, data)
