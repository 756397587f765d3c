"""Bytes of HTTP that are read now and parsed later: behind a request, or in a later turn."""

from typing import Final

from aiohttp import web
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from holdfast.web.endpoint import Endpoint
from holdfast.web.socket_reading import SocketReading

# How many bytes may arrive while a request is held. Only clients that pipeline send more.
_MAX_SET_ASIDE: Final = 64 * 1024
# Memory that each piece takes besides its bytes.
_PIECE_BYTES: Final = 64
# More bytes than this wait if the turn is over, and are parsed a piece per turn if they are chunks.
_FEW: Final = 1024
_PIECE: Final = 8192
# Where the head of a request is looked for.
_MOST_OF_HEAD: Final = 8192


class ReadingAside(SocketReading):
    """A connection that sets bytes aside.

    While a request is held, reading goes on, so that the end of the stream is seen. It stops for a
    few turns while there is too much to parse in this one.
    """

    __slots__ = (
        "_body",
        "_has_chunks",
        "_is_putting_off",
        "_ordinary",
        "_scheduler",
        "_set_aside",
        "_size_aside",
    )

    def __init__(self, endpoint: Endpoint, manager: web.Server) -> None:
        super().__init__(endpoint, manager)
        self._scheduler = endpoint.scheduler
        # Requests that aiohttp has not answered yet, and the body of the last of them.
        self._ordinary = 0
        self._body: StreamReader = EMPTY_PAYLOAD
        self._has_chunks = False
        # Bytes set aside, in the pieces in which they arrived: how aiohttp reads the bytes after a
        # refused upgrade depends on the pieces. Mostly one: a deque would take 600 bytes for it.
        self._set_aside: list[bytes] | None = None
        self._size_aside = 0
        # Whether these are to be parsed in later turns, and the transport does not read meanwhile.
        self._is_putting_off = False

    def _is_taken(self) -> bool:
        if self._exchange is not None or self._paused:
            return True
        return self._ordinary > 0 and self._body.is_eof()

    def _waits(self, data: bytes) -> bool:
        """Put bytes aside behind others that wait for a later turn, or if they themselves can."""
        if self._is_putting_off:
            # aiohttp has let the transport read again.
            self._put_off(data)
            return True
        return self._scheduler.is_behind and self._puts_off(data)

    def _puts_off(self, data: bytes) -> bool:
        """Put bytes aside for a later turn if they can wait."""
        is_free = not (self._set_aside or self._ordinary or self._is_taken() or self._upgraded)
        if not is_free or not self._scheduler.can_wait(data):
            return False
        self._put_aside(data)
        self._scheduler.read_later(self._take_up)
        return True

    def _puts_off_much(self, data: bytes) -> bool:
        """Parse in later turns what takes long, and everything but little if this turn is over."""
        if len(data) <= _FEW or self._set_aside:
            return False
        is_over = self._endpoint.turn.is_spent()
        if not is_over and (len(data) <= _PIECE or not self._is_dear(data)):
            return False
        self._put_off(data)
        if is_over:
            self._scheduler.read_later(self._take_up)
        else:
            self._take_up()
        return True

    def _is_dear(self, data: bytes) -> bool:
        """Return whether parsing may take much longer than copying: chunks may have one byte."""
        is_within = self._has_chunks and not self._body.is_eof()
        return is_within or b"hunked" in data[:_MOST_OF_HEAD]

    def _put_off(self, data: bytes) -> None:
        """Put bytes aside in pieces. Nothing more is read until they are parsed."""
        step = _PIECE if self._is_dear(data) else len(data)
        pieces = [data[at : at + step] for at in range(0, len(data), step)]
        self._set_aside = [*(self._set_aside or ()), *pieces]
        self._size_aside += len(data) + len(pieces) * _PIECE_BYTES
        self._is_putting_off = True
        self._pause_transport_reading()

    def _read_on(self) -> None:
        """Let the transport read again, unless a request waits that would keep too much aside."""
        self._is_putting_off = False
        if self._size_aside > _MAX_SET_ASIDE:
            self._note_cut("too many bytes arrived while a request was held")
            self.force_close()
        elif not self._reading_paused:
            self._resume_transport_reading()

    def _put_aside(self, data: bytes) -> None:
        if self._set_aside is None:
            self._set_aside = []
        self._set_aside.append(data)
        self._size_aside += len(data) + _PIECE_BYTES
        if self._size_aside > _MAX_SET_ASIDE:
            self._note_cut("too many bytes arrived while a request was held")
            self.force_close()

    def _take_up(self) -> None:
        """Process the bytes set aside, unless the connection has become busy."""
        while self._set_aside and not self._is_taken() and not self._endpoint.gate.is_still:
            pieces, self._set_aside = self._set_aside, None
            first = pieces.pop(0)
            self._size_aside -= len(first) + _PIECE_BYTES
            was_putting_off, self._is_putting_off = self._is_putting_off, False
            self._receive_now(first)
            self._set_aside, self._is_putting_off = pieces or None, was_putting_off
            if pieces and self._endpoint.turn.is_spent():
                self._scheduler.read_later(self._take_up)
                return
        if self._is_putting_off and not self._endpoint.gate.is_still:
            self._read_on()

    def _receive_now(self, data: bytes) -> None:
        """Parse these bytes, and handle what they complete."""
        raise NotImplementedError

    def aside(self) -> bytes:
        """Return what was read and not parsed."""
        return b"".join(self._set_aside or ())
