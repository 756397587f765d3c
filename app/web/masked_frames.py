"""Frames of a WebSocket client on their way to aiohttp's reader, which takes unmasked ones, too."""

from typing import Any

_MASKED = 0x80
# Reserved bits are set: any reader says that this is against the protocol, and closes with 1002.
_ABSURD = b"\xf0\x80"


class MaskedFrames:
    """Stands before the reader and lets masked frames pass, up to the first that is not."""

    __slots__ = ("_held", "_is_between", "_left", "_reader", "is_at_fault")

    def __init__(self, reader: Any) -> None:  # noqa: ANN401 - of what kind depends on the platform
        self._reader = reader
        # Whether all that has come is whole frames.
        self._is_between = True
        # Bytes that are still to come of the frame that has begun.
        self._left = 0
        # The beginning of a head whose rest has not come yet.
        self._held = b""
        self.is_at_fault = False

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        if self._is_between and is_short_frame(data):
            # So most of them come.
            return self._feed(data)
        if self.is_at_fault:
            return False, b""
        return self._feed(self._passing(self._held + data))

    def feed_eof(self) -> None:
        self._reader.feed_eof()

    def _feed(self, data: bytes) -> tuple[bool, bytes]:
        fed: tuple[bool, bytes] = self._reader.feed_data(data) if data else (False, b"")
        return fed

    def _passing(self, data: bytes) -> bytes:
        """What the reader may see of the data by now."""
        begins = self._left
        while begins < len(data):
            size = size_of_frame(data, begins)
            if size < 0:
                self.is_at_fault, self._is_between = True, False
                return data[:begins] + _ABSURD
            if size == 0:
                break
            begins += size
        self._left, self._held = max(0, begins - len(data)), data[begins:]
        self._is_between = begins == len(data)
        return data[:begins]


def is_short_frame(data: bytes) -> bool:
    """Whether it is one whole masked frame with less than 126 bytes in it."""
    size = len(data) - 6
    return 0 <= size < 126 and data[1] == _MASKED + size


def size_of_frame(data: bytes, begins: int) -> int:
    """That of a masked frame with its head; 0 if more of it must be known, -1 if it has no mask."""
    known = len(data) - begins
    if known < 2:
        return 0
    size = data[begins + 1] - _MASKED
    if size < 0:
        return -1
    if size < 126:
        return 6 + size
    width = 2 if size == 126 else 8
    if known < 2 + width:
        return 0
    return 6 + width + int.from_bytes(data[begins + 2 : begins + 2 + width], "big")
