"""Columns come out of frames as the server unfolds them."""

from app.journal.frame import decode
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
