"""Columns come out of frames as the server unfolds them."""

from typing import Any

import pytest

from app.journal.frame import Frame, FrameUnreadable, Head, decode
from app.journal.schema import VERSION
from app.journal.unfold import unfold
from bench.journal.generate import generate
from pipeline.source.table import Numbered, tables


class Shelf:
    """All frames."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def write(self, node: str, frame: bytes) -> None:
        self.frames.append(frame)

    def close(self, truth: bytes) -> None:
        """Nothing is kept."""


def test_made_up_days_have_the_events_that_the_server_would_read() -> None:
    shelf = Shelf()
    generate(shelf, events=4000, nodes=2, hours=0.05, seed=1, receivers=60)
    frames = [decode(frame) for frame in shelf.frames]
    expected = [event for frame in frames for event in unfold(frame)]
    page = [Numbered(frame, "seed-1", n) for n, frame in enumerate(frames, 1)]
    rows = [row for table in tables(page) for row in table.to_pylist()]
    for row in rows:
        row["ts"] = round(row["ts"].timestamp() * 1e6)
        del row["epoch"], row["seq"], row["pos"]
    assert sorted(rows, key=repr) == sorted([event._asdict() for event in expected], key=repr)


def frame_of(**blocks: Any) -> Numbered:
    head = Head(VERSION, "n1", 1, 10**15, 10**15)
    known = {"names": ["joe/1"], "groups": [[0]], "channels": ["/a"]}
    body: Any = {**known, "messages": {"id": [0, 1], "channel": [0, 0]}, **blocks}
    return Numbered(Frame(head, body), "seed-1", 1)


PUBLISHED = {"message": [0, 1], "copies": [1, 1], "size": [9, 9], "by": [0, 0]}
DELIVERED = {"kind": ["acked", "acked"], "messages": [0, [1]], "receivers": [0, 0], "t": [5, [6]]}


def test_a_number_that_stands_without_its_list_is_the_only_one() -> None:
    (table,) = tables([frame_of(delivered=DELIVERED)])
    rows = table.select(["msg", "receiver"]).to_pylist()
    assert rows == [{"msg": 10**18 + n, "receiver": "joe/1"} for n in (0, 1)]
    assert [row["ts"].microsecond for row in table.select(["ts"]).to_pylist()] == [5, 6]


@pytest.mark.parametrize(
    "blocks",
    [
        {"published": PUBLISHED | {"kept": [1]}},
        {"published": PUBLISHED | {"priority": [5, None]}},
        {"published": PUBLISHED | {"copies": [1]}},
        {"delivered": DELIVERED | {"messages": [0, None]}},
        {"delivered": DELIVERED | {"messages": [0, [[1]]]}},
        {"delivered": DELIVERED | {"messages": [0, "1"]}},
        {"delivered": DELIVERED | {"messages": [0, 7]}},
        {"delivered": DELIVERED | {"t": [5, [6, 7]]}},
        {"delivered": DELIVERED | {"t": [5]}},
        {"delivered": DELIVERED | {"attempt": [1]}},
    ],
)
def test_columns_that_do_not_fit_together_make_no_row(blocks: dict[str, Any]) -> None:
    with pytest.raises(FrameUnreadable, match="fit together"):
        list(tables([frame_of(**blocks)]))
