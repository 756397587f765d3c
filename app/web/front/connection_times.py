"""The time limits of a connection: for requests, for silence, and for clients that do not read."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from holdfast.delivery.basics.notices import CUT
from holdfast.web.answering.endpoint import Endpoint

if TYPE_CHECKING:
    from holdfast.bayeux.session import Exchange


class _Left:
    """A transport that a client has left, and that is closed in a later turn."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def is_closing(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class TimedConnection(RequestHandler):
    """aiohttp's connection handler with the server's own time limits."""

    __slots__ = ("_deadline", "_endpoint", "_exchange", "_stall", "began_at")

    def __init__(self, endpoint: Endpoint, manager: web.Server) -> None:
        super().__init__(manager, loop=asyncio.get_running_loop(), **manager._kwargs)
        self._endpoint = endpoint
        # The exchange that has not been answered yet.
        self._exchange: Exchange | None = None
        # When the first byte of the unfinished request arrived.
        self.began_at: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    # A request

    def _start_reading(self) -> None:
        """Start the timeout of a request that has begun."""
        if self.began_at is None:
            self.began_at = self._loop.time()
            due = self.began_at + self._endpoint.options.request_timeout_s
            self._deadline = self._loop.call_at(due, self._time_out)

    def _finish_reading(self) -> None:
        self.began_at = None
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            # Only what arrives in pieces has a deadline.
            self._endpoint.gate.note_complete(self)

    def _time_out(self) -> None:
        self._deadline = None
        self._endpoint.endings.add(self._end_reading)

    def _end_reading(self) -> None:
        # Otherwise the request was completed, or the connection was lost.
        if self._deadline is None and self.began_at is not None:
            self._end_unfinished()

    def _end_unfinished(self) -> None:
        """Refuse a request or message that was not completed in time."""
        raise NotImplementedError

    # Whether it is read

    def pause_until_open(self) -> None:
        self._pause_transport_reading()

    def read_again(self) -> None:
        """Go on reading, unless this connection itself has a reason to wait."""
        if not self._reading_paused and not self._buffer_paused:
            self._resume_transport_reading()

    def _resume_transport_reading(self) -> None:
        if self._endpoint.gate.lets_read(self):
            super()._resume_transport_reading()

    # Silence

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._endpoint.gate.lets_read(self):
            # Its TLS handshake took longer than the server accepted connections.
            self._pause_transport_reading()
        limit_s = min(self._keepalive_timeout, self._endpoint.options.request_timeout_s)
        self._next_keepalive_close_time = due = self._loop.time() + limit_s
        if self._keepalive_handle is not None:
            # The first request must arrive within the time that every request has.
            self._keepalive_handle.cancel()
            self._keepalive_handle = self._loop.call_at(due, self._process_keepalive)

    def _process_keepalive(self) -> None:
        self._keepalive_handle = None
        self._endpoint.endings.add(self._end_silence)

    def _end_silence(self) -> None:
        if self._keepalive_handle is not None:
            # aiohttp has restarted the time.
            return
        if self._is_silent():
            super()._process_keepalive()
            return
        later = self._loop.time() + self._keepalive_timeout
        self._keepalive_handle = self._loop.call_at(later, self._process_keepalive)

    def _is_silent(self) -> bool:
        """Return whether no request has arrived that is not answered."""
        return self._exchange is None and self.began_at is None

    # A client that does not read

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.transport is not None:
            timeout_s = self._endpoint.options.write_timeout / 1000
            self._stall = self._loop.call_later(timeout_s, self._give_up, self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()

    def _give_up(self, transport: asyncio.Transport) -> None:
        self._stall = None
        self._endpoint.endings.add(partial(self._cut_off, transport))

    def _cut_off(self, transport: asyncio.Transport) -> None:
        """Abort, unless the client reads again: closing would wait until it has read everything."""
        if self._paused and self._stall is None:
            self._note_cut("the client does not read")
            transport.abort()

    def _note_cut(self, reason: str) -> None:
        session = None if self._exchange is None else self._exchange.session
        key = "(none)" if session is None else session.key
        self._endpoint.bayeux.state.notices.report(CUT, key, reason)

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    # The end

    def eof_received(self) -> bool:  # type: ignore[override]
        """Return whether the transport stays open: if many go together, for some turns."""
        transport = self.transport
        if transport is None or transport.get_extra_info("sslcontext") is not None:
            # With TLS it does not stay open.
            return False
        if not self._endpoint.endings.puts_off(transport.close):
            return False
        self.transport = cast("asyncio.Transport", _Left(transport))
        return True

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._end_stall()
        self._finish_reading()
        self._endpoint.gate.unfinished.discard(self)
