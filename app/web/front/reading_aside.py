"""Bytes of HTTP that are read now and parsed later: behind a request, or in a later turn."""

import asyncio
import sys
from collections import deque
from fcntl import ioctl
from typing import TYPE_CHECKING, Final

from aiohttp import web
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.front.socket_reading import SocketReading
from holdfast.web.http.request_kinds import RequestKind, kind_of
from holdfast.web.scheduling.client_lines import is_whole, place_of
from holdfast.web.scheduling.intake import SMALL

if TYPE_CHECKING:
    from holdfast.web.http.request_boundaries import Begun

# How many bytes may arrive while a request is held. Only clients that pipeline send more.
_MAX_SET_ASIDE: Final = 64 * 1024
# Memory that each piece takes besides its bytes.
_OF_EACH: Final = 64
# More bytes than this are much: connections without a request are not read while they wait.
_FEW: Final = SMALL
# How many bytes are parsed before the time is looked at; with chunks, of which each may have only
# one byte, it is fewer.
_PIECE: Final = 32 * 1024
_PIECE_OF_CHUNKS: Final = 4096
# What heads of requests with chunks have, in one spelling or another.
_OF_CHUNKS: Final = b"hunked"
# If connections without a request had to wait, this many are looked at in one turn. Reading goes
# on of those for which little has arrived, and of some for which more has.
_LOOKED_AT: Final = 200
_LITTLE: Final = 4096
_WITH_MORE: Final = 20
# More pieces of a body than this are joined, unless they are this long.
_MANY: Final = 16
_LONG: Final = 4096


class ReadingAside(SocketReading):
    """A connection that sets bytes aside, and parses them in the order in which they arrived.

    While a request is held, reading goes on, so that the end of the stream is seen. It pauses while
    bytes wait for a later turn, and while more are set aside than may arrive behind a request.
    """

    __slots__ = (
        *("_address", "_begun", "_body", "_in_line", "_is_full", "_lines", "_ordinary"),
        *("_scheduler", "_set_aside", "_size_aside", "unused_since"),
    )

    def __init__(self, endpoint: Endpoint, manager: web.Server) -> None:
        super().__init__(endpoint, manager)
        # When the connection was made; None once it has sent a further request.
        self.unused_since: float | None = endpoint.clock()
        self._scheduler = endpoint.scheduler
        self._lines = endpoint.scheduler.lines
        # Requests that aiohttp has not answered yet, and the body of the last of them.
        self._ordinary = 0
        self._body: StreamReader = EMPTY_PAYLOAD
        # What the parser has read of an unfinished request.
        self._begun: Begun | None = None
        # Mostly one piece: a deque would take 600 bytes for it.
        self._set_aside: list[bytes] | None = None
        self._size_aside = 0
        # Whether nothing is read until bytes set aside have been parsed.
        self._is_full = False
        # Whether these bytes are parsed when it is their client's turn.
        self._in_line = False
        # The address of the peer, once it was asked for.
        self._address: bytes | None = None

    def _handle_next(self, data: bytes) -> None:
        """Handle bytes that are next, or set them aside if a request is held."""
        raise NotImplementedError

    def _is_taken(self) -> bool:
        """Return whether bytes wait behind a request. After an upgrade they are no requests."""
        if self._upgraded:
            return False
        if self._exchange is not None or self._paused:
            return True
        return self._ordinary > 0 and self._body.is_eof()

    def _puts_off(self, data: bytes) -> bool:
        """Put a request aside for a later turn if it can wait, or if its client has to wait."""
        if self._set_aside or self._ordinary or self._upgraded:
            return False
        # The rest of `_is_taken`: a call takes time, and thousands may come together.
        if self._exchange is not None or self._paused:
            return False
        if self._scheduler.can_wait(data):
            self._put_aside(data)
            self._scheduler.read_later(self._read_deferred)
            return True
        is_late = self._is_new_and_late(data)
        if not is_late and not self._lines:
            return False
        # Thousands may wait: what is known of their place is not asked for again.
        place = self._place_of_new(data)
        client = self._client_of(data, place)
        if not is_late and not self._lines.holds(client):
            return False
        self._line_up(client, data, place if is_late else b"")
        return True

    def _is_new_and_late(self, data: bytes) -> bool:
        """Return whether `_puts_off_unparsed` would put these bytes aside, in the usual case."""
        is_late = self._begun is None and len(data) <= _FEW and self._endpoint.turn.is_spent()
        return is_late and not self._begins_as_before(data)

    def _puts_off_unparsed(self, data: bytes) -> bool:
        """Put bytes aside if the turn is over, or if they are too many to be parsed together."""
        begun = self._begun
        is_much = len(data) > _FEW or (begun is not None and begun.owed < 0)
        if not data or (not is_much and begun is not None and begun.owed > 0):
            # To parse the rest of a small body takes little.
            return False
        if self._upgraded or self._is_taken():
            return False
        turn = self._endpoint.turn
        if turn.is_spent() and (is_much or turn.is_overdue() or not self._begins_as_before(data)):
            self._line_up(self._client_of(data), data)
            return True
        if not is_much or len(data) <= self._size_of_piece(data):
            return False
        self._is_full = True
        self._put_all_aside(data)
        self._take_up()
        return True

    def _client_of(self, data: bytes, place: bytes = b"") -> bytes:
        begun = self._begun
        if begun is not None and begun.head:
            data = begun.head + data
            place = b""
        return self._lines.client_of(data, place or self._place_of_new(data))

    def _place_of_new(self, data: bytes) -> bytes:
        address = self._address
        return place_of(self._find_address() if address is None else address, self._kind_of(data))

    def _find_address(self) -> bytes:
        if self._address is None:
            peer = self.transport and self.transport.get_extra_info("peername")
            self._address = peer[0].encode() if isinstance(peer, tuple) else b""
        return self._address

    def _line_up(self, client: bytes, data: bytes = b"", place: bytes = b"") -> None:
        """Let these bytes, behind those aside, wait for the turn of their client at its place."""
        self._in_line = True
        if self._is_full or self._size_aside + len(data) > _FEW:
            self._let_others_rest()
            self._stop_reading()
        if data:
            self._put_all_aside(data)
        self._lines.add(self._read_in_turn, client, place or self._place_of_first())
        self._scheduler.answer_if_overdue()

    def _place_of_first(self) -> bytes:
        first = self._set_aside[0] if self._set_aside else b""
        if self._begins_as_before(first):
            return place_of(self._find_address(), RequestKind.REPEATED)
        return self._place_of_new(first)

    def _kind_of(self, data: bytes) -> RequestKind:
        return kind_of(data, is_first=self.unused_since is not None)

    def _begins_as_before(self, data: bytes) -> bool:
        """Return whether the connection has had a request with the same head.

        Such a request takes little, so it has the patience of small ones.
        """
        raise NotImplementedError

    def _let_others_rest(self) -> None:
        """Take measures if much waits: to read more of others takes long, too."""

    def _put_all_aside(self, data: bytes) -> None:
        if len(data) <= _MAX_SET_ASIDE:
            self._put_aside(data)
            return
        for start in range(0, len(data), _MAX_SET_ASIDE):
            # Cutting small pieces off a longer one would copy the rest too often.
            self._put_aside(data[start : start + _MAX_SET_ASIDE])

    def _put_aside(self, data: bytes) -> None:
        if not self._set_aside:
            self._set_aside = [data]
            self._size_aside += len(data) + _OF_EACH
        elif self._completes(data):
            self._set_aside[-1] += data
            self._size_aside += len(data)
        else:
            self._set_aside.append(data)
            self._size_aside += len(data) + _OF_EACH
        if self._in_line and self._size_aside > _FEW and not self._is_full:
            self._stop_reading()
        if self._size_aside > _MAX_SET_ASIDE and not self._is_full:
            self._note_cut("too many bytes arrived while a request was held")
            self.force_close()

    def _completes(self, data: bytes) -> bool:
        """Return whether these bytes belong to a small request that waits: it is handled whole."""
        if self._set_aside is None or not self._in_line or self._begun is not None:
            return False
        last = self._set_aside[-1]
        return len(last) + len(data) <= _FEW and not is_whole(last)

    def _follow(self, data: bytes) -> None:
        """Take what arrives while earlier bytes are set aside."""
        if not data:
            # aiohttp goes on: what its parser has kept comes first.
            self._handle_next(data)
            self._take_up()
            return
        if not self._is_full:
            # This may be the rest of deferred data.
            self._take_up()
        if self._set_aside:
            self._put_aside(data)
        else:
            self.data_received(data)

    def _read_deferred(self) -> None:
        if not self._in_line:
            self._read_in_turn()

    def _read_in_turn(self) -> None:
        """Handle the first of the bytes set aside, and more as long as is time."""
        self._in_line = False
        if self._set_aside and self._may_go_on():
            self._handle_next(self._next_piece())
        self._take_up()

    def _take_up(self) -> None:
        """Handle the bytes set aside, as long as is time, unless the connection has become busy."""
        if self._in_line:
            return
        while self._set_aside and self._may_go_on():
            client = self._client_of(self._set_aside[0])
            if not self._upgraded and self._has_to_wait(client):
                self._line_up(client)
                return
            self._handle_next(self._next_piece())
        if self._size_aside > _MAX_SET_ASIDE:
            self._stop_reading()
        elif self._is_full:
            self._read_on()

    def _is_silent(self) -> bool:
        return super()._is_silent() and not self._in_line

    def _has_to_wait(self, client: bytes) -> bool:
        return self._endpoint.turn.is_spent() or self._lines.holds(client)

    def _may_go_on(self) -> bool:
        if self._force_close or self._close:
            self._drop_aside()
            return False
        if self._endpoint.gate.is_still or self._is_taken():
            return False
        # What its handler has to read comes first. aiohttp tells when there is room.
        return self._upgraded or not self._reading_paused

    def _size_of_piece(self, data: bytes) -> int:
        """Return how many of these bytes are parsed together: all of a body without chunks."""
        if self._upgraded:
            return len(data)
        owed = 0 if self._begun is None else self._begun.owed
        if owed < 0 or data.find(_OF_CHUNKS, owed, owed + _PIECE) >= 0:
            return max(owed, _PIECE_OF_CHUNKS)
        return max(owed, _PIECE)

    def _next_piece(self) -> bytes:
        pieces = self._set_aside or [b""]
        first = pieces[0]
        size = self._size_of_piece(first)
        if len(first) > size:
            pieces[0] = first[size:]
            self._size_aside -= size
            return first[:size]
        del pieces[0]
        self._size_aside -= len(first) + _OF_EACH
        if not pieces:
            self._set_aside = None
        return first

    def _stop_reading(self) -> None:
        self._is_full = True
        self._pause_transport_reading()

    def _read_on(self) -> None:
        self._is_full = False
        if not self._reading_paused and not self._buffer_paused:
            self._resume_transport_reading()

    def _resume_transport_reading(self) -> None:
        if not self._is_full:
            super()._resume_transport_reading()

    def read_again(self) -> None:
        super().read_again()
        self._take_up()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._set_aside:
            self._take_up()

    def _drop_aside(self) -> None:
        self._set_aside, self._size_aside = None, 0

    def aside(self) -> bytes:
        """Return what was read and not parsed."""
        return b"".join(self._set_aside or ())


class Newcomers:
    """Lets connections without a request wait while more has arrived than a turn has time for.

    To read a connection takes long if much has arrived, although nothing is parsed, and the event
    loop reads all that have anything. So a thousand new ones would keep the others waiting.
    """

    __slots__ = ("_resting", "_room")

    def __init__(self, room: ConnectionLimit) -> None:
        self._room = room
        # Those that are not read.
        self._resting: deque[ReadingAside] = deque()

    def let_wait(self) -> None:
        """Read none of them any more in this turn, and some in each of the next.

        None waits again before all have been read.
        """
        if self._resting:
            return
        guests = self._room.without_claim()
        self._resting.extend(each for each in guests if isinstance(each, ReadingAside))
        for each in self._resting:
            each.pause_until_open()
        if self._resting:
            asyncio.get_running_loop().call_soon(self._read_on)

    def welcome(self, each: ReadingAside) -> None:
        """Let a new connection wait, too, while earlier ones do.

        Clients that send over several new connections expect that they are read in their order.
        """
        if self._resting:
            each.pause_until_open()
            self._resting.append(each)

    def _read_on(self) -> None:
        more = 0
        for _ in range(min(len(self._resting), _LOOKED_AT)):
            each = self._resting.popleft()
            has_more = _arrived_for(each) > _LITTLE
            if has_more and more == _WITH_MORE:
                self._resting.append(each)
                continue
            more += has_more
            each.read_again()
        if self._resting:
            asyncio.get_running_loop().call_soon(self._read_on)


def _arrived_for(connection: ReadingAside) -> int:
    """Return how many bytes have arrived for a connection and are not read."""
    # Rarely needed.
    from termios import FIONREAD

    transport = connection.transport
    connected = None if transport is None else transport.get_extra_info("socket")
    try:
        found = b"" if connected is None else ioctl(connected.fileno(), FIONREAD, bytes(4))
    except (OSError, ValueError):
        # It is closed, which reading will tell.
        return 0
    return int.from_bytes(found, sys.byteorder)


def join_small_pieces(body: StreamReader) -> None:
    """Join the last pieces of a body, one for each chunk: reading takes as long for each."""
    if type(body) is not StreamReader or len(body._buffer) <= _MANY:
        return
    pieces, small = body._buffer, deque[bytes]()
    while pieces and len(pieces[-1]) < _LONG:
        small.appendleft(pieces.pop())
    if small:
        pieces.append(b"".join(small))
    if body._http_chunk_splits:
        # No handler asks where chunks end.
        body._http_chunk_splits.clear()
