"""The fast lane: plain POSTs are answered inside `data_received`, without a task or a Request.

This module and its base classes use private parts of aiohttp. `aiohttp_parts` checks that
the installed version has them. If not, all requests use the aiohttp front end.

A connection is in one of three states. *Free*: bytes go to aiohttp's parser, and a complete plain
POST to a Bayeux path is answered at once or held. *Ordinary*: aiohttp handles what the parser
returned, and the bytes of an unfinished body go on to the parser. *Taken*: a complete request waits
for its response, or earlier responses are still being written; further bytes are set aside
unparsed. Reading goes on, so that the end of the stream is seen (but see `reading_aside`).
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import NO_SPEAKER
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.messages.message import Event
from holdfast.web.answering.endpoint import origin_denied, retry_headers, with_cookie
from holdfast.web.answering.heads import response
from holdfast.web.answering.long_polling import not_http
from holdfast.web.front.arrival import Arrival
from holdfast.web.front.connection_parts import ConnectionParts
from holdfast.web.front.reading_aside import ReadingAside, join_small_pieces
from holdfast.web.http.aiohttp_parts import ErrInfo
from holdfast.web.http.known_head import KnownHead, learn, learn_beginning
from holdfast.web.http.odd_heads import checked
from holdfast.web.http.origins import OriginTrust, speaker_kind_of
from holdfast.web.http.plain_requests import is_plain
from holdfast.web.http.request_boundaries import NOTHING, UNKNOWN, Begun, follow, follow_one

if TYPE_CHECKING:
    from holdfast.web.front.trail import Trail

_NO_CORS: Mapping[str, str] = {}


class FastLane(ReadingAside):
    """A connection with a shortcut past aiohttp's machinery; also the carrier of its exchanges."""

    __slots__ = (
        "_beginning",
        "_cors",
        "_gives_first",
        "_heads",
        "_is_between",
        "_known",
        "_known_before",
        "_newcomers",
        "_paths",
        "_requests",
        "_room",
        "_speaker",
        "is_given",
        "requests",
        "trail",
    )

    connection_type = ConnectionType.LONG_POLLING
    # What is known of it if another process has accepted it.
    arrival: Arrival | None = None

    def __init__(self, parts: ConnectionParts) -> None:
        super().__init__(parts.endpoint, parts.manager)
        self._requests = parts.endpoint.requests
        self._heads = parts.heads
        self._paths = parts.paths
        self._room, self._newcomers = parts.room, parts.newcomers
        self._gives_first = parts.gives_first
        # Whether another worker has it now; how many requests came by the fast lane; and which of
        # them another shard has to handle.
        self.is_given = False
        self.requests = 0
        self.trail: Trail | None = None
        # The content of the last head, and the last two heads, to recognise repeats.
        self._speaker = NO_SPEAKER
        self._cors = _NO_CORS
        self._known: KnownHead | None = None
        self._known_before: KnownHead | None = None
        # The last head whose body came later.
        self._beginning: KnownHead | None = None
        # Whether the parser is between two requests; heads are recognised only then.
        self._is_between = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._endpoint.turn.connections += 1
        self._newcomers.welcome(self)

    # Incoming bytes

    def data_received(self, data: bytes) -> None:
        if self._force_close or self._close:
            return
        if self._set_aside:
            self._follow(data)
        elif self.frames is not None:
            self._hear(data)
        elif self._scheduler.is_behind and self._puts_off(data):
            return
        elif (body := self._body_behind_known_head(data)) is not None:
            # The usual case: aiohttp's machinery is not in use.
            self._receive(body)
        elif not self._puts_off_unparsed(data):
            self._handle_next(data)

    def _body_behind_known_head(self, data: bytes) -> bytes | None:
        if not self._is_between or self._exchange is not None or self._paused:
            return None
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

    def _handle_next(self, data: bytes) -> None:
        if (body := self._body_behind_known_head(data)) is not None:
            self._receive(body)
        elif self.frames is not None:
            self._hear(data)
        elif self._upgraded or self._payload_parser is not None:
            super().data_received(data)
        elif data and self._is_taken():
            self._put_aside(data)
        else:
            self._parse(data)

    def _begins_as_before(self, data: bytes) -> bool:
        known, before, beginning = self._known, self._known_before, self._beginning
        return (
            (known is not None and known.begins(data))
            or (before is not None and before.begins(data))
            or (beginning is not None and beginning.begins(data))
        )

    def _let_others_rest(self) -> None:
        self._newcomers.let_wait()

    def _parse(self, data: bytes) -> None:
        if self._parser is None:
            return
        if self._gives_first is not None and self._is_first() and self._gives_first(self, data):
            return
        # After a complete request the parser is between two only if it was before.
        was_between, self._is_between = self._is_between, False
        # A body whose request has left the parser's queue.
        handed = None if self._messages or self._body.is_eof() else self._body
        try:
            messages, upgraded, tail = self._parser.feed_data(data)
        except HttpProcessingError as error:
            info = ErrInfo(status=400, exc=error, message=error.message)
            messages, upgraded, tail = [(info, EMPTY_PAYLOAD)], False, b""
        if len(messages) == 1 and not upgraded and not self._ordinary:
            message, payload = messages[0]
            if is_plain(message, payload, self._paths, self._endpoint.hosts):
                self._finish_reading()
                self._parser.message_consumed()
                body = payload._buffer[0]
                self._begun = follow_one(self._begun, data, messages, body=body)
                if not self._hear_speaker(message.headers):
                    self._refuse(origin_denied())
                    return
                if was_between:
                    self._remember(learn(data, body, self._speaker, self._cors))
                self._receive(body)
                return
        if messages or upgraded:
            self._go_ordinary(messages, upgraded, tail)
        self._note_parsed(data, messages)
        if handed is not None and handed.is_eof():
            # aiohttp counts a request at its end, and has not counted it out when it left.
            self._parser.message_consumed()

    def _is_first(self) -> bool:
        return self.unused_since is not None and self._begun is None

    def _note_parsed(self, data: bytes, messages: Sequence[Any]) -> None:
        """Record what has begun or ended with these bytes."""
        for _, payload in messages:
            join_small_pieces(payload)
        join_small_pieces(self._body)
        begun = self._begun
        self._begun = follow(begun, data, messages, is_complete=self._body.is_eof())
        if messages and self._begun is not None and self._begun.owed > 0:
            self._beginning = learn_beginning(data if begun is None else begun.head + data)
        if self._body.is_eof() and (messages or self._ordinary):
            self._finish_reading()
        elif data:
            self._start_reading()

    def _hear_speaker(self, headers: Any) -> bool:
        """Record the speaker in a head. Returns whether its page may use this server."""
        endpoint = self._endpoint
        trust = endpoint.origins.trust_of(headers)
        caller = endpoint.peers.caller(headers, self.transport)
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
        self.requests += 1
        if self.unused_since is not None:
            self.unused_since = None
            self._room.hear(self)
        try:
            if speaker.caller.network:
                self._endpoint.admit(speaker.caller)
                self._endpoint.admit_body(speaker.caller, body)
            rest = self._requests.receive(body, exchange)
        except RequestRefused as refused:
            self._refuse(refused)
        except BaseException:
            self._fail(exchange, self._requests.fail(exchange))
        else:
            if rest is not None:
                rest.done = partial(self._fail, exchange)

    def _fail(self, exchange: Exchange, refused: RequestRefused | None) -> None:
        if refused is not None and self._exchange is exchange:
            self._refuse(refused)

    # The aiohttp front end

    def keep_place(self) -> None:
        """Never evict this connection: its client is an operator."""
        self._room.keep(self)

    def _go_ordinary(self, messages: Sequence[Any], upgraded: bool, tail: bytes) -> None:
        """Do what `RequestHandler.data_received` does with the parser's results."""
        for message, payload in messages:
            self._request_count += 1
            self._messages.append((checked(message), payload))
        if messages:
            self._room.hear(self)
            self._ordinary += len(messages)
            self._body = messages[-1][1]
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
            # The parser may have counted one more.
            if not self._buffer_paused and len(self._messages) >= self._max_msg_queue_size - 1:
                self._pause_reading_for_buffer()
        self._upgraded = upgraded
        if upgraded and tail:
            self._message_tail = tail

    async def finish_response(self, request: Any, resp: Any, start_time: float | None) -> Any:
        if self._message_tail:
            # It is parsed now if the upgrade was refused.
            self._begun = UNKNOWN
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
        """Answer malformed HTTP with an error."""
        response = super().handle_error(request, status, exc, message)
        if status != ErrorReply.REQUEST_MALFORMED.code:
            return response
        return not_http(self._endpoint)

    def _pause_reading_for_buffer(self) -> None:
        if self._upgraded:
            super()._pause_reading_for_buffer()
        else:
            # The parser stops by itself. The transport keeps reading, so that its end is seen.
            self._buffer_paused = True

    def _end_unfinished(self) -> None:
        if self.frames is not None:
            self._time_out_frames(self.frames)
        elif not self._ordinary:
            # The headers are incomplete. The reader of a body handles its timeout.
            if self._body.is_eof():
                self._refuse(RequestRefused(ErrorReply.REQUEST_TIMEOUT))
            self.force_close()

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

    def set_cookie(self, exchange: Exchange, cookie: str) -> None:
        """Send this `Set-Cookie` with the response to an exchange."""
        if self._exchange is exchange:
            # The next request has others.
            self._cors = with_cookie(self._cors, cookie)

    def _refuse(self, refused: RequestRefused) -> None:
        if self.transport is None:
            return
        headers = {**self._cors, **retry_headers(refused.wait_s)}
        if refused.error is ErrorReply.REQUEST_TIMEOUT and not self._heads.are_last:
            headers["Connection"] = "close"
        head = self._heads.build(refused.error.code, headers)
        body = self._endpoint.error_body(refused)
        self._endpoint.coalescer.write(self.transport, response(head, body))
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

    def unread(self) -> bytes | None:
        """Return what was read after the last request and not handled.

        None if that is unknown, or if a request waits for its response.
        """
        is_open = not (self.is_lost() or self._close or self._force_close or self._upgraded)
        is_between = self._exchange is None and not self._ordinary and self._body.is_eof()
        if not is_open or not is_between or self.is_writing():
            return None
        begun = self.begun()
        return None if begun.owed else begun.head + self.aside()

    def begun(self) -> Begun:
        """Return how much was read of an unfinished request."""
        return NOTHING if self._begun is None else self._begun

    def has_tls(self) -> bool:
        """Whether its TLS state, which cannot be moved, is in this process."""
        if self.transport is None or (self.arrival is not None and self.arrival.relayed):
            return False
        return self.transport.get_extra_info("sslcontext") is not None

    def is_writing(self) -> bool:
        """Whether something written must leave before another process may write."""
        if self.has_tls():
            # That process writes by way of this one. What TLS itself has to say after its
            # handshake leaves with the first response only.
            return self._paused
        return self.transport is not None and self.transport.get_write_buffer_size() > 0

    def is_unsettled(self) -> bool:
        """Whether something that was read will be handled or answered without further reading."""
        if self.frames is not None:
            return self.has_unread()
        is_asked = self._exchange is not None or (self._ordinary > 0 and self._body.is_eof())
        return not self.is_lost() and not self._paused and (is_asked or bool(self._set_aside))

    def is_responding(self) -> bool:
        """Whether its client still gets a response or messages."""
        if self.frames is not None:
            return self.is_writing()
        return self.is_writing() or (self._ordinary > 0 and self._body.is_eof())

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

    def connection_lost(self, exc: BaseException | None) -> None:
        self._room.leave(self)
        self._endpoint.turn.connections -= 1
        # A handler must not ask it for its address any more.
        self.transport = None
        # Thousands of clients may go together.
        self._endpoint.endings.end(partial(self._be_lost, exc))

    def _be_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._drop_aside()
        self._unheard = b""
        # aiohttp's reader refers to this connection, and may have much of an unfinished message.
        self.frames = None
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            self._requests.abort(exchange)
