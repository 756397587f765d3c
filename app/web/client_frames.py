"""What a WebSocket client sends, on its way to aiohttp's reader.

The reader takes frames without a mask, and of a message that is too large it reads no more: then
the client, which is still sending, sees its connection break, and not why.
"""

import os
from typing import Any

_MASKED = 0x80
_FINAL = 0x80
_CONTROL = 0x08
_CLOSE = 0x88
_LONGEST_CONTROL = 125
# How many times as much as a message may have is read to the end of it, and dropped.
_PATIENCE = 8
# Reserved bits are set: any reader says that this is against the protocol, and closes with 1002.
_ABSURD = b"\xf0\x80"
# What a ping has in it that comes instead of a message that is too large. No client knows it.
TOO_LARGE = os.urandom(16)
_PING = b"\x89\x90\x00\x00\x00\x00" + TOO_LARGE


class ClientFrames:
    """Lets frames pass, up to the first without a mask, or the one that makes a message too large.

    Behind the latter a close passes, so that both sides know of it; the rest is dropped.
    """

    __slots__ = (
        "_has_too_large",
        "_held",
        "_is_between",
        "_left",
        "_most",
        "_reader",
        "_size",
        "has_unmasked",
    )

    def __init__(self, reader: Any, most: int) -> None:  # noqa: ANN401 - depends on the platform
        self._reader = reader
        # A message as large as this is too large.
        self._most = most
        # Whether all that has come is whole messages.
        self._is_between = True
        # Bytes that are still to come of the frame that has begun.
        self._left = 0
        # The beginning of a frame whose size is not known yet.
        self._held = b""
        # Of the frames of the message that has begun.
        self._size = 0
        self.has_unmasked = False
        self._has_too_large = False

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._is_between and is_short_frame(data):
            # So most of them come.
            return self._feed(data)
        if self.has_unmasked:
            return False, b""
        self._is_between = False
        read = self._read_closes if self._has_too_large else self._read
        return self._feed(read(self._held + data))

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    def _feed(self, data: bytes) -> tuple[bool, bytes]:
        fed: tuple[bool, bytes] = self._reader.feed_data(data) if data else (False, b"")
        return fed

    def _read(self, data: bytes) -> bytes:
        """What the reader may see of the data by now."""
        begins = self._left
        while begins < len(data):
            head, payload = measure(data, begins)
            if head < 0:
                self.has_unmasked = True
                return data[:begins] + _ABSURD
            if head == 0:
                break
            if payload > _PATIENCE * self._most:
                # The reader says that it is too large, and closes at once.
                return data
            if self._is_too_large(data[begins], payload):
                self._has_too_large, self._left = True, 0
                return data[:begins] + _PING + self._read_closes(data[begins:])
            begins += head + payload
        self._keep(data, begins)
        self._is_between = begins == len(data) and not self._size
        return data[:begins]

    def _read_closes(self, data: bytes) -> bytes:
        begins, passed = self._left, []
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
        self._keep(data, begins)
        return b"".join(passed)

    def _keep(self, data: bytes, begins: int) -> None:
        self._left, self._held = max(0, begins - len(data)), data[begins:]

    def _is_too_large(self, first: int, payload: int) -> bool:
        if not first & _CONTROL:
            self._size += payload
            if self._size >= self._most:
                return True
            if first & _FINAL:
                self._size = 0
        return False


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
