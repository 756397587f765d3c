"""The frames on a link between a door and a home."""

from collections.abc import Iterable
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

    # From both, between two hosts
    BEAT = 43  # this process lives, and so does the connection
    MOVED = 44  # nothing follows on this connection: read the next one

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
    PAUSED = 11  # no exchange follows until one does
    SETTLE = 12  # answer held connects: their clients will ask again at another door
    LOST = 13  # an exchange whose connection was lost after the reply
    MESSAGES = 14  # the number of a frame with messages, and the frame
    HELD = 15  # no messages follow for now: the number of the request, 0 if there was none
    NEWCOMER = 16  # milliseconds since a socket without a cookie got an identity, and which
    GRAFTED = 17  # the number of the last graft that this shard knows
    ASK_FACTS = 18  # a place in the log of this shard: say when all facts before it are known
    ALIVE = 19  # a number: this process lives, although its lease may not be raised
    ASKED = 37  # a question of the administration, and its head
    ASKED_PART = 38  # the next part of the body of a question; empty at its end
    TOLD_WANTED = 39  # a question whose answer may go on
    FORGOTTEN = 40  # a question that needs no answer any more
    # From the home
    ANSWER = 20  # an exchange, and its replies
    REFUSED = 21  # an exchange that is refused as a whole
    DONE = 22  # an exchange of a socket that is handled
    WRITE = 23  # sockets, and the WebSocket frames to write to each
    BOUND = 24  # a socket that has a session
    UNBOUND = 25  # a socket whose session has ended, or has another connection
    HANG_UP = 26  # a socket to close, if the client does not
    PAUSE = 27  # send no exchanges: another process will take them
    RESUME = 28
    SETTLED = 29  # held connects are answered
    GO = 30  # messages may come: the number that the home gives to the link
    HOLD = 31  # the number of a request to send no messages
    HEARD = 32  # all messages so far have arrived
    PRUNE = 33  # send no messages of these channels, which have no receivers here
    GRAFT = 34  # the number of a graft, and the channel that is pruned no more; all if it is empty
    FACTS_KNOWN = 35  # a place: all facts before it are known
    LIFE_HEARD = 36  # the number of `ALIVE`
    PART_WANTED = 41  # a question, whose body may go on
    TOLD = 42  # a question, and the next part of its answer, or how that ends


_KINDS: Final = {int(kind): kind for kind in Kind}


class FrameUnreadable(Exception):
    """The peer sent what is no frame."""


# Its kind, its number and its data.
Frame = tuple[Kind, int, bytes]


def pack(kind: Kind, number: int, data: bytes = b"") -> bytes:
    """Return a frame with these data."""
    return _HEAD.pack(len(data), kind, number) + data


class FrameReader:
    """Divides what a connection reads into frames."""

    def __init__(self) -> None:
        # What is read of an incomplete frame, and how many bytes it needs at least.
        self._pieces: list[bytes] = []
        self._size, self._needed = 0, _HEAD.size

    def read(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete now. Raises `FrameUnreadable`."""
        if self._pieces:
            self._pieces.append(data)
            self._size += len(data)
            if self._size < self._needed:
                return []
            data = b"".join(self._pieces)
        frames: list[Frame] = []
        begin, end, head = 0, len(data), _HEAD.size
        needed = head
        while end - begin >= head:
            size, number_of_kind, number = _HEAD.unpack_from(data, begin)
            if size > MOST_BYTES:
                raise FrameUnreadable(f"a frame of {size} bytes")
            needed = head + size
            behind = begin + needed
            if behind > end:
                break
            kind = _KINDS.get(number_of_kind)
            if kind is None:
                raise FrameUnreadable(f"a frame of kind {number_of_kind}")
            frames.append((kind, number, data[begin + head : behind]))
            begin, needed = behind, head
        self._pieces = [data[begin:]] if begin < end else []
        self._size, self._needed = end - begin, needed
        return frames


def first_in(data: bytes, most: int) -> tuple[Frame, bytes] | None:
    """Return the first frame and what is behind it, or None as long as it is incomplete.

    Raises `FrameUnreadable`, also if its data have more than so many bytes.
    """
    if len(data) < _HEAD.size:
        return None
    size, number_of_kind, number = _HEAD.unpack_from(data)
    kind = _KINDS.get(number_of_kind)
    if size > most or kind is None:
        raise FrameUnreadable(f"a frame of kind {number_of_kind} and {size} bytes")
    behind = _HEAD.size + size
    if len(data) < behind:
        return None
    return (kind, number, data[_HEAD.size : behind]), data[behind:]


# What frames carry

# The transports of exchanges, which name them by their places here.
TRANSPORTS: Final = tuple(ConnectionType)

# The head of a frame, and in it: the place of a speaker, the transport, and a socket, or 0.
_EXCHANGE: Final = Struct("<IBQHBQ")
_REQUEST: Final = Struct("<HBQ")
# The head of a frame, and in it: flags, and the size of the identity of a new browser.
_ANSWER: Final = Struct("<IBQBB")
_REPLY: Final = Struct("<BB")
_SUPERSEDED: Final = 1
_WANTS_RECEIPT: Final = 2
_COUNT: Final = Struct("<I")


def pack_request(number: int, place: int, transport: int, socket: int, body: bytes) -> bytes:
    """Return the frame of an exchange: the place of its speaker, its socket, or 0, and its body."""
    size = _REQUEST.size + len(body)
    return _EXCHANGE.pack(size, Kind.EXCHANGE, number, place, transport, socket) + body


def unpack_request(data: bytes) -> tuple[int, int, int, bytes]:
    """Return what `pack_request` got after the number. Raises `FrameUnreadable`."""
    place, transport, socket = _parse(_REQUEST, data)
    return place, transport, socket, data[_REQUEST.size :]


def pack_reply(
    number: int, elements: bytes, browser: str, *, is_superseded: bool, wants_receipt: bool
) -> bytes:
    """Return the frame of an answer: the elements of its array, and what belongs into its head."""
    flags = is_superseded * _SUPERSEDED | wants_receipt * _WANTS_RECEIPT
    size = _REPLY.size + len(browser) + len(elements)
    head = _ANSWER.pack(size, Kind.ANSWER, number, flags, len(browser))
    return b"".join((head, browser.encode(), elements))


class Reply(NamedTuple):
    """The data of an answer."""

    is_superseded: bool
    wants_receipt: bool
    # The identity of the browser, if it is new.
    browser: str
    elements: bytes


def unpack_reply(data: bytes) -> Reply:
    """Undo `pack_reply`. Raises `FrameUnreadable`."""
    flags, size = _parse(_REPLY, data)
    behind = _REPLY.size + size
    browser = data[_REPLY.size : behind].decode() if size else ""
    return Reply(bool(flags & _SUPERSEDED), bool(flags & _WANTS_RECEIPT), browser, data[behind:])


class Write(NamedTuple):
    """What to write to sockets: the same WebSocket frames to each."""

    sockets: tuple[int, ...]
    frames: bytes

    def pack(self) -> bytes:
        head = _COUNT.pack(len(self.sockets))
        return pack(Kind.WRITE, 0, head + pack_numbers(self.sockets) + self.frames)

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
