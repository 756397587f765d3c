"""Only allowed frames reach the reader, in whatever pieces they arrive."""

import struct

import pytest
from aiohttp._websocket.helpers import websocket_mask
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.web.front.client_frames import NO_ROOM, TOO_LARGE, ClientFrames, client_frame, measure
from holdfast.web.scheduling.intake import SMALL, Intake
from tests.abuse.attacker import BINARY, CLOSE, PING, TEXT, frame

# Is passed on in place of a frame without a mask; no reader takes it.
ABSURD = b"\xf0\x80"
# Is passed on in place of a message that is too large.
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
    """What reaches the reader when these pieces arrive."""
    reader = Reader()
    frames = ClientFrames(reader, MOST, Intake())
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


@pytest.mark.slow
@given(st.lists(SIZES, min_size=1, max_size=4), PLACES)
def test_masked_frames_pass_in_whatever_pieces_they_arrive(
    sizes: list[int], places: list[int]
) -> None:
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


@pytest.mark.slow
@given(st.lists(SIZES, max_size=3), PLACES)
def test_a_message_that_is_too_large_is_dropped_and_reported(
    sizes: list[int], places: list[int]
) -> None:
    good = b"".join(frame(b"x" * size) for size in sizes)
    late = frame(b"x" * MOST) + frame(b"late") + frame(b"x" * 70_000)
    assert hear(*in_pieces(good + late + frame(b"", CLOSE), places)) == (
        good + TOLD + frame(b"", CLOSE)
    )


@pytest.mark.parametrize(
    ("size", "passed"),
    [
        (MOST - 1, b""),
        (MOST, TOLD),
        (8 * MOST, TOLD),
        (2**62, struct.pack("!BBQ", 0x81, 255, 2**62)),
    ],
)
def test_the_size_in_its_head_decides_whether_a_frame_is_dropped(size: int, passed: bytes) -> None:
    assert hear(struct.pack("!BBQ", 0x81, 0xFF, size)) == passed


@given(st.lists(SIZES, max_size=3), SIZES, PLACES)
@example([2, 5, 5], 5, [178])
def test_frames_pass_up_to_the_first_without_a_mask(
    sizes: list[int], bad: int, places: list[int]
) -> None:
    good = b"".join(frame(b"x" * size) for size in sizes)
    unmasked = frame(b"[{}]" * bad, is_masked=False)
    assert hear(*in_pieces(good + unmasked + frame(b"late"), places)) == good + ABSURD


@pytest.mark.parametrize("size", [124, 1000])
def test_the_size_of_a_frame_may_have_more_bytes_than_it_needs(size: int) -> None:
    data = struct.pack("!BBHI", 0x81, 0xFE, size, 0) + b"x" * size
    unmasked = frame(b"", is_masked=False)
    assert hear(data[:132], data[132:] + unmasked) == data + ABSURD


def test_a_frame_without_a_mask_is_not_passed_even_if_it_looks_like_a_short_one() -> None:
    assert hear(b"\x81\x7f\x00\x00\x00") == ABSURD


def test_the_end_of_the_stream_is_passed_on() -> None:
    reader = Reader()
    ClientFrames(reader, MOST, Intake()).feed_eof()
    assert reader.is_at_end


def test_the_end_of_the_stream_drops_what_has_begun_with_its_room() -> None:
    intake = Intake()
    frames = ClientFrames(Reader(), MOST, intake)
    frames.feed_data(frame(b"x" * 5000, is_final=False) + frame(b"x" * 1000, CONTINUATION)[:-1])
    assert intake.used > 0
    frames.feed_eof()
    assert (intake.used, frames.begun()) == (0, b"")


class Taker:
    """Handles texts if it is able to."""

    def __init__(self, *, is_able: bool) -> None:
        self.asked: list[bytes] = []
        self._is_able = is_able

    def __call__(self, text: bytes) -> bool:
        self.asked.append(text)
        return self._is_able


@given(st.binary(max_size=300), st.binary(min_size=4, max_size=4))
@example(b"x" * SMALL, b"mask")
def test_a_small_text_that_arrives_alone_is_taken_without_its_mask(
    text: bytes, mask: bytes
) -> None:
    reader, taker = Reader(), Taker(is_able=True)
    masked = bytearray(text)
    websocket_mask(mask, masked)
    frames = ClientFrames(reader, MOST, Intake())
    frames.taker = taker
    for _ in range(2):
        frames.feed_data(frame(text).removesuffix(b"\0\0\0\0" + text) + mask + masked)
    assert taker.asked == [text, text]
    assert not reader.heard


@pytest.mark.parametrize(
    "piece",
    [
        frame(b"one") + frame(b"two"),
        frame(b"", PING),
        frame(b"x", BINARY),
        frame(b"x" * (SMALL + 1)),
        frame(b"begun", is_final=False),
        frame(b"x" * 1000)[:-1],
        frame(b"x", is_masked=False),
        frame(b"x", TEXT | 0x40),
    ],
)
def test_nothing_is_taken_that_is_no_small_text_alone_nor_what_follows(piece: bytes) -> None:
    reader, taker = Reader(), Taker(is_able=True)
    frames = ClientFrames(reader, MOST, Intake())
    frames.taker = taker
    frames.feed_data(piece)
    frames.feed_data(frame(b"next"))
    assert taker.asked == []
    assert reader.heard == hear(piece, frame(b"next"))


def test_a_text_that_its_taker_does_not_handle_reaches_the_reader() -> None:
    reader, taker = Reader(), Taker(is_able=False)
    frames = ClientFrames(reader, MOST, Intake())
    frames.taker = taker
    frames.feed_data(frame(b"one"))
    frames.feed_data(frame(b"two"))
    assert taker.asked == [b"one"]
    assert reader.heard == frame(b"one") + frame(b"two")


def test_a_small_text_that_is_too_large_for_the_server_is_not_taken() -> None:
    reader, taker = Reader(), Taker(is_able=True)
    frames = ClientFrames(reader, 10, Intake())
    frames.taker = taker
    frames.feed_data(frame(b"x" * 10))
    assert taker.asked == []
    assert reader.heard == TOLD


SOME_SIZES = st.lists(st.sampled_from([0, 1, 124, 126, 1000, SMALL, SMALL + 1, 20_000]), max_size=4)


class Listener(Reader):
    """Assembles messages as aiohttp does, and remembers their sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[int] = []
        self._begun = 0

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        while data:
            head, payload = measure(data, 0)
            assert head > 0, "a head came in pieces"
            assert head + payload <= len(data), "a frame came in pieces"
            if not data[0] & 0x8:
                self._begun += payload
                if data[0] & 0x80:
                    self.messages.append(self._begun)
                    self._begun = 0
            data = data[head + payload :]
        return False, b""

    @property
    def begun(self) -> int:
        return self._begun


@pytest.mark.slow
@given(st.lists(SOME_SIZES, max_size=4), PLACES, st.booleans())
def test_unfinished_and_unhandled_messages_take_room_until_they_are_handled(
    messages: list[list[int]], places: list[int], is_heard: bool
) -> None:
    data = b"".join(message(sizes) for sizes in messages)
    intake, reader, passed = Intake(), Listener(), 0
    frames = ClientFrames(reader, MOST, intake)
    for piece in in_pieces(data, places):
        frames.feed_data(piece)
        passed += len(piece)
        unheard = sum(size for size in reader.messages if size > SMALL)
        # Fragments are in the reader, and kept for another process.
        assert unheard + 2 * reader.begun <= intake.used <= unheard + 2 * passed
        if is_heard:
            for size in reader.messages:
                frames.heard(size)
            reader.messages.clear()
    if is_heard:
        assert intake.used == 0
    frames.feed_eof()
    assert intake.used == 0
    frames.heard(20_000)
    assert intake.used == 0


@pytest.mark.slow
@given(SOME_SIZES, SOME_SIZES, PLACES)
def test_a_message_without_room_is_dropped_and_reported(
    before: list[int], sizes: list[int], places: list[int]
) -> None:
    first, second = message(before), message([*sizes, SMALL + 1])
    intake, reader = Intake(sum(before) + 100), Reader()
    frames = ClientFrames(reader, MOST, intake)
    frames.feed_data(first)
    assert reader.heard == first
    frames.heard(sum(before))
    others = intake.limit - 100
    intake.take(others)
    for piece in in_pieces(second + frame(b"late") + frame(b"", CLOSE), places):
        frames.feed_data(piece)
    heard = reader.heard[len(first) :]
    assert heard.endswith(frame(NO_ROOM, PING) + frame(b"", CLOSE))
    assert second.startswith(heard.removesuffix(frame(NO_ROOM, PING) + frame(b"", CLOSE)))
    assert others <= intake.used <= intake.limit
    frames.feed_eof()
    assert intake.used == others


def message(sizes: list[int]) -> bytes:
    """One message of frames of these sizes, with a ping behind each."""
    parts = [frame(b"x" * size, CONTINUATION, is_final=False) for size in sizes]
    ping = frame(b"here", PING)
    begin, end = frame(b"", is_final=False), frame(b"", CONTINUATION)
    return ping.join([begin, *parts, end])


def fragmented(sizes: list[int], *, is_pinged: bool) -> list[bytes]:
    """The frames of one message, with a ping in between."""
    last = len(sizes) - 1
    frames = [
        frame(b"x" * size, CONTINUATION if place else TEXT, is_final=place == last)
        for place, size in enumerate(sizes)
    ]
    return [*frames[:1], frame(b"hi", PING), *frames[1:]] if is_pinged else frames


def messages_in(data: bytes) -> bytes:
    """The frames of messages, without those that mean nothing."""
    return data.replace(frame(b"hi", PING), b"").replace(frame(b"", 0x00, is_final=False), b"")


@given(
    st.lists(st.tuples(st.lists(SIZES, min_size=1, max_size=4), st.booleans()), max_size=4),
    st.integers(0, 2**20),
)
def test_another_reader_goes_on_with_what_has_begun(
    messages: list[tuple[list[int], bool]], place: int
) -> None:
    frames = [fragmented(sizes, is_pinged=is_pinged) for sizes, is_pinged in messages]
    data = b"".join(each for message in frames for each in message)
    cut = place % (len(data) + 1)
    first, second = Reader(), Reader()
    old, new = (ClientFrames(each, MOST**2, Intake()) for each in (first, second))
    if cut:
        old.feed_data(data[:cut])
    begun = old.begun()
    assert begun is not None
    if begun + data[cut:]:
        new.feed_data(begun + data[cut:])
    assert old.finished + new.finished == len(frames)
    rest = [each for message in frames[old.finished :] for each in message]
    assert messages_in(second.heard) == messages_in(b"".join(rest))


def test_refused_messages_are_not_taken_along() -> None:
    frames = ClientFrames(Reader(), MOST, Intake())
    frames.feed_data(frame(b"x" * MOST)[:1000])
    assert frames.begun() is None


@given(st.sampled_from([0, 125, 126, 65535, 65536]).map(lambda size: b"x" * size))
def test_a_frame_can_be_made_again_as_a_client_may_have_sent_it(payload: bytes) -> None:
    assert client_frame(0x81, payload) == frame(payload)
