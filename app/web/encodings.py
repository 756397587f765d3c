"""What a body may be encoded with, and back, piece by piece.

aiohttp could do that, too, but would inflate the rest of a body that was refused: a small request
that is far too large inside would keep the server busy for seconds.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from multidict import CIMultiDictProxy

# Others have their turn between two pieces, and of a body that is too large no more is made.
_PIECE = 64 * 1024
# Files behind each other are one, too. Each costs more than its bytes, and an empty one adds none.
_MOST_MEMBERS = 1000
_GZIP, _ZLIB, _NO_HEAD = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class Decoder(Protocol):
    """Takes a body as it comes; raises `ValueError` if it is damaged."""

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """What this part, which is not empty, adds to the decoded body."""

    def end(self) -> None:
        """There is no further part."""


class Gzip:
    """One file or several, each behind the other."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._members = 1

    def pieces(self, part: bytes) -> Iterator[bytes]:
        while part:
            if self._member.eof:
                self._members += 1
                if self._members > _MOST_MEMBERS:
                    raise ValueError("too many files in one")
                self._member = zlib.decompressobj(_GZIP)
            yield from _inflate(self._member, part)
            part = self._member.unused_data

    def end(self) -> None:
        _check_end(self._member)


class Deflate:
    """What zlib writes; or without its head, as some clients have always sent it."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None

    def pieces(self, part: bytes) -> Iterator[bytes]:
        if self._stream is None:
            has_head = part[0] & 0xF == zlib.DEFLATED
            self._stream = zlib.decompressobj(_ZLIB if has_head else _NO_HEAD)
        yield from _inflate(self._stream, part)
        if self._stream.unused_data:
            raise ValueError("something behind the end")

    def end(self) -> None:
        if self._stream is not None:
            _check_end(self._stream)


DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": Gzip,
    "x-gzip": Gzip,
    "deflate": Deflate,
}


def is_transfer_known(headers: CIMultiDictProxy[str]) -> bool:
    """Whether the body was coded for its transfer in no way but in chunks."""
    return headers.get("Transfer-Encoding", "chunked").strip().lower() == "chunked"


def encoding_of(headers: CIMultiDictProxy[str]) -> str:
    """As one line, in small letters, though it may have come in several."""
    return ", ".join(headers.getall("Content-Encoding", ["identity"])).lower()


def _inflate(stream: "zlib._Decompress", part: bytes) -> Iterator[bytes]:
    try:
        while piece := stream.decompress(part, _PIECE):
            yield piece
            if stream.eof:
                # What is behind the end is in the tail, too.
                return
            part = stream.unconsumed_tail
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _check_end(stream: "zlib._Decompress") -> None:
    if not stream.eof:
        raise ValueError("its end is missing")
