"""Only frames that may be reach the reader, in whatever pieces they come."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.client_frames import TOO_LARGE, ClientFrames
from tests.abuse.attacker import CLOSE, PING, frame

# What comes in place of a frame without a mask: no reader takes it.
ABSURD = b"\xf0\x80"
# In place of a message that is too large.
TOLD = frame(TOO_LARGE, PING)
MOST = 100_000


class Reader:
    def __init__(self) -> None:
        self.heard = b""
        self.is_at_end = False

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        assert data, "there is something to read"
        self.heard += data
        return False, b""

    def feed_eof(self) -> None:
        self.is_at_end = True


def hear(*pieces: bytes) -> bytes:
    """What reaches the reader, while it gets no more than what has come."""
    reader = Reader()
    frames = ClientFrames(reader, MOST)
    for piece in pieces:
        frames.feed_data(piece)
    assert frames.has_unmasked is reader.heard.endswith(ABSURD)
    return reader.heard


def in_pieces(data: bytes, places: list[int]) -> list[bytes]:
    cuts = sorted(place % (len(data) + 1) for place in places)
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


SIZES = st.sampled_from([0, 1, 2, 5, 119, 124, 125, 126, 127, 132, 300, 65535, 65536, 70000])
CONTINUATION = 0x0
PLACES = st.lists(st.integers(0, 2**20), max_size=5)


@given(st.lists(SIZES, min_size=1, max_size=4), PLACES)
def test_masked_frames_pass_in_whatever_pieces(sizes: list[int], places: list[int]) -> None:
    data = b"".join(frame(b"x" * size) for size in sizes)
    assert hear(*in_pieces(data, places)) == data


@given(st.lists(SIZES, max_size=4), PLACES)
def test_frames_of_one_message_pass_until_it_is_too_large(
    sizes: list[int], places: list[int]
) -> None:
    parts = [frame(b"x" * size, CONTINUATION, is_final=False) for size in sizes]
    ping, end, close = frame(b"here", PING), frame(b"", CONTINUATION), frame(b"\x03\xe8", CLOSE)
    data = frame(b"", is_final=False) + ping.join([b"", *parts]) + end + ping + close
    heard = hear(*in_pieces(data, places))
    if sum(sizes) < MOST:
        assert heard == data
    else:
        passed = next(n for n in range(len(sizes)) if sum(sizes[: n + 1]) >= MOST)
        begun = frame(b"", is_final=False) + b"".join(ping + part for part in parts[:passed])
        assert heard == begun + ping + TOLD + close


@given(st.lists(SIZES, max_size=3), PLACES)
def test_what_is_too_large_is_dropped_and_told(sizes: list[int], places: list[int]) -> None:
    good = b"".join(frame(b"x" * size) for size in sizes)
    late = frame(b"x" * MOST) + frame(b"late") + frame(b"x" * 70_000)
    assert hear(*in_pieces(good + late + frame(b"", CLOSE), places)) == (
        good + TOLD + frame(b"", CLOSE)
    )


@pytest.mark.parametrize(
    ("size", "passes"), [(MOST - 1, True), (MOST, False), (8 * MOST, False), (2**62, True)]
)
def test_the_head_says_whether_to_drop_a_frame(size: int, passes: bool) -> None:
    head = struct.pack("!BBQ", 0x81, 0xFF, size)
    assert hear(head) == (head if passes else TOLD)


@given(st.lists(SIZES, max_size=3), SIZES, PLACES)
def test_up_to_the_first_without_a_mask(sizes: list[int], bad: int, places: list[int]) -> None:
    good = b"".join(frame(b"x" * size) for size in sizes)
    unmasked = frame(b"[{}]" * bad, is_masked=False)
    assert hear(*in_pieces(good + unmasked + frame(b"late"), places)) == good + ABSURD


@pytest.mark.parametrize("size", [124, 1000])
def test_a_size_may_be_written_longer_than_it_must(size: int) -> None:
    data = struct.pack("!BBHI", 0x81, 0xFE, size, 0) + b"x" * size
    unmasked = frame(b"", is_masked=False)
    assert hear(data[:132], data[132:] + unmasked) == data + ABSURD


def test_a_frame_without_a_mask_is_not_passed_even_if_it_looks_like_a_short_one() -> None:
    assert hear(b"\x81\x7f\x00\x00\x00") == ABSURD


def test_the_end_is_passed_on() -> None:
    reader = Reader()
    ClientFrames(reader, MOST).feed_eof()
    assert reader.is_at_end
