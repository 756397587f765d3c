"""Decodes request bodies piece by piece.

aiohttp could do it, but it inflates the rest of a body that was refused: a small request that
inflates to far too much would keep the server busy for seconds.
"""

import zlib
from collections.abc import Callable, Iterator
from typing import Protocol

from multidict import CIMultiDictProxy

# Other work runs between pieces, and decoding stops when a body is too large.
_PIECE = 64 * 1024
# A gzip body may have several members. Each costs time, and an empty one adds no bytes.
_MOST_MEMBERS = 1000
_GZIP, _ZLIB, _NO_HEAD = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS


class Decoder(Protocol):
    """Decodes a body as it arrives; raises `ValueError` if it is damaged."""

    def pieces(self, part: bytes) -> Iterator[bytes]:
        """Decode a part, which must not be empty."""

    def end(self) -> None:
        """Check that the body is complete."""


class Gzip:
    """Decodes a sequence of one or more gzip members."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)
        self._members = 1

    def pieces(self, part: bytes) -> Iterator[bytes]:
        while part:
            if self._member.eof:
                self._members += 1
                if self._members > _MOST_MEMBERS:
                    raise ValueError("too many gzip members")
                self._member = zlib.decompressobj(_GZIP)
            yield from _inflate(self._member, part)
            part = self._member.unused_data

    def end(self) -> None:
        _check_end(self._member)


class Deflate:
    """Decodes zlib's format, or raw deflate, which some clients have always sent."""

    def __init__(self) -> None:
        self._stream: zlib._Decompress | None = None

    def pieces(self, part: bytes) -> Iterator[bytes]:
        if self._stream is None:
            has_head = part[0] & 0xF == zlib.DEFLATED
            self._stream = zlib.decompressobj(_ZLIB if has_head else _NO_HEAD)
        yield from _inflate(self._stream, part)
        if self._stream.unused_data:
            raise ValueError("data after the end of the stream")

    def end(self) -> None:
        if self._stream is not None:
            _check_end(self._stream)


DECODERS: dict[str, Callable[[], Decoder]] = {
    "gzip": Gzip,
    "x-gzip": Gzip,
    "deflate": Deflate,
}


def is_transfer_known(headers: CIMultiDictProxy[str]) -> bool:
    """Return whether the body has no transfer coding other than chunked."""
    return headers.get("Transfer-Encoding", "chunked").strip().lower() == "chunked"


def encoding_of(headers: CIMultiDictProxy[str]) -> str:
    """Return the content encodings as one lower-case, comma-separated list."""
    return ", ".join(headers.getall("Content-Encoding", ["identity"])).lower()


def _inflate(stream: "zlib._Decompress", part: bytes) -> Iterator[bytes]:
    try:
        while piece := stream.decompress(part, _PIECE):
            yield piece
            if stream.eof:
                # Data after the end is in `unconsumed_tail` too.
                return
            part = stream.unconsumed_tail
    except zlib.error as error:
        raise ValueError(str(error)) from None


def _check_end(stream: "zlib._Decompress") -> None:
    if not stream.eof:
        raise ValueError("the stream ends early")
