"""Encoded bodies: they are decoded as they arrive, a little at a time; damaged ones are refused."""

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.http.encodings import DECODERS


def _gzip_in_two(body: bytes) -> bytes:
    half = len(body) // 2
    return gzip.compress(body[:half]) + gzip.compress(body[half:])


def _without_head(body: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return stream.compress(body) + stream.flush()


WRITERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress),
    ("gzip", _gzip_in_two),
    ("x-gzip", gzip.compress),
    ("deflate", zlib.compress),
    ("deflate", _without_head),
]
BODIES = st.binary(max_size=300) | st.builds(
    lambda text, times: text * times, st.binary(max_size=3), st.integers(0, 150_000)
)


def decoded(encoding: str, *parts: bytes) -> bytes:
    decoder = DECODERS[encoding]()
    pieces = [piece for part in parts for piece in decoder.pieces(part)]
    decoder.end()
    assert all(0 < len(piece) <= 65_536 for piece in pieces)
    return b"".join(pieces)


@given(writer=st.sampled_from(WRITERS), body=BODIES, cuts=st.lists(st.integers(0), max_size=6))
def test_a_body_is_decoded_in_whatever_pieces_it_arrives(
    writer: tuple[str, Callable[[bytes], bytes]], body: bytes, cuts: list[int]
) -> None:
    encoding, encode = writer
    data = encode(body)
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    assert decoded(encoding, *(data[start:end] for start, end in pairwise(places))) == body


@pytest.mark.slow
@given(writer=st.sampled_from(WRITERS), body=BODIES, place=st.integers(0))
def test_a_truncated_body_is_refused(
    writer: tuple[str, Callable[[bytes], bytes]], body: bytes, place: int
) -> None:
    encoding, encode = writer
    data = encode(body)
    end = 1 + place % (len(data) - 1)
    if encode is _gzip_in_two and end == len(gzip.compress(body[: len(body) // 2])):
        # One whole file is a whole body.
        return
    with pytest.raises(ValueError):
        decoded(encoding, data[:end])


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@given(data=st.binary(min_size=1, max_size=200))
def test_data_in_another_format_are_refused(encoding: str, data: bytes) -> None:
    try:
        body = decoded(encoding, data)
    except ValueError:
        return
    # By chance the data are in the format, and zlib agrees.
    wbits = 31 if encoding == "gzip" else 15 if data[0] & 0xF == 8 else -15
    assert zlib.decompress(data, wbits) == body


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_data_after_the_end_are_refused(encoding: str) -> None:
    encode = gzip.compress if encoding == "gzip" else zlib.compress
    with pytest.raises(ValueError):
        decoded(encoding, encode(b"[]") + b"\0")
    with pytest.raises(ValueError):
        decoded(encoding, encode(b"[]"), b"x")


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 200_000])
def test_gzip_members_are_decoded_once_whatever_their_size(size: int) -> None:
    bodies = [b"x" * size, b"second", b"y" * size, b"", b"z" * size, b"last"]
    assert decoded("gzip", b"".join(map(gzip.compress, bodies))) == b"".join(bodies)


def test_many_long_gzip_members_take_little_memory() -> None:
    data = gzip.compress(b" " * 65_537) * 30
    tracemalloc.start()
    try:
        size = sum(len(piece) for piece in DECODERS["gzip"]().pieces(data))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size == 30 * 65_537
    assert most < 1_000_000


@pytest.mark.slow
def test_the_first_piece_of_a_large_body_has_64_kibibytes() -> None:
    pieces = DECODERS["gzip"]().pieces(gzip.compress(b" " * 10_000_000))
    assert len(next(pieces)) == 65_536


def test_the_number_of_empty_gzip_members_is_limited() -> None:
    assert decoded("gzip", gzip.compress(b"") * 1000) == b""
    with pytest.raises(ValueError):
        decoded("gzip", gzip.compress(b"") * 1001)
