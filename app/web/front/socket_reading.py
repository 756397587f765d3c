"""How the bytes of a WebSocket are read: a piece in each turn, and frames within a time limit."""

from typing import Any, Final, cast

from aiohttp import web

from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.front.client_frames import ClientFrames
from holdfast.web.front.connection_times import TimedConnection

# How many bytes of a WebSocket are parsed in one turn of the event loop. A frame may have only six
# bytes, and tens of thousands of frames take long.
_PIECE: Final = 16 * 1024
# More bytes than this wait if the turn is over: many sockets may be readable.
_FEW: Final = 1024


class SocketReading(TimedConnection):
    """A connection that reads frames after an upgrade."""

    __slots__ = ("_finished", "_unheard", "frames")

    def __init__(self, endpoint: Endpoint, manager: web.Server) -> None:
        super().__init__(endpoint, manager)
        # The WebSocket's frame reader, after an upgrade.
        self.frames: ClientFrames | None = None
        # Bytes of the WebSocket that wait for a later turn.
        self._unheard = b""
        # The number of its whole messages when the unfinished one began.
        self._finished = 0

    def set_parser(self, parser: Any, data_received_cb: Any = None) -> None:
        endpoint = self._endpoint
        headers = cast("Any", self._current_request).headers
        network = endpoint.peers.caller(headers, self.transport).network
        self.frames = ClientFrames(
            parser, endpoint.options.max_request_size, endpoint.intake, network
        )
        tail, self._message_tail = self._message_tail, b""
        super().set_parser(cast("Any", self.frames), data_received_cb)
        if tail:
            self._hear(tail)

    def _hear(self, data: bytes) -> None:
        """Parse a WebSocket's bytes, one piece per turn; reading is paused until all are parsed."""
        if not self._unheard:
            if len(data) <= _FEW or (len(data) <= _PIECE and not self._endpoint.turn.is_spent()):
                super().data_received(data)
                self._watch_frames()
                return
            super()._pause_reading_for_buffer()
            if not self._reading_paused:
                self._hear_later()
        self._unheard += data

    def _hear_later(self) -> None:
        """Parse the next piece in another turn; if this one is over, behind what waits already."""
        if self._endpoint.turn.is_spent():
            self._endpoint.scheduler.read_later(self._hear_more)
        else:
            self._loop.call_soon(self._hear_more)

    def _hear_more(self) -> None:
        if self._endpoint.gate.is_still:
            return
        piece, self._unheard = self._unheard[:_PIECE], self._unheard[_PIECE:]
        if piece:
            super().data_received(piece)
            self._watch_frames()
        if not self._unheard:
            self._resume_reading_for_buffer()
        elif not self._reading_paused:
            self._hear_later()

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

    def unheard_frames(self) -> bytes | None:
        """Return the bytes of frames that were read and not handled; None if they are unknown."""
        begun = None if self.frames is None else self.frames.begun()
        return None if begun is None else begun + self._unheard

    def read_again(self) -> None:
        super().read_again()
        if self._unheard and not self._reading_paused:
            self._loop.call_soon(self._hear_more)

    def resume_reading(self, resume_parser: bool = True) -> None:
        if not self._reading_paused:
            # aiohttp calls it after each piece that a handler has read.
            return
        super().resume_reading(resume_parser)
        if self._unheard:
            self._loop.call_soon(self._hear_more)

    def _time_out_frames(self, frames: ClientFrames) -> None:
        self.began_at = None
        if self._unheard or self._reading_paused:
            # The rest may be here already.
            self._start_reading()
        elif frames.is_unfinished:
            frames.time_out()
