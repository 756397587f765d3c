"""Events are written to files of single days, with receipts that say what is in them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.pipeline.arrow import ARROW, batch
from holdfast.pipeline.census import Group
from holdfast.pipeline.source import event_files
from holdfast.pipeline.source.event_files import write_events

DAY_US = 86_400_000_000


def events(*told: tuple[int, str, int | None]) -> pa.RecordBatch:
    """Events with these days, kinds and numbers."""
    days, kinds, numbers = zip(*told, strict=True)
    columns = {
        "ts": pa.array([day * DAY_US + 5 for day in days], pa.timestamp("us", "UTC")),
        "kind": pa.array(kinds),
        "number": pa.array(numbers),
        "what": pa.array(["start"] * len(told)),
        "seq": pa.array([1] * len(told)),
        "node": pa.array(["n1"] * len(told)),
        "epoch": pa.array(["seed-1"] * len(told)),
    }
    return batch(columns, len(told))


def receipts(tables: list[pa.RecordBatch], folder: Path) -> list[dict[str, Any]]:
    return [row for receipt in write_events(iter(tables), folder) for row in receipt.to_pylist()]


@pytest.mark.slow
def test_every_day_has_a_file_and_every_kind_a_receipt(tmp_path: Path) -> None:
    tables = [
        events((0, "acked", None), (3, "acked", None), (0, "frame.gap", 2)),
        events((3, "node", 0)),
        events((0, "acked", None), (0, "frame.gap", 5)),
    ]
    told = receipts(tables, tmp_path)
    groups = sorted((row["file"][:12], *(row[name] for name in Group._fields)) for row in told)
    run, three = ("n1", "seed-1"), 3 * DAY_US
    assert groups == [
        ("d=1970-01-01", *run, "acked", 2, 0, 5, None, None),
        ("d=1970-01-01", *run, "frame.gap", 2, 7, 5, None, None),
        ("d=1970-01-04", *run, "acked", 1, 0, three + 5, None, None),
        ("d=1970-01-04", *run, "node", 1, 0, three + 5, three + 5, 1),
    ]
    [first, _] = sorted({row["file"] for row in told})
    found = pq.ParquetFile(tmp_path / first).read()
    assert found.schema.names == ARROW.names
    assert Counter(found["kind"].to_pylist()) == {"acked": 2, "frame.gap": 2}


@pytest.mark.slow
def test_events_of_many_days_leave_few_files_open(tmp_path: Path) -> None:
    tables = [events(*((day, "acked", None) for day in range(40)))] * 2
    opened = 0

    def watched() -> Iterator[pa.RecordBatch]:
        nonlocal opened
        for table in tables:
            yield table
            opened = max(opened, open_files(tmp_path))

    told = [row for receipt in write_events(watched(), tmp_path) for row in receipt.to_pylist()]
    assert opened <= 16
    assert sum(row["n"] for row in told) == 80
    written = {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.parquet")}
    assert {row["file"] for row in told} == written


def open_files(folder: Path) -> int:
    return sum(is_open_in(folder, each) for each in Path("/proc/self/fd").iterdir())


def is_open_in(folder: Path, place: Path) -> bool:
    try:
        return folder in place.readlink().parents
    except FileNotFoundError:
        # Other threads have files, too.
        return False


def test_files_of_a_task_that_failed_have_no_receipts(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield events((0, "acked", None))
        raise OSError("the store went away")

    with pytest.raises(OSError, match="went away"):
        list(write_events(failing(), tmp_path))
    told = receipts([events((0, "acked", None))], tmp_path)
    assert len({row["file"] for row in told}) == 1
    assert len([*tmp_path.rglob("*.parquet")]) == 2


def test_a_file_is_sorted_by_message_in_parts_of_limited_size(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(event_files, "PACKED", 2)
    told = {
        "msg": pa.array([9, 1, None, 5, 1, 7]),
        "ts": pa.array([0] * 6, pa.timestamp("us", "UTC")),
    }
    [receipt] = write_events(iter([batch(told, 6)]), tmp_path)
    file = pq.ParquetFile(tmp_path / receipt.to_pylist()[0]["file"])
    parts = [file.read_row_group(n)["msg"].to_pylist() for n in range(3)]
    assert parts == [[1, 1], [5, 7], [9, None]]
