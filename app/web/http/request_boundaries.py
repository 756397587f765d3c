"""Where a request ends among the bytes of a connection.

aiohttp's parser keeps what it has read of an unfinished request, without a way to ask for it. A
connection that is handed over to another process needs these bytes, or must be known to have none.
"""

from collections.abc import Sequence
from typing import Any, Final

from holdfast.web.http.chunks import Chunks, ChunksUnknown

_END: Final = b"\r\n\r\n"
# Longer beginnings of heads are not kept.
_LONGEST: Final = 64 * 1024


class Begun:
    """A request that has been read in part."""

    __slots__ = ("chunks", "head", "owed")

    def __init__(self, head: bytes = b"", owed: int = 0, chunks: Chunks | None = None) -> None:
        # What was read of its head; empty if the head is complete.
        self.head = head
        # How much of its body is still to come; negative if that is unknown.
        self.owed = owed
        # How far its body is, if that comes in chunks.
        self.chunks = chunks

    def as_read(self, body: bytes, length: int | None) -> bytes | None:
        """Return the bytes of a body as they may have arrived; None if these are not all of it.

        Args:
            body: What was read of it, without the sizes of chunks.
            length: How long the whole body is, unless it comes in chunks.
        """
        if self.chunks is not None:
            return self.chunks.as_read(body)
        return body if self.owed > 0 and len(body) + self.owed == length else None


NOTHING: Final = Begun()
# It is unknown how much of a request was read.
UNKNOWN: Final = Begun(owed=-1)


def follow(
    begun: Begun | None, data: bytes, messages: Sequence[Any], *, is_complete: bool
) -> Begun | None:
    """Return what has begun after the parser has read `data`; None if it is between two requests.

    Args:
        begun: What had begun before.
        messages: What the parser returned for the data.
        is_complete: Whether it has read the last message's body to its end.
    """
    if is_complete and data.endswith(_END):
        # With this end the beginning of a further head would be a complete head.
        return None
    if begun is UNKNOWN and not _starts_with(data, messages):
        return UNKNOWN
    try:
        return _after(begun, data, messages, is_complete=is_complete)
    except ChunksUnknown:
        return UNKNOWN


def follow_one(
    begun: Begun | None, data: bytes, messages: Sequence[Any], *, body: bytes
) -> Begun | None:
    """Do the same for a single complete request with this body, at less cost."""
    if begun is None and data.find(_END) + len(_END) + len(body) == len(data):
        return None
    return follow(begun, data, messages, is_complete=True)


def _starts_with(data: bytes, messages: Sequence[Any]) -> bool:
    """Return whether these bytes start with the only request that the parser found in them."""
    if len(messages) != 1:
        return False
    method, path = getattr(messages[0][0], "method", ""), getattr(messages[0][0], "path", "")
    return bool(method) and data.startswith(f"{method} {path} ".encode("utf-8", "surrogateescape"))


def _after(
    begun: Begun | None, data: bytes, messages: Sequence[Any], *, is_complete: bool
) -> Begun | None:
    end, chunks = 0, None
    if begun is not None and begun is not UNKNOWN:
        data = begun.head + data
        chunks = begun.chunks
        if chunks is not None:
            end = chunks.read(data, 0)
        elif not begun.head:
            end = begun.owed
    for message, _ in messages:
        head_end = data.find(_END, end)
        if head_end < 0 or not hasattr(message, "chunked") or message.upgrade:
            return UNKNOWN
        end, chunks = head_end + len(_END), None
        if message.chunked:
            chunks = Chunks()
            end = chunks.read(data, end)
        else:
            end += int(message.headers.get("Content-Length", "0"))
    if chunks is not None and not chunks.has_ended:
        return UNKNOWN if is_complete else Begun(owed=-1, chunks=chunks)
    if end >= len(data):
        return None if is_complete else Begun(owed=end - len(data))
    rest = data[end:]
    return Begun(head=rest) if len(rest) <= _LONGEST else UNKNOWN
