"""Checks the frames of a WebSocket client before aiohttp's reader gets them.

aiohttp's reader accepts frames without a mask, and stops reading at a message that is too large:
the client, still sending, would see its connection break without a reason.

Most messages arrive alone, in one frame. They need no reader, and no task has to wake up for them:
the socket takes them at once.
"""

import os
from typing import TYPE_CHECKING, Any

from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.scheduling.intake import SMALL, Intake

if TYPE_CHECKING:
    from collections.abc import Callable

_MASKED = 0x80
_FINAL = 0x80
_CONTROL = 0x08
_CLOSE = 0x88
_TEXT = 0x81
_LONGEST_CONTROL = 125
# A refused message is read to its end and dropped up to this multiple of the size limit.
_MOST_DROPPED = 8
# Reserved bits are set: the reader treats this as a protocol error and closes with 1002.
_ABSURD = b"\xf0\x80"
# Content of the ping that replaces a refused message; random, so that no client can forge it.
TOO_LARGE = os.urandom(16)
NO_ROOM = os.urandom(16)
TIMED_OUT = os.urandom(16)
_PING = b"\x89\x90\x00\x00\x00\x00"


class ClientFrames:
    """Passes whole frames on, up to the first one without a mask or of a refused message.

    A message is refused if it is too large or too late, or if the intake has no room for it. After
    that only a close frame passes, so that both sides close properly; the rest is dropped.
    """

    __slots__ = (
        "_begun",
        "_fragments",
        "_frame",
        "_held",
        "_intake",
        "_is_between",
        "_is_refused",
        "_most",
        "_network",
        "_reader",
        "_size",
        "_skipped",
        "_taken",
        "_unheard",
        "_waiting",
        "finished",
        "has_unmasked",
        "taker",
    )

    def __init__(self, reader: Any, most: int, intake: Intake, network: str = "") -> None:  # noqa: ANN401 - depends on the platform
        self._reader = reader
        # A message of this size is too large.
        self._most = most
        self._intake = intake
        # The network whose share of the intake is used.
        self._network = network
        # Whether everything received so far is whole messages.
        self._is_between = True
        # The bytes of the frame that has begun, and its size once known.
        self._held = bytearray()
        self._frame = 0
        # Complete frames of the message that has begun, as they came: the reader does not give them
        # back for another process.
        self._fragments = bytearray()
        # Payload of the message that has begun: of all its frames, and of the complete ones.
        self._size = 0
        self._begun = 0
        # Bytes of complete messages that are still in the reader. Small messages are not counted.
        self._unheard = 0
        # Complete messages in the reader, including small ones, and the total of all messages so
        # far.
        self._waiting = self.finished = 0
        # Bytes taken from the intake.
        self._taken = 0
        self.has_unmasked = False
        # Handles a message that arrived alone, or returns False to leave it to the reader. Set
        # while a task waits for the reader, which is empty.
        self.taker: Callable[[bytes], bool] | None = None
        self._is_refused = False
        # Bytes still to come of a frame that is being dropped.
        self._skipped = 0

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._is_between and self.taker is not None:
            text = text_of(data, self._most)
            if text is not None and self.taker(text):
                return False, b""
        if self.has_unmasked:
            return False, b""
        self._is_between = False
        return self._feed(self._read_closes(data) if self._is_refused else self._read(data))

    def feed_eof(self) -> None:
        """The connection is lost: give back the room that its messages take in the intake."""
        self._intake.give_back(self._taken, self._network)
        self._taken = self._unheard = 0
        self._held, self._fragments = bytearray(), bytearray()
        self._reader.feed_eof()

    @property
    def has_unheard(self) -> bool:
        """Whether complete messages are still in the reader."""
        return self._waiting > 0

    @property
    def waiting(self) -> int:
        """How many complete messages were passed on and not reported by `heard`."""
        return self._waiting

    @property
    def is_unfinished(self) -> bool:
        """Whether a frame or a message has begun and may still be completed."""
        return bool(self._held or self._size) and not self._is_refused

    def time_out(self) -> None:
        """Refuse the unfinished message, because the rest of it took too long."""
        self._feed(self._refuse(TIMED_OUT, bytes(self._held)))

    def heard(self, size: int) -> None:
        """Record that a message of this size was read from the reader."""
        self._waiting -= 1
        if size > SMALL and self._unheard:
            self._unheard -= size
            self._taken -= size
            self._intake.give_back(size, self._network)

    def _feed(self, data: bytes) -> tuple[bool, bytes]:
        if not data:
            return False, b""
        # Later messages must not overtake this one.
        self.taker = None
        fed: tuple[bool, bytes] = self._reader.feed_data(data)
        return fed

    def _read(self, data: bytes) -> bytes:
        """Return the bytes that the reader may have now. Their messages take room in the intake."""
        unheard, passed = self._unheard, b""
        if self._held:
            self._held += data
            data = b""
        if len(self._held) >= self._frame:
            data = bytes(self._held) + data
            self._held.clear()
            passed = self._measure_frames(data)
        if not (self._is_refused or self.has_unmasked or self._has_room()):
            self._unheard = unheard
            return self._refuse(NO_ROOM, data or bytes(self._held))
        # After a frame without a mask nothing passes, however short.
        self._is_between = not (self._held or self._size or self.has_unmasked)
        return passed

    def _measure_frames(self, data: bytes) -> bytes:
        begins = 0
        while begins < len(data):
            head, payload = measure(data, begins)
            if head < 0:
                self.has_unmasked = True
                return data[:begins] + _ABSURD
            if payload > _MOST_DROPPED * self._most:
                # The reader reports that it is too large, and closes at once.
                return data
            # A frame that arrives in pieces is counted once.
            if head and not self._frame and self._is_too_large(data[begins], payload):
                return data[:begins] + self._refuse(TOO_LARGE, data[begins:])
            if head == 0 or begins + head + payload > len(data):
                self._frame = head and head + payload
                self._held += data[begins:]
                break
            if data[begins] & (_FINAL | _CONTROL):
                self._end_frame(data[begins], payload)
            else:
                self._keep_fragment(data[begins : begins + head + payload], payload)
            begins += head + payload
        return data[:begins]

    def _is_too_large(self, first: int, payload: int) -> bool:
        if not first & _CONTROL:
            self._size += payload
        return self._size >= self._most

    def _end_frame(self, first: int, payload: int) -> None:
        self._frame = 0
        if first & _CONTROL:
            return
        self._begun += payload
        self._waiting += 1
        self.finished += 1
        if self._begun > SMALL:
            self._unheard += self._begun
        self._size = self._begun = 0
        if self._fragments:
            self._fragments = bytearray()

    def _keep_fragment(self, fragment: bytes, payload: int) -> None:
        self._frame = 0
        self._begun += payload
        if payload or not self._fragments:
            # There may be any number of empty ones.
            self._fragments += fragment

    def begun(self) -> bytes | None:
        """Return the frames of the unfinished message as they came; None if they are unknown."""
        if self._is_refused or self.has_unmasked:
            return None
        return bytes(self._fragments + self._held)

    def _has_room(self) -> bool:
        """Take room for unfinished messages and unread complete ones; False if there is none."""
        more = self._begun + len(self._fragments) + len(self._held) + self._unheard - self._taken
        if more > 0:
            try:
                self._intake.take(more, self._network)
            except RequestRefused:
                return False
        else:
            self._intake.give_back(-more, self._network)
        self._taken += more
        return True

    def _refuse(self, why: bytes, data: bytes) -> bytes:
        self._is_refused = True
        self._held.clear()
        return _PING + why + self._read_closes(data)

    def _read_closes(self, data: bytes) -> bytes:
        data, begins, passed = bytes(self._held) + data, self._skipped, []
        self._held.clear()
        while begins < len(data):
            head, payload = measure(data, begins)
            if head < 0:
                self.has_unmasked = True
            if head <= 0:
                break
            ends = begins + head + payload
            if data[begins] == _CLOSE and payload <= _LONGEST_CONTROL:
                if ends > len(data):
                    break
                passed.append(data[begins:ends])
            begins = ends
        self._skipped = max(0, begins - len(data))
        self._held += data[begins:]
        return b"".join(passed)


def client_frame(first: int, payload: bytes) -> bytes:
    """Return a frame as a client may send it, with a mask that changes nothing."""
    size = len(payload)
    if size < 126:
        head = bytes([first, _MASKED | size])
    elif size < 65536:
        head = bytes([first, _MASKED | 126]) + size.to_bytes(2)
    else:
        head = bytes([first, _MASKED | 127]) + size.to_bytes(8)
    return head + bytes(4) + payload


def text_of(data: bytes, most: int) -> bytes | None:
    """Return the text, shorter than `most`, if this is one frame with a small message, or None."""
    head, payload = measure(data, 0)
    if head <= 0 or head + payload != len(data) or data[0] != _TEXT:
        return None
    if payload > SMALL or payload >= most:
        return None
    return unmasked(data[head:], data[head - 4 : head])


def unmasked(payload: bytes, mask: bytes) -> bytes:
    """Remove the mask: four bytes, repeated."""
    size = len(payload)
    masks = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(masks)).to_bytes(size)


def measure(data: bytes, begins: int) -> tuple[int, int]:
    """Return the sizes of a masked frame's head and payload; head is 0 if unknown, -1 unmasked."""
    known = len(data) - begins
    if known < 2:
        return 0, 0
    size = data[begins + 1] - _MASKED
    if size < 0:
        return -1, 0
    if size < 126:
        return 6, size
    width = 2 if size == 126 else 8
    if known < 2 + width:
        return 0, 0
    return 6 + width, int.from_bytes(data[begins + 2 : begins + 2 + width], "big")
