"""A body in chunks, cut anywhere, is known as far as it was read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.http.chunks import Chunks, ChunksUnknown

_SIZES = st.lists(st.integers(1, 300), max_size=6)
_EXTENSIONS = st.sampled_from([b"", b";a=b", b' ;quoted="x"'])
_TRAILERS = st.sampled_from([b"", b"A: b\r\n", b"A: b\r\nC: d\r\n"])


def content_of(size: int) -> bytes:
    # With everything that could be taken for the end of a line or of the body.
    return (b"0\r\n\r\n1\n" * size)[:size]


def read_again(body: bytes) -> tuple[bytes, bytes]:
    """The content of the chunks of a whole body, and the rest."""
    content = b""
    while True:
        line, _, body = body.partition(b"\r\n")
        if not (size := int(line.partition(b";")[0], 16)):
            break
        content, body = content + body[:size], body[size:].removeprefix(b"\r\n")
    while line:
        line, _, body = body.partition(b"\r\n")
    return content, body


@given(_SIZES, _EXTENSIONS, _TRAILERS, st.data())
def test_chunks_cut_anywhere_are_the_same_body_for_the_next_reader(
    sizes: list[int], extension: bytes, trailer: bytes, data: st.DataObject
) -> None:
    chunks = [b"%x%b\r\n%b\r\n" % (size, extension, content_of(size)) for size in sizes]
    whole = b"".join(chunks) + b"0\r\n" + trailer + b"\r\n"
    content = b"".join(map(content_of, sizes))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(whole) - 1), min_size=1, max_size=6)))
    reading, start = Chunks(), 0
    for cut in cuts:
        assert reading.read(whole[start:cut], 0) == cut - start
        start = cut
    assert not reading.has_ended
    known = next(
        known for known in range(len(content) + 1) if reading.as_read(content[:known]) is not None
    )
    again = (reading.as_read(content[:known]) or b"") + whole[start:]
    assert read_again(again + b"next") == (content, b"next")
    assert reading.read(whole[start:] + b"next", 0) == len(whole) - start
    assert reading.has_ended


@pytest.mark.parametrize(
    "odd", [b"x\r\n", b"1\r\nab\r\n", b"-1\r\n", b"123456789\r\n", b"1;" + b"x" * 5000, b"\r\n"]
)
def test_what_is_no_chunk_is_unknown(odd: bytes) -> None:
    with pytest.raises(ChunksUnknown):
        Chunks().read(odd, 0)
