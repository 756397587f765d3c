"""How far a body has come that arrives in chunks (RFC 9112, 7.1).

A chunk has a line with its size, then so many bytes and the end of a line. The last one has the
size 0, and lines may follow it, of which the last is empty.
"""

import re
from typing import Final

_LINE: Final = b"\r\n"
# A size, with extensions that mean nothing here.
_SIZE: Final = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?")
# More bytes between the contents of two chunks are not kept.
_MOST_BETWEEN: Final = 1024


class ChunksUnknown(Exception):
    """The bytes are no chunks, or unusual ones."""


class Chunks:
    """A body in chunks that has been read in part."""

    __slots__ = ("_between", "_count", "_left", "_size", "has_ended")

    def __init__(self) -> None:
        # Of the chunk that has begun: its size, and how much of it is to come.
        self._size = self._left = 0
        # What was read after the content of the last chunk.
        self._between = b""
        # The contents of all chunks so far.
        self._count = 0
        self.has_ended = False

    def read(self, data: bytes, start: int) -> int:
        """Read on from this place. Returns where the body ends, or the end of the data.

        Raises `ChunksUnknown`.
        """
        while start < len(data) and not self.has_ended:
            if self._left:
                part = min(self._left, len(data) - start)
                self._left -= part
                self._count += part
                start += part
            else:
                start = self._read_between(data, start)
        return start

    def _read_between(self, data: bytes, start: int) -> int:
        """Read up to the content of the next chunk, or to the end of the body."""
        known = len(self._between)
        text = self._between + data[start : start + _MOST_BETWEEN]
        first = len(_LINE) if self._count else 0
        line_end = text.find(_LINE, first)
        if not _LINE.startswith(text[:first]):
            raise ChunksUnknown
        if line_end < 0:
            return self._keep(text, data, start)
        found = _SIZE.fullmatch(text, first, line_end)
        if found is None:
            raise ChunksUnknown
        end = line_end + len(_LINE)
        if (size := int(found[1], 16)) == 0:
            return self._read_trailer(text, end, data, start)
        self._size = self._left = size
        self._between = b""
        return start + end - known

    def _read_trailer(self, text: bytes, begin: int, data: bytes, start: int) -> int:
        # The line before it may be the end of the trailer already.
        end = text.find(_LINE + _LINE, begin - len(_LINE))
        if end < 0:
            return self._keep(text, data, start)
        self.has_ended = True
        return start + end + 2 * len(_LINE) - len(self._between)

    def _keep(self, text: bytes, data: bytes, start: int) -> int:
        if len(text) - len(self._between) < len(data) - start or len(text) > _MOST_BETWEEN:
            raise ChunksUnknown
        self._between = text
        return len(data)

    def as_read(self, body: bytes) -> bytes | None:
        """Return the bytes of chunks with this content; None if it is not all that was read."""
        if len(body) != self._count or self.has_ended:
            return None
        if not self._left:
            return _chunk(body) + self._between
        begun = self._size - self._left
        whole, part = body[: len(body) - begun], body[len(body) - begun :]
        before = _chunk(whole) + _LINE if whole else b""
        return b"%b%x\r\n%b" % (before, self._size, part)


def _chunk(content: bytes) -> bytes:
    """Return a chunk without the end of its last line."""
    return b"%x\r\n%b" % (len(content), content) if content else b""
