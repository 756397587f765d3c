"""What a WebSocket client sends, on its way to aiohttp's reader.

The reader takes frames without a mask, and of a message that is too large it reads no more: then
the client, which is still sending, sees its connection break, and not why.
"""

import os
from typing import Any

from app.bayeux.errors import RequestRefused
from app.web.intake import SMALL, Intake

_MASKED = 0x80
_FINAL = 0x80
_CONTROL = 0x08
_CLOSE = 0x88
_LONGEST_CONTROL = 125
# How many times as much as a message may have is read to the end of it, and dropped.
_PATIENCE = 8
# Reserved bits are set: any reader says that this is against the protocol, and closes with 1002.
_ABSURD = b"\xf0\x80"
# What a ping has in it that comes instead of a message that is refused. No client knows it.
TOO_LARGE = os.urandom(16)
NO_ROOM = os.urandom(16)
_PING = b"\x89\x90\x00\x00\x00\x00"


class ClientFrames:
    """Passes whole frames on, up to the first without a mask or of a message that is refused.

    A message is refused if it is too large, or if there is no room for it among all that is
    unfinished. Behind it a close passes, so that both sides know of it; the rest is dropped.
    """

    __slots__ = (
        "_begun",
        "_frame",
        "_held",
        "_intake",
        "_is_between",
        "_is_refused",
        "_most",
        "_reader",
        "_size",
        "_skipped",
        "_taken",
        "_unheard",
        "has_unmasked",
    )

    def __init__(self, reader: Any, most: int, intake: Intake) -> None:  # noqa: ANN401 - depends on the platform
        self._reader = reader
        # A message as large as this is too large.
        self._most = most
        self._intake = intake
        # Whether all that has come is whole messages.
        self._is_between = True
        # The frame that has begun, and its size once that is known.
        self._held = bytearray()
        self._frame = 0
        # Of the message that has begun: its frames so far, and those of them that are complete.
        self._size = 0
        self._begun = 0
        # Complete messages that nobody has taken from the reader; small ones are not counted.
        self._unheard = 0
        # What all this holds of the intake.
        self._taken = 0
        self.has_unmasked = False
        self._is_refused = False
        # Bytes still to come of a frame that is dropped.
        self._skipped = 0

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._is_between and is_short_frame(data):
            # So most of them come.
            return self._feed(data)
        if self.has_unmasked:
            return False, b""
        self._is_between = False
        return self._feed(self._read_closes(data) if self._is_refused else self._read(data))

    def feed_eof(self) -> None:
        """The connection is lost, and nothing of it waits for more."""
        self._intake.give_back(self._taken)
        self._taken = self._unheard = 0
        self._reader.feed_eof()

    def heard(self, size: int) -> None:
        """A message of this size was taken from the reader."""
        if size > SMALL and self._unheard:
            self._unheard -= size
            self._taken -= size
            self._intake.give_back(size)

    def _feed(self, data: bytes) -> tuple[bool, bytes]:
        fed: tuple[bool, bytes] = self._reader.feed_data(data) if data else (False, b"")
        return fed

    def _read(self, data: bytes) -> bytes:
        """What the reader may see by now; its messages have room."""
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
        # Behind a frame without a mask nothing passes any more, short or not.
        self._is_between = not (self._held or self._size or self.has_unmasked)
        return passed

    def _measure_frames(self, data: bytes) -> bytes:
        begins = 0
        while begins < len(data):
            head, payload = measure(data, begins)
            if head < 0:
                self.has_unmasked = True
                return data[:begins] + _ABSURD
            if payload > _PATIENCE * self._most:
                # The reader says that it is too large, and closes at once.
                return data
            # A frame that comes in pieces is counted once.
            if head and not self._frame and self._is_too_large(data[begins], payload):
                return data[:begins] + self._refuse(TOO_LARGE, data[begins:])
            if head == 0 or begins + head + payload > len(data):
                self._frame = head and head + payload
                self._held += data[begins:]
                break
            self._end_frame(data[begins], payload)
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
        if first & _FINAL:
            if self._begun > SMALL:
                self._unheard += self._begun
            self._size = self._begun = 0

    def _has_room(self) -> bool:
        """Whether there is room for what is unfinished now, or complete and not heard."""
        more = self._begun + len(self._held) + self._unheard - self._taken
        if more > 0:
            try:
                self._intake.take(more)
            except RequestRefused:
                return False
        else:
            self._intake.give_back(-more)
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


def is_short_frame(data: bytes) -> bool:
    """Whether it is one whole masked frame with less than 126 bytes in it, and a whole message."""
    size = len(data) - 6
    return 0 <= size < 126 and data[1] == _MASKED + size and data[0] >= _FINAL


def measure(data: bytes, begins: int) -> tuple[int, int]:
    """Of a masked frame the sizes of head and payload; 0 if they are not known, -1 without mask."""
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
