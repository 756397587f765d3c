"""Which messages a task is about: those between two ids, of which about as much is told.

Files say of each of their parts from which message to which it goes, and those of events are in
the order of messages; so a task reads little of what others read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.batches import refuse

# Rows that a task is about: fewer are not worth one, of more it would take too much memory.
_FEWEST = 100_000
_MOST = 500_000
# In so many steps from its first message to its last a part of a file is thought to go on evenly.
_STEPS = 8
_FIRST, _LAST = -(2**63), 2**63 - 1


class Span(NamedTuple):
    """Messages from one id to before another, and by table the files that tell of them."""

    first: int
    end: int
    files: dict[str, list[str]]


class _Part(NamedTuple):
    """A part of a file, with the first and the last of its messages."""

    file: Path
    first: int
    last: int
    rows: int


def spans(tables: Mapping[str, Iterable[Path]], cores: int) -> list[Span]:
    """All that is told of messages in these files, for so many cores; one at least.

    Raises:
        PipelineFailed: One of the files is none that can be read.
    """
    parts = {table: [*_parts(files)] for table, files in tables.items()}
    ends = [*_ends([part for each in parts.values() for part in each], cores)]
    return [
        Span(first, end, {table: _between(each, first, end) for table, each in parts.items()})
        for first, end in zip([_FIRST, *ends], [*ends, _LAST], strict=True)
    ]


def _parts(files: Iterable[Path]) -> Iterator[_Part]:
    for file in files:
        told = _told_by(file)
        column = told.schema.names.index("msg")
        for number in range(told.num_row_groups):
            group = told.row_group(number)
            known = group.column(column).statistics
            # In some nothing is of a message.
            if known is not None and known.has_min_max:
                yield _Part(file, known.min, known.max, group.num_rows)


def _told_by(file: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except pa.ArrowException:
        refuse([file], "cannot be read")
        raise


def _ends(parts: Sequence[_Part], cores: int) -> Iterator[int]:
    size = min(max(sum(part.rows for part in parts) / cores, _FEWEST), _MOST)
    steps = sorted(
        (part.first + (part.last - part.first) * step // _STEPS, part.rows / _STEPS)
        for part in parts
        for step in range(1, _STEPS + 1)
    )
    rows, last = 0.0, _FIRST
    for message, more in steps:
        if rows >= size and message > last:
            yield message
            rows, last = 0.0, message
        rows += more


def _between(parts: Iterable[_Part], first: int, end: int) -> list[str]:
    return sorted({str(part.file) for part in parts if part.first < end and part.last >= first})


def read(span: Span, table: str, schema: pa.Schema) -> pa.Table:
    """These columns of what a table tells of the messages; none that a file lacks is known."""
    files = span.files[table]
    if not files:
        return schema.empty_table()
    # It brings pandas along, which others who know this module need not wait for.
    import pyarrow.dataset as ds

    of_span = (ds.field("msg") >= span.first) & (ds.field("msg") < span.end)
    found = ds.dataset(files, schema=schema, format="parquet")
    # What is asked of it looks at all of a column at once.
    return found.to_table(filter=of_span, use_threads=False).combine_chunks()
