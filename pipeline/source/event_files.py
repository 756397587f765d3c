"""Writes events as Parquet in the task that reads them; Spark only gets receipts.

Java would turn columns into rows and rows into columns again, for a third of the time of an ingest.
"""

from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.census import GROUP, add_up, count
from holdfast.pipeline.digests import move_with_digest
from holdfast.pipeline.storage.place import draft_in

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The file in the folder of the table, and one group of its events.
RECEIPT = f"file string, {GROUP}"
_US_PER_DAY = 86_400_000_000
# The number of rows that are sorted by message together, and the number in a part of the file.
# Readers of a few messages find them in few parts.
TOGETHER, PACKED = 524_288, 65_536
# If clocks are wrong, events are of many days: beyond this number of open files, some are closed.
_MOST_OPEN = 16


def packing(schema: pa.Schema) -> dict[str, Any]:
    """Return the Parquet settings of tables."""
    return {
        "compression": "zstd",
        # The lowest level compresses as well as higher ones.
        "compression_level": 1,
        # Dictionaries are useless for columns whose values differ in each row.
        "use_dictionary": [field.name for field in schema if field.type == pa.string()],
    }


def write_events(tables: Iterator[pa.RecordBatch], folder: Path) -> Iterator[pa.RecordBatch]:
    """Write all events into files, each in the folder of its day; yield the receipts.

    The files of a failed task stay there, but have no receipts.
    """
    days: dict[int, _DayFile] = {}
    for table in tables:
        for day, rows in _by_day(table):
            if day not in days:
                if len(days) == _MOST_OPEN:
                    yield days.pop(next(iter(days))).close()
                days[day] = _DayFile(folder, day)
            days[day].add(rows)
            if sum(file.waiting for file in days.values()) >= TOGETHER:
                max(days.values(), key=attrgetter("waiting")).write()
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
    """A file with the events of a day, and the content of its receipt."""

    def __init__(self, folder: Path, day: int) -> None:
        self._name = f"d={pa.scalar(day, pa.date32())}"
        self._folder = folder / self._name
        self._draft = draft_in(self._folder, f"{uuid4().hex}.parquet")
        self._writer = pq.ParquetWriter(self._draft, ARROW, **packing(ARROW))
        self._waiting: list[pa.RecordBatch] = []
        # The number of rows.
        self.waiting = 0
        self._counts: list[pa.Table] = []

    def add(self, rows: pa.RecordBatch) -> None:
        self._counts.append(count(rows))
        self._waiting.append(rows)
        self.waiting += rows.num_rows

    def write(self) -> None:
        """Write the waiting rows, sorted by message."""
        rows = pa.Table.from_batches(self._waiting).combine_chunks()
        in_order = rows.take(pc.sort_indices(rows["msg"]))
        self._writer.write_table(in_order, row_group_size=PACKED)
        self._waiting, self.waiting = [], 0

    def close(self) -> pa.RecordBatch:
        if self._waiting:
            self.write()
        self._writer.close()
        name = f"{self._name}/{move_with_digest(self._draft, self._folder)}"
        receipt = add_up(self._counts)
        receipt = receipt.add_column(0, "file", pa.repeat(name, len(receipt)))
        [batch] = receipt.to_batches()
        return batch
