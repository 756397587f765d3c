"""The fast lane: plain POSTs are answered inside `data_received`, without a task or a Request.

This is the only module that uses private parts of aiohttp. `is_supported` checks that the installed
version has them. If not, all requests use the aiohttp front end.

A connection is in one of three states. *Free*: bytes go to aiohttp's parser, and a complete plain
POST to a Bayeux path is answered at once or held. *Ordinary*: aiohttp handles what the parser
returned, and the bytes of an unfinished body go on to the parser. *Taken*: a complete request waits
for its response, or earlier responses are still being written; further bytes are set aside
unparsed. Reading never stops, so the end of the stream is always seen.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp import web, web_protocol
from aiohttp.http import HttpRequestParser
from aiohttp.http_exceptions import BadHttpMessage, HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import NO_SPEAKER
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.bayeux.wire.unfit import malformed
from holdfast.delivery.basics.notices import CUT
from holdfast.delivery.messages.message import Event
from holdfast.web.client_frames import ClientFrames
from holdfast.web.connection_limit import ConnectionLimit
from holdfast.web.endpoint import (
    FIXED_HEADERS,
    JSON_TYPE,
    Endpoint,
    error_body,
    hsts_headers,
    origin_denied,
    retry_headers,
)
from holdfast.web.heads import Heads, response
from holdfast.web.known_head import KnownHead, learn
from holdfast.web.odd_heads import is_odd
from holdfast.web.origins import OriginTrust, speaker_kind_of

_SUPPORTED = "3.14."
# The private parts of aiohttp's connection handler that this module uses.
_PARTS = (
    *("_buffer_paused", "_close", "_current_request", "_drain_helper", "_force_close"),
    *("_keepalive_handle",),
    *("_keepalive_timeout", "_loop", "_manager", "_max_msg_queue_size", "_message_tail"),
    *("_messages", "_next_keepalive_close_time", "_parser", "_pause_reading_for_buffer"),
    *("_reading_paused", "_resume_reading_for_buffer"),
    *("_paused", "_payload_parser", "_process_keepalive", "_request_count", "_upgraded"),
    *("_waiter", "finish_response", "handle_error", "set_parser"),
)
_ErrInfo: Any = getattr(web_protocol, "_ErrInfo", None)
# How many bytes may arrive while a request is held. Only clients that pipeline send more.
_MAX_SET_ASIDE = 64 * 1024
# Memory that each piece takes besides its bytes.
_PIECE = 64
# How many bytes of a WebSocket are parsed in one turn of the event loop. A frame may have only six
# bytes, and tens of thousands of frames take long.
_SOCKET_PIECE = 16 * 1024
_NO_CORS: Mapping[str, str] = {}
_SUFFIXES = ("", "/", "/handshake", "/connect", "/subscribe", "/publish", "/disconnect")
# Content types that need no parsing: JSON or text in UTF-8, or none at all.
_PLAIN_TYPES = frozenset(
    [
        None,
        "application/json",
        "application/json;charset=UTF-8",
        "application/json;charset=utf-8",
        "application/json; charset=UTF-8",
        "application/json; charset=utf-8",
        "text/plain;charset=UTF-8",
        "text/json",
    ]
)


def is_supported() -> bool:
    """Return whether the installed aiohttp has the private parts that this module uses."""
    return (
        aiohttp.__version__.startswith(_SUPPORTED)
        and all(hasattr(RequestHandler, name) for name in _PARTS)
        and all(hasattr(StreamReader, name) for name in ("_buffer", "_eof"))
        and hasattr(HttpRequestParser, "message_consumed")
        and _ErrInfo is not None
    )


def _checked(message: Any) -> Any:
    """Return the message, or the parser's error if its head is odd."""
    if type(message) is _ErrInfo or not is_odd(message):
        return message
    return _ErrInfo(status=400, exc=BadHttpMessage("an odd head"), message="an odd head")


class FastLane(RequestHandler):
    """aiohttp's connection handler with a shortcut; also the carrier of its exchanges."""

    __slots__ = (
        "_body",
        "_cors",
        "_deadline",
        "_endpoint",
        "_exchange",
        "_finished",
        "_heads",
        "_is_between",
        "_known",
        "_known_before",
        "_ordinary",
        "_paths",
        "_room",
        "_set_aside",
        "_size_aside",
        "_speaker",
        "_stall",
        "_turn",
        "_unheard",
        "began_at",
        "frames",
        "unused_since",
    )

    connection_type = ConnectionType.LONG_POLLING

    def __init__(self, lane: "FastLaneFactory", manager: web.Server, **kwargs: Any) -> None:
        super().__init__(manager, **kwargs)
        self._endpoint = lane.endpoint
        self._turn = lane.endpoint.turn
        self._heads = lane.heads
        self._paths = lane.paths
        self._room = lane.room
        # The exchange that has not been answered yet.
        self._exchange: Exchange | None = None
        # Requests that aiohttp has not answered yet, and the body of the last of them.
        self._ordinary = 0
        # The WebSocket's frame reader, after an upgrade.
        self.frames: ClientFrames | None = None
        # Bytes of the WebSocket that wait for a later turn.
        self._unheard = b""
        # The number of its whole messages when the unfinished one began.
        self._finished = 0
        self._body: StreamReader = EMPTY_PAYLOAD
        # Bytes set aside, in the pieces in which they arrived: how aiohttp reads the bytes after a
        # refused upgrade depends on the pieces.
        self._set_aside: deque[bytes] | None = None
        self._size_aside = 0
        # When the connection was made; None once it has sent a further request.
        self.unused_since: float | None = lane.endpoint.clock()
        # When the first byte of the unfinished request arrived.
        self.began_at: float | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        # The content of the last head, and the last two heads, to recognise repeats.
        self._speaker = NO_SPEAKER
        self._cors = _NO_CORS
        self._known: KnownHead | None = None
        self._known_before: KnownHead | None = None
        # Whether the parser is between two requests; heads are recognised only then.
        self._is_between = True

    # Incoming bytes

    def data_received(self, data: bytes, may_wait: bool = True) -> None:
        if self._force_close or self._close:
            return
        if may_wait and self._turn.is_behind and self._puts_off(data):
            return
        if self._is_between and self._exchange is None and not self._paused and not self._set_aside:
            # The usual case: aiohttp's machinery is not in use.
            body = self._body_behind_known_head(data)
            if body is None:
                self._parse(data)
            else:
                self._receive(body)
        elif self._set_aside and not self._is_taken():
            # This may be the rest of deferred data.
            self._take_up()
            self.data_received(data, may_wait=False)
        elif self.frames is not None:
            self._hear(data)
        elif self._upgraded or self._payload_parser is not None:
            super().data_received(data)
        elif data and self._is_taken():
            self._put_aside(data)
        else:
            self._parse(data)

    def _puts_off(self, data: bytes) -> bool:
        """Put bytes aside for a later turn if they can wait."""
        is_free = not (self._set_aside or self._ordinary or self._is_taken() or self._upgraded)
        if not is_free or not self._endpoint.scheduler.can_wait(data):
            return False
        self._put_aside(data)
        self._endpoint.scheduler.read_later(self._take_up)
        return True

    def _body_behind_known_head(self, data: bytes) -> bytes | None:
        known = self._known
        if known is not None and (body := known.body_of(data)) is not None:
            self._speaker, self._cors = known.speaker, known.cors
            return body
        other = self._known_before
        if other is not None and (body := other.body_of(data)) is not None:
            # Two kinds of requests on one connection mostly alternate.
            self._known, self._known_before = other, known
            self._speaker, self._cors = other.speaker, other.cors
            return body
        return None

    def _is_taken(self) -> bool:
        if self._exchange is not None or self._paused:
            return True
        return self._ordinary > 0 and self._body.is_eof()

    def _put_aside(self, data: bytes) -> None:
        if self._set_aside is None:
            self._set_aside = deque()
        self._set_aside.append(data)
        self._size_aside += len(data) + _PIECE
        if self._size_aside > _MAX_SET_ASIDE:
            self._note_cut("too many bytes arrived while a request was held")
            self.force_close()

    def _take_up(self) -> None:
        """Process the bytes set aside, unless the connection has become busy."""
        while self._set_aside and not self._is_taken():
            pieces, self._set_aside = self._set_aside, None
            first = pieces.popleft()
            self._size_aside -= len(first) + _PIECE
            self.data_received(first, may_wait=False)
            self._set_aside = pieces or None

    def _parse(self, data: bytes) -> None:
        if self._parser is None:
            return
        # After a complete request the parser is between two only if it was before.
        was_between, self._is_between = self._is_between, False
        try:
            messages, upgraded, tail = self._parser.feed_data(data)
        except HttpProcessingError as error:
            info = _ErrInfo(status=400, exc=error, message=error.message)
            messages, upgraded, tail = [(info, EMPTY_PAYLOAD)], False, b""
        if len(messages) == 1 and not upgraded and not self._ordinary:
            message, payload = messages[0]
            if self._is_plain(message, payload):
                self._finish_reading()
                self._parser.message_consumed()
                body = payload._buffer[0]
                if not self._hear_speaker(message.headers):
                    self._refuse(origin_denied())
                    return
                if was_between:
                    self._remember(learn(data, body, self._speaker, self._cors))
                self._receive(body)
                return
        if messages or upgraded:
            self._go_ordinary(messages, upgraded, tail)
        if self._body.is_eof() and (messages or self._ordinary):
            self._finish_reading()
        elif data:
            self._start_reading()

    def _is_plain(self, message: Any, payload: Any) -> bool:
        """Return whether this is a complete plain POST; aiohttp handles all other requests."""
        if type(payload) is not StreamReader or not payload._eof or len(payload._buffer) != 1:
            return False
        if type(message) is _ErrInfo or message.method != "POST" or message.path not in self._paths:
            return False
        if message.should_close or message.chunked or message.compression or message.upgrade:
            return False
        headers = message.headers
        if message.version[1] != 1 or headers.get("Content-Type") not in _PLAIN_TYPES:
            return False
        if not self._endpoint.options.hosts.are_ours(headers.get("Host")):
            return False
        return "Expect" not in headers and "Content-Encoding" not in headers

    def _hear_speaker(self, headers: Any) -> bool:
        """Record the speaker in a head. Returns whether its page may use this server."""
        endpoint = self._endpoint
        trust = endpoint.options.origins.trust_of(headers)
        caller = endpoint.options.peers.caller(headers, self.transport)
        self._speaker = endpoint.speaker(headers, caller, speaker_kind_of(trust))
        # Only pages of other origins need these headers.
        self._cors = endpoint.cors(headers) if trust is OriginTrust.ALLOWED else _NO_CORS
        if trust is OriginTrust.FOREIGN:
            endpoint.report_foreign(headers)
            return False
        return True

    def _remember(self, head: KnownHead | None) -> None:
        """Store a head. The parser is now right after its request."""
        if head is not None:
            self._is_between = True
            self._known, self._known_before = head, self._known

    def _receive(self, body: bytes) -> None:
        speaker = self._speaker
        self._exchange = exchange = Exchange(self, speaker)
        if self.unused_since is not None:
            self.unused_since = None
            self._room.hear(self)
        try:
            if speaker.caller.network:
                self._endpoint.admit(speaker.caller)
                self._endpoint.admit_body(speaker.caller, body)
            rest = self._endpoint.scheduler.receive(body, exchange)
        except RequestRefused as refused:
            self._refuse(refused)
        except BaseException:
            self._fail(exchange, self._endpoint.scheduler.fail(exchange))
        else:
            if rest is not None:
                rest.done = partial(self._fail, exchange)

    def _fail(self, exchange: Exchange, refused: RequestRefused | None) -> None:
        if refused is not None and self._exchange is exchange:
            self._refuse(refused)

    # The aiohttp front end

    def set_parser(self, parser: Any, data_received_cb: Any = None) -> None:
        endpoint = self._endpoint
        options, headers = endpoint.options, cast("Any", self._current_request).headers
        network = options.peers.caller(headers, self.transport).network
        self.frames = ClientFrames(parser, options.max_request_size, endpoint.intake, network)
        tail, self._message_tail = self._message_tail, b""
        super().set_parser(cast("Any", self.frames), data_received_cb)
        if tail:
            self._hear(tail)

    def _hear(self, data: bytes) -> None:
        """Parse a WebSocket's bytes, one piece per turn; reading is paused until all are parsed."""
        if not self._unheard:
            if len(data) <= _SOCKET_PIECE:
                super().data_received(data)
                self._watch_frames()
                return
            super()._pause_reading_for_buffer()
            if not self._reading_paused:
                self._loop.call_soon(self._hear_more)
        self._unheard += data

    def _hear_more(self) -> None:
        piece, self._unheard = self._unheard[:_SOCKET_PIECE], self._unheard[_SOCKET_PIECE:]
        if piece:
            super().data_received(piece)
            self._watch_frames()
        if not self._unheard:
            self._resume_reading_for_buffer()
        elif not self._reading_paused:
            self._loop.call_soon(self._hear_more)

    def _watch_frames(self) -> None:
        """Limit the time of an unfinished frame, or message of several."""
        frames = self.frames
        if frames is None:
            return
        if self.began_at is not None and not (
            frames.is_unfinished and frames.finished == self._finished
        ):
            self._finish_reading()
        if frames.is_unfinished:
            self._finished = frames.finished
            self._start_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        super().resume_reading(resume_parser)
        if self._unheard:
            self._loop.call_soon(self._hear_more)

    def keep_place(self) -> None:
        """Never evict this connection: its client is an operator."""
        self._room.keep(self)

    def _go_ordinary(self, messages: Sequence[Any], upgraded: bool, tail: bytes) -> None:
        """Do what `RequestHandler.data_received` does with the parser's results."""
        for message, payload in messages:
            self._request_count += 1
            self._messages.append((_checked(message), payload))
        if messages:
            self._room.hear(self)
            self._ordinary += len(messages)
            self._body = messages[-1][1]
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
            if not self._buffer_paused and len(self._messages) >= self._max_msg_queue_size:
                self._pause_reading_for_buffer()
        self._upgraded = upgraded
        if upgraded and tail:
            self._message_tail = tail

    async def finish_response(self, request: Any, resp: Any, start_time: float | None) -> Any:
        answered, is_reset = await super().finish_response(request, resp, start_time)
        self.unused_since = None
        # A connection that closes after this response never becomes free again.
        self._ordinary = len(self._messages) + (not answered.keep_alive)
        if self._messages:
            # Requests after a refused upgrade have not been seen here before.
            self._body = self._messages[-1][1]
        if self._set_aside:
            self._loop.call_soon(self._take_up)
        return answered, is_reset

    def handle_error(
        self,
        request: Any,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> Any:
        """Answer malformed HTTP with an error. The response quotes nothing from it."""
        response = super().handle_error(request, status, exc, message)
        if status != ErrorReply.REQUEST_MALFORMED.code:
            return response
        refused = malformed("not HTTP")
        hsts = hsts_headers(self._endpoint.options.hsts_s)
        headers = {"Content-Type": JSON_TYPE, **FIXED_HEADERS, **hsts}
        refusal = web.Response(status=status, body=error_body(refused), headers=headers)
        refusal.force_close()
        return refusal

    def _pause_reading_for_buffer(self) -> None:
        if self._upgraded:
            super()._pause_reading_for_buffer()
        else:
            # The parser stops by itself. The transport keeps reading, so that its end is seen.
            self._buffer_paused = True

    # Timeouts

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

    def _time_out(self) -> None:
        self._deadline = None
        self._endpoint.endings.add(self._end_reading)

    def _end_reading(self) -> None:
        if self._deadline is not None or self.began_at is None:
            # In the meantime the request was completed, or the connection was lost.
            return
        if self.frames is not None:
            self._time_out_frames(self.frames)
        elif not self._ordinary:
            # The headers are incomplete. The reader of a body handles its timeout.
            if self._body.is_eof():
                self._refuse(RequestRefused(ErrorReply.REQUEST_TIMEOUT))
            self.force_close()

    def _time_out_frames(self, frames: ClientFrames) -> None:
        self.began_at = None
        if self._unheard or self._reading_paused:
            # The rest may be here already.
            self._start_reading()
        elif frames.is_unfinished:
            frames.time_out()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
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
        if self._exchange is None and self.began_at is None:
            super()._process_keepalive()
            return
        later = self._loop.time() + self._keepalive_timeout
        self._keepalive_handle = self._loop.call_at(later, self._process_keepalive)

    # Outgoing responses

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        transport = self.transport
        if transport is None or transport.is_closing() or self._exchange is not exchange:
            # The last: after a fault, the request has been refused.
            return False
        if not (self._cors or exchange.is_superseded or exchange.new_browser is not None):
            head = self._heads.ok
        else:
            headers = self._endpoint.headers(exchange, self._cors)
            head = self._heads.build(self._endpoint.status(exchange), headers)
        self._endpoint.coalescer.write(transport, response(head, exchange.body_with(messages)))
        self._free()
        return True

    def _refuse(self, refused: RequestRefused) -> None:
        if self.transport is None:
            return
        headers = {**self._cors, **retry_headers(refused.wait_s)}
        if refused.error is ErrorReply.REQUEST_TIMEOUT and not self._heads.are_last:
            headers["Connection"] = "close"
        head = self._heads.build(refused.error.code, headers)
        self._endpoint.coalescer.write(self.transport, response(head, error_body(refused)))
        self._free()

    def _free(self) -> None:
        self._exchange = None
        if self._heads.are_last:
            self.close()
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        if self._set_aside:
            self._loop.call_soon(self._take_up)

    def is_lost(self) -> bool:
        return self.transport is None or self.transport.is_closing()

    def is_draining(self) -> bool:
        return self._paused and self.transport is not None

    def has_unread(self) -> bool:
        if self.is_lost():
            # The rest will not be read.
            return False
        if self.frames is None:
            return bool(self._set_aside)
        return bool(self._unheard) or self.frames.has_unheard

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.transport is not None:
            timeout_s = self._endpoint.options.write_timeout_s
            self._stall = self._loop.call_later(timeout_s, self._give_up, self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()
        if self._set_aside:
            self._take_up()

    def force_close(self) -> None:
        """Write everything that is pending, then close."""
        self._endpoint.coalescer.send()
        super().force_close()

    async def drain(self) -> None:
        """Wait until everything written has left."""
        self._endpoint.coalescer.send()
        if self.transport is not None:
            self.transport.set_write_buffer_limits(0)
            await self._drain_helper()

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

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._room.leave(self)
        self._end_stall()
        self._finish_reading()
        self._set_aside, self._size_aside = None, 0
        self._unheard = b""
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            self._endpoint.bayeux.abort(exchange, self._endpoint.clock())


class FastLaneFactory:
    """The state that connections share; the event loop calls it for each new connection."""

    def __init__(
        self,
        endpoint: Endpoint,
        heads: Heads,
        manager: web.Server,
        room: ConnectionLimit,
        *,
        has_bayeux: bool = True,
    ) -> None:
        self.endpoint = endpoint
        self.heads = heads
        self.room = room
        options = endpoint.options
        is_open = options.fast_lane and ConnectionType.LONG_POLLING in options.transports
        paths = options.paths if is_open and has_bayeux else ()
        # Other paths take the aiohttp front end, with the same timeouts and limits.
        self.paths = frozenset(path + suffix for path in paths for suffix in _SUFFIXES)
        self._manager = manager

    def __call__(self) -> FastLane:
        loop = asyncio.get_running_loop()
        return FastLane(self, self._manager, loop=loop, **self._manager._kwargs)
