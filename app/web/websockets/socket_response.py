"""The response to an upgrade: it reads the socket, and closes it with a code and a reason."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from aiohttp import WebSocketError, WSCloseCode, WSMsgType, web

from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.unfit import MAX_SIZE, too_large
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.front.client_frames import (
    NO_ROOM,
    TIMED_OUT,
    TOO_LARGE,
    ClientFrames,
    client_frame,
)
from holdfast.web.websockets.open_socket import Socket

if TYPE_CHECKING:
    from aiohttp import WSMessage
    from aiohttp.abc import AbstractStreamWriter
    from aiohttp.http import WSMessageTextBytes

# aiohttp warns about subprotocols that clients offer without success. Operators need not know.
logging.getLogger("aiohttp.websocket").setLevel(logging.ERROR)

# How many frames of one socket are read before others are served, if none wait already.
_TURN = 16
# The highest close code that applications may use.
_LAST_CODE = 4999
# A close frame has room for a reason of this size.
_LONGEST_REASON = 123
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


# By type: the first byte of the frame of a message that a successor may get again.
_AGAIN = {WSMsgType.TEXT: 0x81, WSMsgType.PING: 0x89, WSMsgType.PONG: 0x8A}


class SocketResponse(web.WebSocketResponse[Literal[False]]):
    """Closes its socket only after everything pending is written."""

    # Whether the client got this response from the server before.
    _is_open = False
    # A message that was read when nothing was handled any more.
    _kept: "WSMessage | WSMessageTextBytes | None" = None

    def __init__(self, endpoint: Endpoint, *, is_open: bool = False) -> None:
        """With `is_open`, the client got this response from the server before."""
        if is_open:
            self._is_open = True
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
        self._gate, self._endpoint = endpoint.gate, endpoint
        # Counts errors by their reason.
        self.errors = endpoint.bayeux.state.counters.errors
        self.socket: Socket | None = None
        # None if the connection does not belong to the fast lane.
        self._frames: ClientFrames | None = None
        self._frames_heard = 0

    async def prepare(self, request: web.BaseRequest) -> "AbstractStreamWriter":
        writer = await super().prepare(request)
        self._frames = getattr(request.protocol, "frames", None)
        return writer

    async def _write_headers(self) -> None:
        if not self._is_open:
            await super()._write_headers()

    @property
    def request(self) -> "web.BaseRequest | None":
        """The request that opened this socket."""
        return self._req

    def unhandled(self) -> bytes | None:
        """Return frames with the messages that were read and not handled; None if that is unknown.

        They are as the client may have sent them.
        """
        if self.closed or self._closing or self._reader is None:
            return None
        waiting = [each for each, _ in self._reader._buffer]
        if self._kept is not None:
            waiting.insert(0, self._kept)
        if any(each.type not in _AGAIN for each in waiting):
            return None
        texts = sum(each.type is WSMsgType.TEXT for each in waiting)
        if self._frames is None or self._frames.waiting != texts:
            # One is on its way from the reader to its handler.
            return None
        return b"".join(client_frame(_AGAIN[each.type], bytes(each.data)) for each in waiting)

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
            if received.type is WSMsgType.TEXT and self._gate.is_still:
                await self._keep(received)
            if received.type is WSMsgType.PING and bytes(received.data) not in _REFUSALS:
                # If the client is gone, the next read reports it.
                with suppress(ConnectionError):
                    await self.pong(received.data)
            elif received.type is not WSMsgType.PONG:
                if received.type is WSMsgType.TEXT and self._frames is not None:
                    self._frames.heard(len(received.data))
                return received

    async def _keep(self, received: "WSMessage | WSMessageTextBytes") -> None:
        """Keep a message for a successor. Returns if there is none, and messages are handled."""
        self._kept = received
        await self._gate.until_handling()
        self._kept = None

    def _let_take(self, taker: Callable[[bytes], bool] | None) -> None:
        if self._frames is not None:
            self._frames.taker = taker

    def too_large(self) -> RequestRefused:
        """Return the refusal of a frame that exceeds the limit."""
        return too_large(MAX_SIZE, self._endpoint.options.max_request_size)

    def reason_of(self, refused: RequestRefused) -> str:
        """Return the error with where it is explained, if that is known and there is room."""
        told = f"{refused}; see {self._endpoint.errors}{refused.error.anchor}"
        has_room = self._endpoint.errors and len(told.encode()) <= _LONGEST_REASON
        return told if has_room else str(refused)

    def _reason_at(self, code: int) -> str:
        """Return the reason where aiohttp closes the socket, which gives none."""
        if code == WSCloseCode.MESSAGE_TOO_BIG:
            return self.reason_of(self.too_large())
        return "a frame against the protocol" if code == WSCloseCode.PROTOCOL_ERROR else ""

    async def close(
        self, *, code: int = WSCloseCode.OK, message: bytes = b"", drain: bool = True
    ) -> bool:
        if self.socket is not None:
            self.socket.close()
        self._coalescer.send()
        if not message:
            message = self._reason_at(code).encode()
        return await super().close(code=code, message=message, drain=drain)


async def close(
    response: SocketResponse, socket: Socket, code: int, reason: str, *, drain: bool = True
) -> None:
    """Close the socket, and log the reason that the client gets."""
    if not response.closed:
        socket.note_close(code, reason)
        await response.close(code=code, message=reason.encode(), drain=drain)


async def dismiss(response: SocketResponse, socket: Socket) -> None:
    if socket.is_draining():
        await socket.drained()
    await response.close(code=WSCloseCode.GOING_AWAY, drain=False)


async def refuse(response: SocketResponse, socket: Socket, refused: RequestRefused) -> None:
    response.errors[refused.error.reason] += 1
    code = _CLOSE_CODES.get(refused.error, WSCloseCode.INVALID_TEXT)
    await close(response, socket, code, response.reason_of(refused))


async def end(
    response: SocketResponse, socket: Socket, received: "WSMessage | WSMessageTextBytes"
) -> None:
    """Handle a socket event other than a message: the socket is closed or must be."""
    if received.type is WSMsgType.BINARY:
        await close(response, socket, WSCloseCode.UNSUPPORTED_DATA, "text frames only")
    elif received.type is WSMsgType.PING:
        error = _REFUSALS[bytes(received.data)]
        is_too_large = error is ErrorReply.REQUEST_TOO_LARGE
        refused = response.too_large() if is_too_large else RequestRefused(error)
        await refuse(response, socket, refused)
    elif received.type is WSMsgType.CLOSE:
        await _answer_close(response, socket, received.data)
    elif isinstance(fault := received.data, WebSocketError):
        reason = "a frame without a mask" if response.has_unmasked_frame() else str(fault)
        socket.note_close(fault.code, reason)


async def _answer_close(response: SocketResponse, socket: Socket, code: int) -> None:
    """Answer a close frame; aiohttp has refused most invalid codes. Nothing more is read."""
    if code == WSCloseCode.ABNORMAL_CLOSURE or code > _LAST_CODE:
        reason = f"the client closed the socket with code {code}"
        await close(response, socket, WSCloseCode.PROTOCOL_ERROR, reason, drain=False)
    else:
        await response.close(drain=False)
