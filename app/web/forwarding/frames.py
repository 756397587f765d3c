"""The frames on a link between a door and a home."""

from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct, error
from typing import Final, NamedTuple

from holdfast.bayeux.wire.transports import ConnectionType

# The size of what follows the head, the kind, and a number, whose meaning depends on the kind.
_HEAD: Final = Struct("<IBQ")
# More than any request or reply has. A peer that announces more is not one of ours.
MOST_BYTES: Final = 64 * 1024 * 1024
_NUMBERS: Final = 8


class Kind(IntEnum):
    """What a frame says. The number names an exchange, a socket, or the place of a speaker."""

    # From both, before all others
    HELLO = 0  # who this is

    # From the door
    SPEAKER = 1  # a place, and who speaks: from now on exchanges name the place
    EXCHANGE = 2  # an exchange, and its request
    ENDED = 3  # an exchange whose connection is lost
    TAKEN = 4  # exchanges whose replies the transport took
    NOT_TAKEN = 5  # exchanges whose replies it did not take
    WRITTEN = 6  # a socket whose transport took the oldest frames without a receipt
    NOT_WRITTEN = 7
    CLOSED = 8  # a socket that is closed
    FULL = 9  # a socket that takes nothing more for now
    DRAINED = 10
    # From the home
    ANSWER = 20  # an exchange, and its replies
    REFUSED = 21  # an exchange that is refused as a whole
    DONE = 22  # an exchange of a socket that is handled
    WRITE = 23  # sockets, and the WebSocket frames to write to each
    BOUND = 24  # a socket that has a session
    UNBOUND = 25  # a socket whose session has ended, or has another connection
    HANG_UP = 26  # a socket to close, if the client does not


class FrameUnreadable(Exception):
    """The peer sent what is no frame."""


class Frame(NamedTuple):
    kind: Kind
    number: int
    data: bytes


def pack(kind: Kind, number: int, *parts: bytes) -> bytes:
    """Return a frame whose data are these parts."""
    return b"".join((_HEAD.pack(sum(map(len, parts)), kind, number), *parts))


class FrameReader:
    """Divides what a connection reads into frames."""

    def __init__(self) -> None:
        self._pieces = bytearray()

    def read(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are complete now. Raises `FrameUnreadable`."""
        pieces = self._pieces
        pieces += data
        begin, end = 0, len(pieces)
        try:
            while end - begin >= _HEAD.size:
                size, kind, number = _HEAD.unpack_from(pieces, begin)
                if size > MOST_BYTES:
                    raise FrameUnreadable(f"a frame of {size} bytes")
                behind = begin + _HEAD.size + size
                if behind > end:
                    break
                yield Frame(_kind(kind), number, bytes(pieces[begin + _HEAD.size : behind]))
                begin = behind
        finally:
            del pieces[:begin]


def _kind(number: int) -> Kind:
    try:
        return Kind(number)
    except ValueError:
        raise FrameUnreadable(f"a frame of kind {number}") from None


# What frames carry

# The transports of exchanges, which name them by their places here.
TRANSPORTS: Final = tuple(ConnectionType)

_EXCHANGE: Final = Struct("<HBQ")
_REPLY: Final = Struct("<BB")
_SUPERSEDED: Final = 1
_WANTS_RECEIPT: Final = 2
_COUNT: Final = Struct("<I")


class Request(NamedTuple):
    """The data of an exchange: the place of its speaker, and its socket, or 0."""

    place: int
    transport: int
    socket: int
    body: bytes

    def pack(self, number: int) -> bytes:
        head = _EXCHANGE.pack(self.place, self.transport, self.socket)
        return pack(Kind.EXCHANGE, number, head, self.body)

    @classmethod
    def unpack(cls, data: bytes) -> "Request":
        place, transport, socket = _parse(_EXCHANGE, data)
        return cls(place, transport, socket, data[_EXCHANGE.size :])


class Reply(NamedTuple):
    """The data of an answer: the elements of its array, and what belongs into its head."""

    is_superseded: bool
    wants_receipt: bool
    # The identity of the browser, if it is new.
    browser: str
    elements: bytes

    def pack(self, number: int) -> bytes:
        flags = self.is_superseded * _SUPERSEDED | self.wants_receipt * _WANTS_RECEIPT
        browser = self.browser.encode()
        return pack(Kind.ANSWER, number, _REPLY.pack(flags, len(browser)), browser, self.elements)

    @classmethod
    def unpack(cls, data: bytes) -> "Reply":
        flags, size = _parse(_REPLY, data)
        behind = _REPLY.size + size
        browser = data[_REPLY.size : behind].decode()
        return cls(bool(flags & _SUPERSEDED), bool(flags & _WANTS_RECEIPT), browser, data[behind:])


class Write(NamedTuple):
    """What to write to sockets: the same WebSocket frames to each."""

    sockets: tuple[int, ...]
    frames: bytes

    def pack(self) -> bytes:
        head = _COUNT.pack(len(self.sockets))
        return pack(Kind.WRITE, 0, head, pack_numbers(self.sockets), self.frames)

    @classmethod
    def unpack(cls, data: bytes) -> "Write":
        (count,) = _parse(_COUNT, data)
        behind = _COUNT.size + count * _NUMBERS
        return cls(unpack_numbers(data[_COUNT.size : behind]), data[behind:])


def pack_numbers(numbers: Iterable[int]) -> bytes:
    return b"".join([number.to_bytes(_NUMBERS, "little") for number in numbers])


def unpack_numbers(data: bytes) -> tuple[int, ...]:
    places = range(0, len(data), _NUMBERS)
    return tuple([int.from_bytes(data[at : at + _NUMBERS], "little") for at in places])


def _parse(form: Struct, data: bytes) -> tuple[int, ...]:
    try:
        return form.unpack_from(data)
    except error:
        raise FrameUnreadable(f"data of {len(data)} bytes") from None
