"""WebSocket: one socket for everything a session sends and receives."""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal

from aiohttp import HttpVersion11, WebSocketError, WSCloseCode, WSMsgType, web

from app.bayeux.caller import Caller
from app.bayeux.errors import BayeuxError, RequestRefused
from app.bayeux.exchange import ConnectionType, Exchange, Source
from app.delivery.messages import Event
from app.delivery.notices import CLOSED
from app.web.client_frames import NO_ROOM, TOO_LARGE
from app.web.cookies import is_cookieless
from app.web.endpoint import Endpoint
from app.web.long_polling import refusal
from app.web.origins import source_of

if TYPE_CHECKING:
    from aiohttp import WSMessage
    from aiohttp.http import WSMessageTextBytes

    from app.bayeux.sessions import Session

log = logging.getLogger(__name__)
# Protocols that a client offers in vain are no warning to an operator.
logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)

_TEXT = 0x81
# How long a client that was told that its session is over may take to close its socket.
_GOODBYE_S = 1.0
# So many frames of one socket are read, then others have their turn.
_TURN = 16
# The only version that there is (RFC 6455).
_VERSION = "13"
# Of the codes with which applications may close a socket.
_LAST_CODE = 4999
# What clients are told when aiohttp closes their socket.
_REASONS: dict[int, bytes] = {
    WSCloseCode.PROTOCOL_ERROR: b"a frame against the protocol",
    WSCloseCode.MESSAGE_TOO_BIG: BayeuxError.REQUEST_TOO_LARGE.wire().encode(),
}
_CLOSE_CODES = {
    BayeuxError.REQUEST_TOO_LARGE: WSCloseCode.MESSAGE_TOO_BIG,
    BayeuxError.SERVER_BUSY: WSCloseCode.INTERNAL_ERROR,
    BayeuxError.REQUEST_TIMEOUT: WSCloseCode.POLICY_VIOLATION,
}
# Why no message came, by what the ping has in it that came instead.
_REFUSALS = {TOO_LARGE: BayeuxError.REQUEST_TOO_LARGE, NO_ROOM: BayeuxError.SERVER_BUSY}


def frame(payload: bytes) -> bytes:
    """A text frame of a server: never masked, so the same bytes serve every receiver."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", _TEXT, size) + payload
    if size < 65536:
        return struct.pack("!BBH", _TEXT, 126, size) + payload
    return struct.pack("!BBQ", _TEXT, 127, size) + payload


class Socket:
    """One open socket: carrier of its exchanges, pipe of its session.

    Frames are written to the transport directly. aiohttp does the opening, reading and closing.
    """

    __slots__ = (
        "_bayeux",
        "_burst",
        "_draining",
        "_ending",
        "_flush",
        "_hang_up",
        "_messages_per_frame",
        "_protocol",
        "browsers",
        "caller",
        "heard",
        "is_cookieless",
        "session",
        "source",
    )

    connection_type = ConnectionType.WEBSOCKET

    def __init__(
        self,
        request: web.Request,
        endpoint: Endpoint,
        browsers: tuple[str, ...],
        caller: Caller,
        source: Source,
        *,
        flush: Callable[[], Awaitable[None]],
        hang_up: Callable[["Socket"], Awaitable[object]],
    ) -> None:
        self.browsers, self.source = browsers, source
        self.caller = caller
        self.is_cookieless = is_cookieless(request.headers)
        self.session: Session | None = None
        self.heard = endpoint.clock()
        # Asked for every message: what the request says of it is two steps away.
        self._protocol = request.protocol
        self._bayeux, self._burst = endpoint.bayeux, endpoint.burst
        self._messages_per_frame = endpoint.options.ws_messages_per_frame
        self._flush = flush
        self._hang_up = hang_up
        self._draining: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        if exchange.is_superseded:
            # Nobody waits for it: the client has sent the connect that overtook it.
            return False
        replies = frame(b"[" + b",".join(exchange.replies) + b"]")
        if not messages:
            return self._write(replies)
        frames = self._frames(messages)
        return self._write(replies + frames if exchange.is_handshake else frames + replies)

    def push(self, messages: Sequence[Event]) -> bool:
        return self._write(self._frames(messages))

    def is_draining(self) -> bool:
        if not self._protocol.writing_paused or self._protocol.transport is None:
            return False
        if self._draining is None:
            # Who is told so is owed a word when it is over.
            self._draining = asyncio.get_running_loop().create_task(self._drain())
        return True

    def is_lost(self) -> bool:
        transport = self._protocol.transport
        return transport is None or transport.is_closing()

    async def drained(self) -> None:
        """Wait until the client has read, or is gone."""
        if self._draining is not None:
            await self._draining

    def has_unmasked_frame(self) -> bool:
        """Whether one came, as far as the connection knows."""
        return getattr(self._protocol, "has_unmasked_frame", False)

    def note_heard(self, size: int) -> None:
        """A message left the connection's hands: the room that it took is free."""
        if note := getattr(self._protocol, "note_heard", None):
            note(size)

    def note_close(self, code: int, reason: str) -> None:
        """The server closes it, and says so in the log."""
        key = "(none)" if self.session is None else self.session.key
        self._bayeux.notices.tell(CLOSED, key, f"{code:d}: {reason}")

    def end(self) -> None:
        # A cometd.js whose first connect crossed the goodbye would keep its socket for ever.
        if self._ending is None and self.session is not None:
            self._ending = asyncio.get_running_loop().create_task(self._end(self.session))

    def close(self) -> None:
        """Nothing leaves any more."""
        for task in (self._draining, self._ending):
            if task is not None:
                task.cancel()

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
        if transport is None or transport.is_closing():
            return False
        self._burst.write(transport, frames)
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
    """Closes its socket behind all that was said."""

    def __init__(self, endpoint: Endpoint) -> None:
        options = endpoint.options
        super().__init__(
            max_msg_size=options.max_request_size,
            # Whether the bytes are UTF-8 is found out when they are read as JSON.
            decode_text=False,
            # Compressed frames would have to be made for each receiver by itself.
            compress=False,
            # Answered in `hear`, where others have their turn in between.
            autoping=False,
            # Not with every code: see `_answer_close`.
            autoclose=False,
            protocols=() if options.ws_protocol is None else (options.ws_protocol,),
        )
        self._burst = endpoint.burst
        self._frames_heard = 0

    async def hear(self) -> "WSMessage | WSMessageTextBytes":
        """What the client says next, besides pings."""
        while True:
            self._frames_heard += 1
            if self._frames_heard % _TURN == 0:
                # What has come is read without waiting, and there may be a lot of it.
                await asyncio.sleep(0)
            received = await self.receive()
            if received.type is WSMsgType.PING and bytes(received.data) not in _REFUSALS:
                # Who is gone by now is heard of next.
                with suppress(ConnectionError):
                    await self.pong(received.data)
            elif received.type is not WSMsgType.PONG:
                return received

    async def close(
        self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True
    ) -> bool:
        self._burst.send()
        message = message or _REASONS.get(code, b"")
        return await super().close(code=code, message=message, drain=drain)


async def _close(
    response: _Response, socket: Socket, code: int, reason: str, *, drain: bool = True
) -> None:
    """What the client is told is in the log, too."""
    if not response.closed:
        socket.note_close(code, reason)
        await response.close(code=code, message=reason.encode(), drain=drain)


async def _refuse(response: _Response, socket: Socket, error: BayeuxError) -> None:
    code = _CLOSE_CODES.get(error, WSCloseCode.INVALID_TEXT)
    await _close(response, socket, code, error.wire())


class WebSocketDoor:
    """Opens sockets and reads from them; keeps them all, so that they can be closed at the end."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._open: dict[_Response, Socket] = {}
        self._watch: asyncio.Task[None] | None = None

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """A request to upgrade, and all that follows on its connection."""
        options = self._endpoint.options
        try:
            source = source_of(self._endpoint.check_origin(request.headers))
            caller = self._endpoint.caller(request)
        except RequestRefused as refused:
            return refusal(request, refused.error, self._endpoint, refused.wait_s)
        if request.version < HttpVersion11 or not self._speaks_our_protocol(request):
            return refusal(request, BayeuxError.TRANSPORT_UNKNOWN, self._endpoint)
        if request.headers.get("Sec-WebSocket-Version", "").strip() != _VERSION:
            return _refused_version(request, self._endpoint)
        response = _Response(self._endpoint)
        browsers = options.cookie.find(request.headers.getall("Cookie", ()))
        if not browsers:
            browsers = (self._welcome(request),)
            response.headers["Set-Cookie"] = options.cookie.header(browsers[0])
        writer = await response.prepare(request)
        socket = Socket(
            request,
            self._endpoint,
            browsers,
            caller,
            source,
            flush=writer.drain,
            hang_up=partial(_close, response, code=WSCloseCode.OK, reason="the session is over"),
        )
        self._open[response] = socket
        loop = asyncio.get_running_loop()
        expecting = loop.create_task(self._expect_session(response, socket))
        if self._watch is None and self._endpoint.options.ws_idle_timeout_s > 0:
            self._watch = loop.create_task(self._watch_idle())
        try:
            await self._read(response, socket)
        finally:
            expecting.cancel()
            del self._open[response]
            socket.close()
            self._endpoint.bayeux.detach(socket, self._endpoint.clock())
        return response

    def _welcome(self, request: web.Request) -> str:
        """The identity of a browser that has none yet, as far as the socket can tell."""
        browser = self._endpoint.bayeux.new_id()
        # Of what came in one turn of the loop nobody knows the order, but of connections.
        opened_at = getattr(request.protocol, "unused_since", None) or self._endpoint.clock()
        self._endpoint.bayeux.identities.welcome(browser, opened_at)
        return browser

    async def _expect_session(self, response: _Response, socket: Socket) -> None:
        """Whoever opens a socket must say for which session."""
        await asyncio.sleep(self._endpoint.options.ws_session_timeout_s)
        if socket.session is None:
            await _refuse(response, socket, BayeuxError.REQUEST_TIMEOUT)

    async def _watch_idle(self) -> None:
        """One look at all sockets now and then is cheaper than a timeout for each message."""
        limit_s, clock = self._endpoint.options.ws_idle_timeout_s, self._endpoint.clock
        while self._open:
            await asyncio.sleep(limit_s / 10)
            latest = clock() - limit_s
            goodbyes = [
                _close(response, socket, WSCloseCode.GOING_AWAY, "idle for too long", drain=False)
                for response, socket in self._open.items()
                if socket.heard < latest
            ]
            await asyncio.gather(*goodbyes, return_exceptions=True)
        self._watch = None

    async def close_all(self) -> None:
        """The server stops, and has given everybody time to read what was said."""
        if self._watch is not None:
            self._watch.cancel()
        if self._open:
            log.info("%d sockets were closed with 1001: the server stops", len(self._open))
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
        clock = self._endpoint.clock
        while True:
            received = await response.hear()
            socket.heard = clock()
            if received.type is not WSMsgType.TEXT:
                await _end(response, socket, received)
                return
            socket.note_heard(len(received.data))
            exchange = Exchange(
                socket,
                socket.browsers,
                socket,
                is_cookieless=socket.is_cookieless,
                caller=socket.caller,
                source=socket.source,
            )
            error = await self._handle(received.data, exchange)
            if error is not None:
                await _refuse(response, socket, error)
                return
            if socket.is_draining():
                # A client that does not read gets no more of its messages heard.
                await socket.drained()

    async def _handle(self, body: bytes, exchange: Exchange) -> BayeuxError | None:
        """Returns when the message is done: what comes next on its socket waits."""
        turns = self._endpoint.turns
        try:
            rest = turns.receive(body, exchange)
        except RequestRefused as refused:
            return refused.error
        except BaseException:
            return turns.give_up(exchange)
        if rest is None:
            return None
        outcome: asyncio.Future[BayeuxError | None] = asyncio.get_running_loop().create_future()
        rest.done = outcome.set_result
        # It goes on, whatever becomes of who waits here.
        return await asyncio.shield(outcome)


async def _end(
    response: _Response, socket: Socket, received: "WSMessage | WSMessageTextBytes"
) -> None:
    """What came is no message: the socket is to be closed, or is closed."""
    if received.type is WSMsgType.BINARY:
        await _close(response, socket, WSCloseCode.UNSUPPORTED_DATA, "text frames only")
    elif received.type is WSMsgType.PING:
        await _refuse(response, socket, _REFUSALS[bytes(received.data)])
    elif received.type is WSMsgType.CLOSE:
        await _answer_close(response, socket, received.data)
    elif isinstance(fault := received.data, WebSocketError):
        reason = "a frame without a mask" if socket.has_unmasked_frame() else str(fault)
        socket.note_close(fault.code, reason)


async def _answer_close(response: _Response, socket: Socket, code: int) -> None:
    """aiohttp has looked for most of the codes that there are not. Nothing more is read."""
    if code == WSCloseCode.ABNORMAL_CLOSURE or code > _LAST_CODE:
        reason = f"the client closed it with {code}"
        await _close(response, socket, WSCloseCode.PROTOCOL_ERROR, reason, drain=False)
    else:
        await response.close(drain=False)


def _refused_version(request: web.Request, endpoint: Endpoint) -> web.Response:
    response = refusal(request, BayeuxError.WEBSOCKET_VERSION_UNSUPPORTED, endpoint)
    ours = {"Sec-WebSocket-Version": _VERSION, "Upgrade": "websocket", "Connection": "Upgrade"}
    response.headers.update(ours)
    return response
