"""Events kept as Parquet by the task that reads them; Spark hears only what there is.

Their way through Java, where columns become rows and rows columns again, took a third of an ingest.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.source.arrow import ARROW

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Which file has events of which day, and how many of a kind; `number` is the sum of theirs.
RECEIPT = "file string, day string, kind string, n bigint, number bigint"
_RECEIPT = pa.schema(
    [
        ("file", pa.string()),
        ("day", pa.string()),
        ("kind", pa.string()),
        ("n", pa.int64()),
        ("number", pa.int64()),
    ]
)
_US_PER_DAY = 86_400_000_000
# Rows that are compressed together.
_GROUP = 131_072
# Clocks may say anything: of more days the rest waits in files of its own.
_MOST_OPEN = 16
# The least effort packs as well; and of what differs from row to row no dictionary need be tried.
_HOW: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": [field.name for field in ARROW if field.type == pa.string()],
}


def keep(tables: Iterator[pa.RecordBatch], folder: Path) -> Iterator[pa.RecordBatch]:
    """Write everything into files of one day each; what is yielded are their receipts.

    Files of a task that fails stay there, and nobody has heard of them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    days: dict[int, _DayFile] = {}
    for table in tables:
        for day, rows in _by_day(table):
            if day not in days:
                if len(days) == _MOST_OPEN:
                    yield days.pop(next(iter(days))).close()
                days[day] = _DayFile(folder, day)
            days[day].add(rows)
    for file in days.values():
        yield file.close()


def _by_day(table: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    times = cast("NDArray[np.int64]", table.column("ts").cast(pa.int64()).to_numpy())
    days = times // _US_PER_DAY
    first, last = int(days.min()), int(days.max())
    if first == last:
        yield first, table
        return
    for day in sorted({*days.tolist()}):
        yield day, table.filter(pa.array(days == day))


class _DayFile:
    """A file with the events of a day, and what its receipt will say."""

    def __init__(self, folder: Path, day: int) -> None:
        self._name = f"{uuid4().hex}.parquet"
        self._day = str(pa.scalar(day, pa.date32()))
        self._writer = pq.ParquetWriter(folder / self._name, ARROW, **_HOW)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        # By kind, how many there are, and the sum of their numbers.
        self._counts: dict[str, tuple[int, int]] = {}

    def add(self, rows: pa.RecordBatch) -> None:
        self._count(rows)
        self._waiting.append(rows)
        self._rows += rows.num_rows
        if self._rows >= _GROUP:
            self._write()

    def _count(self, rows: pa.RecordBatch) -> None:
        sums = pa.table({name: rows.column(name) for name in ("kind", "number")})
        found = sums.group_by("kind").aggregate([([], "count_all"), ("number", "sum")])
        for kind, n, number in zip(*(column.to_pylist() for column in found.columns), strict=True):
            count, total = self._counts.get(kind, (0, 0))
            self._counts[kind] = (count + n, total + (number or 0))

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._waiting))
        self._waiting, self._rows = [], 0

    def close(self) -> pa.RecordBatch:
        if self._waiting:
            self._write()
        self._writer.close()
        rows = [
            {"file": self._name, "day": self._day, "kind": kind, "n": n, "number": number}
            for kind, (n, number) in self._counts.items()
        ]
        return pa.RecordBatch.from_pylist(rows, schema=_RECEIPT)
