"""The WebSocket transport: one socket carries everything of a session in both directions."""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from aiohttp import HttpVersion11, WebSocketError, WSCloseCode, WSMsgType, web

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.notices import CLOSED
from holdfast.delivery.messages.message import Event
from holdfast.units import counted
from holdfast.web.client_frames import NO_ROOM, TIMED_OUT, TOO_LARGE, ClientFrames
from holdfast.web.endpoint import Endpoint
from holdfast.web.long_polling import refusal
from holdfast.web.origins import speaker_kind_of

if TYPE_CHECKING:
    from aiohttp import WSMessage
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http import WSMessageTextBytes

    from holdfast.bayeux.session import Session

log = logging.getLogger(__name__)
# aiohttp warns about subprotocols that clients offer without success. Operators need not know.
logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)

_TEXT = 0x81
# How long a client may take to close its socket after its session has ended.
_GOODBYE_S = 1.0
# How many frames of one socket are read before others are served, if none wait already.
_TURN = 16
# The only version (RFC 6455).
_VERSION = "13"
# The highest close code that applications may use.
_LAST_CODE = 4999
# Close reasons sent when aiohttp closes a socket.
_REASONS: dict[int, bytes] = {
    WSCloseCode.PROTOCOL_ERROR: b"a frame against the protocol",
    WSCloseCode.MESSAGE_TOO_BIG: ErrorReply.REQUEST_TOO_LARGE.wire().encode(),
}
_CLOSE_CODES = {
    ErrorReply.REQUEST_TOO_LARGE: WSCloseCode.MESSAGE_TOO_BIG,
    ErrorReply.SERVER_BUSY: WSCloseCode.INTERNAL_ERROR,
    ErrorReply.REQUEST_TIMEOUT: WSCloseCode.POLICY_VIOLATION,
}
# Error replies by the content of the ping that replaces a refused message.
_REFUSALS = {
    TOO_LARGE: ErrorReply.REQUEST_TOO_LARGE,
    NO_ROOM: ErrorReply.SERVER_BUSY,
    TIMED_OUT: ErrorReply.REQUEST_TIMEOUT,
}


def _knows_none() -> bool:
    return False


def frame(payload: bytes) -> bytes:
    """Return a server's text frame: never masked, so all receivers can share the bytes."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", _TEXT, size) + payload
    if size < 65536:
        return struct.pack("!BBH", _TEXT, 126, size) + payload
    return struct.pack("!BBQ", _TEXT, 127, size) + payload


class Socket:
    """One open socket: carrier of its exchanges, pipe of its session.

    Frames are written directly to the transport. aiohttp opens, reads and closes the socket.
    """

    __slots__ = (
        "_bayeux",
        "_begun",
        "_clock",
        "_coalescer",
        "_draining",
        "_ending",
        "_flush",
        "_hang_up",
        "_has_unread",
        "_is_closed",
        "_loop",
        "_messages_per_frame",
        "_protocol",
        "_scheduler",
        "_unfinished",
        "expecting",
        "heard",
        "session",
        "speaker",
    )

    connection_type = ConnectionType.WEBSOCKET

    def __init__(
        self,
        request: web.Request,
        endpoint: Endpoint,
        speaker: Speaker,
        *,
        flush: Callable[[], Awaitable[None]],
        hang_up: Callable[["Socket"], Awaitable[object]],
    ) -> None:
        self.speaker = speaker
        self.session: Session | None = None
        self._clock, self._scheduler = endpoint.clock, endpoint.scheduler
        # When it was opened, or last received a message of a living session.
        self.heard = self._clock()
        # Python asks the kernel for its process id whenever it looks up the running loop.
        self._loop = asyncio.get_running_loop()
        # Needed for every message, and two attribute lookups away in the request.
        self._protocol = request.protocol
        # Connections that only aiohttp reads do not know.
        self._has_unread: Callable[[], bool] = getattr(self._protocol, "has_unread", _knows_none)
        self._bayeux, self._coalescer = endpoint.bayeux, endpoint.coalescer
        self._messages_per_frame = endpoint.options.ws_messages_per_frame
        # Whether a close frame was sent, after which nothing may follow.
        self._is_closed = False
        self._flush = flush
        self._hang_up = hang_up
        # The outcome of a message that was taken and is unfinished.
        self._begun: asyncio.Future[RequestRefused | None] | None = None
        # The outcome of the last message that took more than a turn.
        self._unfinished: asyncio.Future[RequestRefused | None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        # Closes the socket if it names no session in time.
        self.expecting: asyncio.TimerHandle | None = None

    def take(self, body: bytes) -> bool:
        """Handle a message at once. If it is unfinished, returns False, and `handle` must continue.

        Call it only while no other message is being handled.
        """
        if self.is_draining():
            return False
        self._begun = self._begin(body)
        return self._begun is None

    async def handle(self, body: bytes) -> RequestRefused | None:
        """Handle a message; returns when it is done, so the socket's messages stay in order."""
        begun, self._begun = self._begun, None
        outcome = begun or self._begin(body)
        if outcome is None:
            return None
        # The request continues even if this waiter is cancelled.
        refused = await asyncio.shield(outcome)
        self._note_heard()
        return refused

    def _begin(self, body: bytes) -> "asyncio.Future[RequestRefused | None] | None":
        """Handle a message as far as possible; returns its outcome, or None if it is done."""
        exchange = Exchange(self, self.speaker, self)
        rest = failed = None
        try:
            rest = self._scheduler.receive(body, exchange)
        except RequestRefused as refused:
            failed = refused
        except BaseException:
            failed = self._scheduler.fail(exchange)
        self._note_heard()
        if rest is None and failed is None:
            return None
        outcome: asyncio.Future[RequestRefused | None] = self._loop.create_future()
        if rest is None:
            outcome.set_result(failed)
        else:
            rest.done = outcome.set_result
            self._unfinished = outcome
        return outcome

    def _note_heard(self) -> None:
        if self.session is not None and not self.session.is_gone:
            self.heard = self._clock()

    def is_busy(self) -> bool:
        """Return whether the client has sent data that is not handled yet."""
        outcome = self._unfinished
        return (outcome is not None and not outcome.done()) or self.has_unread()

    def is_idle(self, *, since: float) -> bool:
        """Return whether no living session has sent a message since then."""
        return self.heard < since and not self.is_busy()

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        if exchange.is_superseded:
            # The client no longer waits for this reply: it has sent another connect since.
            return False
        replies = frame(b"[" + b",".join(exchange.replies) + b"]")
        if not messages:
            return self._write(replies)
        frames = self._frames(messages)
        return self._write(replies + frames if exchange.replies_first else frames + replies)

    def push(self, messages: Sequence[Event]) -> bool:
        return self._write(self._frames(messages))

    def is_draining(self) -> bool:
        if not self._protocol.writing_paused or self._protocol.transport is None:
            return False
        if self._draining is None:
            # The caller relies on being notified when the transport has drained.
            self._draining = self._loop.create_task(self._drain())
        return True

    def has_unread(self) -> bool:
        return self._has_unread()

    def is_lost(self) -> bool:
        transport = self._protocol.transport
        return self._is_closed or transport is None or transport.is_closing()

    async def drained(self) -> None:
        """Wait until the client has read enough or is gone."""
        if self._draining is not None:
            await self._draining

    def note_close(self, code: int, reason: str) -> None:
        """Log that the server closes the socket."""
        key = "(none)" if self.session is None else self.session.key
        self._bayeux.state.notices.report(CLOSED, key, f"{code:d}: {reason}")

    def end(self) -> None:
        # A cometd.js whose first connect crossed this close would keep its socket forever.
        if self.session is None:
            return
        if self._ending is not None:
            # An earlier session of this socket has ended, too.
            self._ending.cancel()
        self._ending = self._loop.create_task(self._end(self.session))

    def close(self) -> None:
        """Stop sending."""
        self._is_closed = True

    def leave(self) -> None:
        """Stop waiting, because the connection is lost."""
        for waiting in (self._draining, self._ending, self.expecting):
            if waiting is not None:
                waiting.cancel()

    async def _end(self, session: "Session") -> None:
        await asyncio.sleep(_GOODBYE_S)
        self._ending = None
        if self.session is session:
            await self._hang_up(self)

    async def _drain(self) -> None:
        try:
            await self._flush()
        except ConnectionError:
            return
        finally:
            self._draining = None
        self._bayeux.drained(self)

    def _write(self, frames: bytes) -> bool:
        transport = self._protocol.transport
        if self._is_closed or transport is None or transport.is_closing():
            return False
        self._coalescer.write(transport, frames)
        return True

    def _frames(self, messages: Sequence[Event]) -> bytes:
        if self._messages_per_frame == 1:
            if len(messages) == 1:
                return messages[0].frame or _frame_once(messages[0])
            return b"".join([message.frame or _frame_once(message) for message in messages])
        step = self._messages_per_frame if self._messages_per_frame > 0 else max(1, len(messages))
        chunks = [messages[start : start + step] for start in range(0, len(messages), step)]
        return b"".join(
            [frame(b"[" + b",".join([m.wire for m in chunk]) + b"]") for chunk in chunks]
        )


def _frame_once(message: Event) -> bytes:
    message.frame = frame(b"[" + message.wire + b"]")
    return message.frame


class _Response(web.WebSocketResponse[Literal[False]]):
    """Closes its socket only after everything pending is written."""

    def __init__(self, endpoint: Endpoint) -> None:
        options = endpoint.options
        super().__init__(
            max_msg_size=options.max_request_size,
            # UTF-8 is checked when the message is read as JSON.
            decode_text=False,
            # Compressed frames could not be shared by receivers.
            compress=False,
            # `hear` answers pings, and lets other tasks run in between.
            autoping=False,
            # `_answer_close` replies, because aiohttp does not check all codes.
            autoclose=False,
            protocols=() if options.ws_protocol is None else (options.ws_protocol,),
        )
        self._coalescer, self._scheduler = endpoint.coalescer, endpoint.scheduler
        self.socket: Socket | None = None
        # None if the connection does not belong to the fast lane.
        self._frames: ClientFrames | None = None
        self._frames_heard = 0

    async def prepare(self, request: web.BaseRequest) -> "AbstractStreamWriter":
        writer = await super().prepare(request)
        self._frames = getattr(request.protocol, "frames", None)
        return writer

    def has_unmasked_frame(self) -> bool:
        """Return whether the client sent a frame without a mask."""
        return self._frames is not None and self._frames.has_unmasked

    async def hear(self, socket: Socket) -> "WSMessage | WSMessageTextBytes":
        """Receive the next message that the socket does not take; answers pings."""
        while True:
            self._frames_heard += 1
            if self._frames_heard % _TURN == 0 or self._scheduler.is_busy:
                # Reading data that has arrived does not yield, and there may be much of it.
                await asyncio.sleep(0)
            self._let_take(socket.take)
            try:
                received = await self.receive()
            finally:
                self._let_take(None)
            if socket.is_draining():
                # No more messages are handled until the client reads.
                await socket.drained()
            if received.type is WSMsgType.PING and bytes(received.data) not in _REFUSALS:
                # If the client is gone, the next read reports it.
                with suppress(ConnectionError):
                    await self.pong(received.data)
            elif received.type is not WSMsgType.PONG:
                if received.type is WSMsgType.TEXT and self._frames is not None:
                    self._frames.heard(len(received.data))
                return received

    def _let_take(self, taker: Callable[[bytes], bool] | None) -> None:
        if self._frames is not None:
            self._frames.taker = taker

    async def close(
        self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True
    ) -> bool:
        if self.socket is not None:
            self.socket.close()
        self._coalescer.send()
        message = message or _REASONS.get(code, b"")
        return await super().close(code=code, message=message, drain=drain)


async def _close(
    response: _Response, socket: Socket, code: int, reason: str, *, drain: bool = True
) -> None:
    """Close the socket, and log the reason that the client gets."""
    if not response.closed:
        socket.note_close(code, reason)
        await response.close(code=code, message=reason.encode(), drain=drain)


async def _dismiss(response: _Response, socket: Socket) -> None:
    if socket.is_draining():
        await socket.drained()
    await response.close(code=WSCloseCode.GOING_AWAY, drain=False)


async def _refuse(response: _Response, socket: Socket, refused: RequestRefused) -> None:
    code = _CLOSE_CODES.get(refused.error, WSCloseCode.INVALID_TEXT)
    await _close(response, socket, code, str(refused))


class WebSocketFrontEnd:
    """Opens sockets and reads from them; tracks them so that they can be closed at the end."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._open: dict[_Response, Socket] = {}
        self._watch: asyncio.Task[None] | None = None
        # Sockets that are being closed.
        self._goodbyes: set[asyncio.Task[None]] = set()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Handle an upgrade request, and then its socket until it closes."""
        options = self._endpoint.options
        try:
            kind = speaker_kind_of(self._endpoint.check_origin(request.headers))
            caller = self._endpoint.caller(request)
        except RequestRefused as refused:
            return refusal(request, refused, self._endpoint)
        if request.version < HttpVersion11 or not self._speaks_our_protocol(request):
            return refusal(request, RequestRefused(ErrorReply.TRANSPORT_UNKNOWN), self._endpoint)
        if request.headers.get("Sec-WebSocket-Version", "").strip() != _VERSION:
            return _refused_version(request, self._endpoint)
        response = _Response(self._endpoint)
        speaker = self._endpoint.speaker(request.headers, caller, kind)
        if not speaker.browsers:
            browser = self._welcome(request)
            speaker = replace(speaker, browsers=(browser,))
            response.headers["Set-Cookie"] = options.cookie.header(browser)
        writer = await response.prepare(request)
        socket = Socket(
            request,
            self._endpoint,
            speaker,
            flush=writer.drain,
            hang_up=partial(_close, response, code=WSCloseCode.OK, reason="the session is over"),
        )
        response.socket = socket
        self._open[response] = socket
        loop = asyncio.get_running_loop()
        self._expect_session(response, socket)
        if self._watch is None and self._endpoint.options.ws_idle_timeout_s > 0:
            self._watch = loop.create_task(self._watch_idle())
        try:
            await self._read(response, socket)
        finally:
            del self._open[response]
            socket.leave()
            self._endpoint.bayeux.detach(socket, self._endpoint.clock())
        return response

    def _welcome(self, request: web.Request) -> str:
        """Create an identity for a browser that has none."""
        browser = self._endpoint.bayeux.state.new_id()
        # Requests have no order within a turn of the loop, but connections have.
        opened_at = getattr(request.protocol, "unused_since", None) or self._endpoint.clock()
        self._endpoint.bayeux.identities.welcome(browser, opened_at)
        return browser

    def _expect_session(self, response: _Response, socket: Socket) -> None:
        """Close a socket that does not name a session in time."""
        limit_s, end = self._endpoint.options.ws_session_timeout_s, self._end_without_session
        socket.expecting = asyncio.get_running_loop().call_later(
            limit_s, self._endpoint.endings.add, partial(end, response, socket)
        )

    def _end_without_session(self, response: _Response, socket: Socket) -> None:
        if socket.session is not None or response not in self._open:
            return
        if socket.is_busy():
            # A message that names one may wait for this server.
            self._expect_session(response, socket)
        else:
            self._begin(_refuse(response, socket, RequestRefused(ErrorReply.REQUEST_TIMEOUT)))

    def _end_idle(self, response: _Response, socket: Socket, latest: float) -> None:
        if response in self._open and socket.is_idle(since=latest):
            goodbye = WSCloseCode.GOING_AWAY, "idle for too long"
            self._begin(_close(response, socket, *goodbye, drain=False))

    def _begin(self, goodbye: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(goodbye)
        self._goodbyes.add(task)
        task.add_done_callback(self._goodbyes.discard)

    async def _watch_idle(self) -> None:
        """Check all sockets periodically: cheaper than a timeout for each message."""
        limit_s, clock = self._endpoint.options.ws_idle_timeout_s, self._endpoint.clock
        while self._open:
            await asyncio.sleep(limit_s / 10)
            latest = clock() - limit_s
            for response, socket in self._open.items():
                if socket.is_idle(since=latest):
                    self._endpoint.endings.add(partial(self._end_idle, response, socket, latest))
        self._watch = None

    def all(self) -> Collection[Socket]:
        """Return all open sockets."""
        return self._open.values()

    async def close_drained(self) -> None:
        """Close each socket when everything pending has been sent; its client returns meanwhile."""
        if self._watch is not None:
            self._watch.cancel()
        if self._open:
            log.info("the server stops and closes %s with 1001", counted(len(self._open), "socket"))
        goodbyes = [_dismiss(*each) for each in self._open.items()]
        await asyncio.gather(*goodbyes, return_exceptions=True)

    async def close_all(self) -> None:
        """Close the sockets that are still open."""
        goodbyes = [
            response.close(code=WSCloseCode.GOING_AWAY, drain=False) for response in self._open
        ]
        await asyncio.gather(*goodbyes, return_exceptions=True)

    def _speaks_our_protocol(self, request: web.Request) -> bool:
        protocol = self._endpoint.options.ws_protocol
        if protocol is None:
            return True
        offered = request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        return protocol in [name.strip() for name in offered]

    async def _read(self, response: _Response, socket: Socket) -> None:
        while True:
            received = await response.hear(socket)
            if received.type is not WSMsgType.TEXT:
                await _end(response, socket, received)
                return
            refused = await socket.handle(received.data)
            if refused is not None:
                await _refuse(response, socket, refused)
                return


async def _end(
    response: _Response, socket: Socket, received: "WSMessage | WSMessageTextBytes"
) -> None:
    """Handle a socket event other than a message: the socket is closed or must be."""
    if received.type is WSMsgType.BINARY:
        await _close(response, socket, WSCloseCode.UNSUPPORTED_DATA, "text frames only")
    elif received.type is WSMsgType.PING:
        await _refuse(response, socket, RequestRefused(_REFUSALS[bytes(received.data)]))
    elif received.type is WSMsgType.CLOSE:
        await _answer_close(response, socket, received.data)
    elif isinstance(fault := received.data, WebSocketError):
        reason = "a frame without a mask" if response.has_unmasked_frame() else str(fault)
        socket.note_close(fault.code, reason)


async def _answer_close(response: _Response, socket: Socket, code: int) -> None:
    """Answer a close frame; aiohttp has refused most invalid codes. Nothing more is read."""
    if code == WSCloseCode.ABNORMAL_CLOSURE or code > _LAST_CODE:
        reason = f"the client closed the socket with code {code}"
        await _close(response, socket, WSCloseCode.PROTOCOL_ERROR, reason, drain=False)
    else:
        await response.close(drain=False)


def _refused_version(request: web.Request, endpoint: Endpoint) -> web.Response:
    response = refusal(request, RequestRefused(ErrorReply.WEBSOCKET_VERSION_UNSUPPORTED), endpoint)
    ours = {"Sec-WebSocket-Version": _VERSION, "Upgrade": "websocket", "Connection": "Upgrade"}
    response.headers.update(ours)
    return response
