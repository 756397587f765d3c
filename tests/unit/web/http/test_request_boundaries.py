"""How much of a request has begun, after any pieces of bytes."""

import asyncio
from typing import TYPE_CHECKING

from aiohttp.http import HttpRequestParser
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.http.request_boundaries import Begun, follow

if TYPE_CHECKING:
    from aiohttp.streams import StreamReader

GET = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
POST = b"POST /publish HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n0123\r\n\r\n456"
CHUNKED = (
    b"POST /publish HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
)


class _Connection:
    """The protocol that a parser pauses, which these short bodies do not."""

    def resume_reading(self, *, resume_parser: bool) -> None:
        pass


class Reading:
    """A parser, and what is said to have begun."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._parser = HttpRequestParser(_Connection(), loop, 2**16)  # type: ignore[arg-type]
        self._body: StreamReader | None = None
        self.begun: Begun | None = None

    def read(self, data: bytes) -> None:
        messages, _, _ = self._parser.feed_data(data)
        if messages:
            self._body = messages[-1][1]
        is_complete = self._body is None or self._body.is_eof()
        self.begun = follow(self.begun, data, messages, is_complete=is_complete)


def begun_after(*pieces: bytes) -> Begun | None:
    loop = asyncio.new_event_loop()
    try:
        reading = Reading(loop)
        for piece in pieces:
            reading.read(piece)
        return reading.begun
    finally:
        loop.close()


def test_nothing_has_begun_after_whole_requests() -> None:
    for whole in (GET, POST, CHUNKED, POST + GET, GET + POST, CHUNKED + GET, POST + CHUNKED):
        assert begun_after(whole) is None


def test_the_bytes_of_an_unfinished_head_are_known() -> None:
    begun = begun_after(POST + GET[:10], GET[10:20])
    assert begun is not None
    assert (begun.head, begun.owed) == (GET[:20], 0)


def test_what_is_missing_of_a_body_is_known() -> None:
    begun = begun_after(GET + POST[:-4])
    assert begun is not None
    assert (begun.head, begun.owed) == (b"", 4)
    assert begun_after(GET + POST[:-4], POST[-4:]) is None


def test_a_chunked_body_that_has_begun_can_be_sent_on_as_it_was_read() -> None:
    begun = begun_after(GET + CHUNKED[:-8])
    assert begun is not None
    assert begun.owed < 0
    assert begun.as_read(b"ab", None) == b"3\r\nab"
    assert begun.as_read(b"a", None) is None
    assert begun_after(CHUNKED[:-8], CHUNKED[-8:]) is None


def test_what_follows_a_chunked_body_is_known() -> None:
    begun = begun_after(CHUNKED[:-8], CHUNKED[-8:] + GET[:10])
    assert begun is not None
    assert (begun.head, begun.owed) == (GET[:10], 0)


@given(st.lists(st.sampled_from([GET, POST, CHUNKED]), min_size=1, max_size=5), st.data())
def test_bytes_said_to_have_begun_are_right_however_requests_are_cut(
    requests: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(requests)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole)), max_size=6)) | {len(whole)})
    loop = asyncio.new_event_loop()
    try:
        reading, start = Reading(loop), 0
        ends = {0}
        for request in requests:
            ends.add(max(ends) + len(request))
        for cut in cuts:
            reading.read(whole[start:cut])
            start = cut
            begun, last = reading.begun, max(end for end in ends if end <= cut)
            if begun is None:
                assert cut in ends
            elif begun.head:
                assert begun.head == whole[last:cut]
            elif begun.owed > 0:
                assert cut + begun.owed in ends
            else:
                assert begun.chunks is not None
    finally:
        loop.close()
