"""The columns that the pipeline makes of a frame have the events that the server unfolds."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.journal.generate import generate
from bench.journal.life import Size
from holdfast.journal.frame import Frame, FrameUnreadable, Head, decode, encode
from holdfast.journal.schema import VERSION, Event
from holdfast.journal.unfold import unfold
from holdfast.pipeline.source.table import NumberedFrame, tables

Body = dict[str, Any]
T0 = 1_763_600_000_000_000
HEAD = Head(VERSION, "n1", 0, T0, T0)
KNOWN: Body = {
    "names": ["joe/1", "ann/1"],
    "groups": [[0], [0, 1]],
    "channels": ["/a"],
    "messages": {"id": [0, 1, -5], "channel": [0, 0, -1]},
}
PUBLISHED: Body = {"message": [0, 1], "copies": [1, 1], "size": [9, 0], "by": [0, -1]}
DELIVERED: Body = {
    "kind": ["acked", "acked", "handed"],
    "messages": [0, [1], [2, 0]],
    "receivers": [0, 0, 1],
    "t": [5, [6], [7, 8]],
}
CHANGED: Body = {
    "kind": ["held"],
    "t": [3],
    "name": [0],
    "channel": [-1],
    "what": ["guard"],
    "number": [None],
}
WHOLE = {**KNOWN, "published": PUBLISHED, "delivered": DELIVERED, "changed": CHANGED}


class Shelf:
    """Collects all frames."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, node: str, frame: bytes) -> None:
        self.frames.append(frame)

    def close(self, truth: bytes) -> None:
        """Nothing is kept."""


def rows_of(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """The rows of the columns, sorted."""
    page = [NumberedFrame(frame, "seed-1", n) for n, frame in enumerate(frames, 1)]
    rows = [row for table in tables(page) for row in table.to_pylist()]
    for row in rows:
        row["ts"] = round(row["ts"].timestamp() * 1e6)
        del row["epoch"], row["seq"], row["pos"]
    return sorted(rows, key=repr)


def events_of(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    """The events that the server unfolds, in the same form."""
    return sorted([each._asdict() for frame in frames for each in unfold(frame)], key=repr)


def frame_of(body: Any, events: int, t0: int = T0, t1: int = T0) -> Frame:
    head = HEAD._replace(n=events, t0=t0, t1=t1)
    return decode(encode(head, body))


def with_block(name: str, **columns: Any) -> Body:
    block: Body = WHOLE[name]
    return {**WHOLE, name: block | columns}


@pytest.mark.slow
def test_the_columns_of_a_generated_journal_have_the_events_that_the_server_unfolds() -> None:
    shelf = Shelf()
    generate(shelf, events=4000, nodes=2, hours=0.05, seed=1, size=Size(30))
    frames = [decode(frame) for frame in shelf.frames]
    assert rows_of(frames) == events_of(frames)


def test_omitted_columns_have_defaults_and_a_single_value_stands_for_a_list_of_one() -> None:
    usual = frame_of(WHOLE, 9)
    other = frame_of(with_block("published", kept=[1, 0], priority=[9, 5]), 9)
    changes = frame_of({**KNOWN, "changed": CHANGED}, 1)
    events = unfold(usual)
    first = Event("n1", T0, "published", T0 * 1000, "n1", "/a", None, 1, 0, 9, 5, "joe/1")
    assert events[:2] == [first, first._replace(msg=T0 * 1000 + 1, size=0, sender=None)]
    told = [(each.msg, each.receiver, each.ts) for each in events[2:8]]
    assert [((msg or 0) - T0 * 1000, name, ts - T0) for msg, name, ts in told] == [
        (0, "joe/1", 5),
        (1, "joe/1", 6),
        (-5, "joe/1", 7),
        (-5, "ann/1", 8),
        (0, "joe/1", 7),
        (0, "ann/1", 8),
    ]
    worded = frame_of(with_block("delivered", wording=["no stock", None, "no room"]), 9)
    assert [each.wording for each in unfold(worded)[2:5]] == ["no stock", None, "no room"]
    ours = usual._replace(head=usual.head._replace(origin="shop"))
    frames = [usual, other, changes, worded, ours, usual]
    assert rows_of(frames) == events_of(frames)


def test_a_publish_is_never_later_than_its_frame() -> None:
    frames = [frame_of(WHOLE, 9, t1=T0 - 7), frame_of(WHOLE, 9)]
    assert rows_of(frames) == events_of(frames)
    assert {row["ts"] - T0 for row in rows_of(frames) if row["kind"] == "published"} == {0, -7}


@pytest.mark.parametrize(
    "body",
    [
        with_block("published", kept=[1]),
        with_block("published", kept=[]),
        with_block("published", kept=None),
        with_block("published", priority=[5, None]),
        with_block("published", copies=[1]),
        with_block("published", message=[0, 0.5]),
        with_block("published", message=[0, -1]),
        with_block("published", by=[0, -2]),
        with_block("delivered", messages=[0, None, 0]),
        with_block("delivered", messages=[0, [[1]], 0]),
        with_block("delivered", messages=[0, "1", 0]),
        with_block("delivered", messages=[0, 7, 0]),
        with_block("delivered", messages=[0, True, 0]),
        with_block("delivered", receivers=[0, 0, -1]),
        with_block("delivered", t=[5, [6, 7], 8]),
        with_block("delivered", t=[5, 1.5, 8]),
        with_block("delivered", t=[5, 5]),
        with_block("delivered", attempt=[1]),
        with_block("delivered", attempt=[1, 1.5, 1]),
        with_block("delivered", wording=["no stock"]),
        with_block("delivered", wording=[None, 1, None]),
        with_block("delivered", kind=["acked", None, "acked"]),
        with_block("changed", number=[1.5]),
        with_block("messages", id=[0, 1, 0.5]),
        {**WHOLE, "delivered": None},
        {**WHOLE, "messages": None},
        {**WHOLE, "messages": []},
        {**WHOLE, "groups": [0, 1]},
        {**WHOLE, "names": None},
    ],
)
def test_a_frame_with_inconsistent_columns_is_unreadable(body: Body) -> None:
    for events in range(7, 11):
        for read in (rows_of, events_of):
            with pytest.raises(FrameUnreadable):
                read([frame_of(body, events)])


def test_a_short_column_does_not_take_rows_from_the_next_frame() -> None:
    short = {**KNOWN, "delivered": DELIVERED | {"t": [5, 6]}}
    long = {**KNOWN, "delivered": DELIVERED | {"t": [5, 6, 7, 8]}}
    with pytest.raises(FrameUnreadable):
        rows_of([frame_of(short, 6), frame_of(long, 6)])


def test_a_frame_with_an_impossible_time_is_unreadable() -> None:
    known = {**KNOWN, "messages": {"id": [10**18] * 2, "channel": [0, 0]}}
    with pytest.raises(FrameUnreadable):
        rows_of([frame_of({**known, "published": PUBLISHED}, 2, t0=2**61)])


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats(-1, 2) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.slow
@given(st.data(), anything)
def test_an_altered_frame_has_the_rows_that_the_server_unfolds_or_is_unreadable(
    data: st.DataObject, other: object
) -> None:
    name = data.draw(st.sampled_from(sorted(WHOLE)))
    block = WHOLE[name]
    if isinstance(block, dict):
        column = data.draw(st.sampled_from([*block, "attempt", "kept", "origin"]))
        length = len(next(iter(block.values())))
        values = [*block.get(column, [0] * length)]
        values[data.draw(st.integers(0, length - 1))] = other
        block = block | {column: data.draw(st.sampled_from([values, other]))}
    else:
        block = [*block[:-1], other]
    for events in range(7, 12):
        try:
            frame = frame_of({**WHOLE, name: block}, events)
        except FrameUnreadable:
            continue
        try:
            rows = rows_of([frame])
        except FrameUnreadable:
            continue
        assert rows == events_of([frame])
