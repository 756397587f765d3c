"""The form of frames: what is written is read, and anything else is an error."""

from struct import Struct

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.cluster.frames import (
    ANSWER,
    CALL,
    DURABLE,
    MESSAGE,
    MOST_BYTES,
    MOST_ENTRIES,
    FrameUnreadable,
    LogEntry,
    read,
    split,
    write,
)
from holdfast.cluster.places import Place

names = st.text(max_size=12)
entries = st.builds(
    LogEntry,
    kind=st.sampled_from([MESSAGE, CALL, ANSWER]),
    channel=names,
    id=st.integers(0, 2**64 - 1),
    publisher=names,
    flags=st.integers(0, 255),
    data=st.binary(max_size=40),
)
numbers = st.integers(0, 10**15)
places = st.builds(
    Place,
    nonce=st.text("0123456789abcdef", min_size=8, max_size=8),
    fence=numbers,
    n=numbers,
    total=numbers,
)
facts = st.dictionaries(names, names, max_size=3)
seen = st.dictionaries(st.integers(0, 999), places, max_size=3)


def entry(channel: str, id: int, data: bytes = b"{}") -> LogEntry:
    return LogEntry(MESSAGE, channel, id, "ann", DURABLE, data)


@given(st.lists(entries, max_size=8), facts, seen)
def test_a_frame_says_what_was_written(
    given: list[LogEntry], facts: dict[str, str], seen: dict[int, Place]
) -> None:
    frame = read(write(given, facts, seen))
    assert frame.all_entries() == given
    assert len(frame) == len(given)
    assert frame.newest == max([0, *[each.id for each in given]])
    assert frame.facts == facts
    assert frame.seen == seen


@given(st.lists(entries, max_size=8), st.sets(names))
def test_a_reader_gets_the_entries_of_the_channels_that_it_wants(
    given: list[LogEntry], wanted: set[str]
) -> None:
    frame = read(write(given))
    found = frame.entries([channel in wanted for channel in frame.channels])
    assert found == [each for each in given if each.channel in wanted]


def test_a_channel_is_in_the_index_once() -> None:
    frame = read(write([entry("/a", 1), entry("/b", 2), entry("/a", 3)]))
    assert frame.channels == ["/a", "/b"]
    assert frame.publishers == ["ann"]


@given(st.binary(max_size=200))
@example(b"")
@example(write([])[:5])
@example(Struct("<BII").pack(1, 2, 1) + b"{}" + bytes(18))
@example(Struct("<BII").pack(1, 4, 0) + b"null")
@example(Struct("<BII").pack(1, 16, 0) + b'{"c":[],"p":[1]}')
def test_any_bytes_are_a_frame_or_a_clear_error(data: bytes) -> None:
    check_readable_or_refused(data)


def check_readable_or_refused(data: bytes) -> None:
    try:
        frame = read(data)
    except FrameUnreadable:
        return
    assert len(frame.all_entries()) == len(frame)


@pytest.mark.slow
@given(
    st.lists(entries, min_size=1, max_size=4), facts, seen, st.integers(0), st.binary(min_size=1)
)
def test_a_frame_with_other_bytes_in_it_is_a_frame_or_a_clear_error(
    given: list[LogEntry], facts: dict[str, str], seen: dict[int, Place], at: int, other: bytes
) -> None:
    frame = write(given, facts, seen)
    at %= len(frame)
    check_readable_or_refused(frame[:at] + other + frame[at + len(other) :])
    check_readable_or_refused(frame[:at])


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"", "empty"),
        (b"\x02" + write([])[1:], "version 2"),
        (write([entry("/a", 1)])[:-1], "bytes of data"),
        (write([]) + b"x", "has data"),
        (write([entry("/a", 1)]).replace(b'"/a"', b"null"), "no list of texts"),
        (write([entry("/a", 1)]).replace(b'["/a"]', b"[ ]   "), "not there"),
        (write([LogEntry(9, "/a", 1, "ann", 0, b"")]), "unknown kind"),
        (write([], seen={3: Place("00000000", 7, 812, 5)}).replace(b"7-812", b"7.812"), "no place"),
    ],
)
def test_the_error_of_an_unreadable_frame_says_what_is_wrong(frame: bytes, why: str) -> None:
    with pytest.raises(FrameUnreadable, match=why):
        read(frame)


@given(st.lists(entries, max_size=20), st.integers(1, 300))
def test_parts_have_all_entries_in_order_and_fit_into_frames(
    given: list[LogEntry], most: int
) -> None:
    parts = list(split(given, most))
    assert [each for part in parts for each in part] == given
    for part in parts:
        assert len(part) == 1 or sum(each.size for each in part) <= most


def test_a_frame_has_at_most_256_kib_unless_one_entry_is_larger() -> None:
    given = [entry(f"/channel/{n}", n, bytes(5000)) for n in range(200)]
    frames = [write(part) for part in split(given)]
    assert len(frames) == 4
    assert max(map(len, frames)) <= MOST_BYTES
    large = [entry("/a", 1, bytes(2 * MOST_BYTES)), entry("/a", 2)]
    assert [len(part) for part in split(large)] == [1, 1]


def test_very_many_small_entries_are_split_too() -> None:
    given = [LogEntry(MESSAGE, "", 1, "", 0, b"")] * (MOST_ENTRIES + 1)
    assert [len(part) for part in split(given, 10**9)] == [MOST_ENTRIES, 1]
