"""Divides messages among tasks: spans between two ids, with about the same number of rows.

Each part of a file states its first and last message, and files of events are sorted by message, so
tasks read little of each other's rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline.arrow import metadata_of, opened
from holdfast.pipeline.lake import refuse

# The rows of a task: fewer are not worth one, more would take too much memory.
_FEWEST = 100_000
_MOST = 500_000
# Rows are assumed to be spread evenly over this many steps within a part of a file.
_STEPS = 8
_MESSAGES = pa.schema([("msg", pa.int64())])
_FIRST, _LAST = -(2**63), 2**63 - 1


class Span(NamedTuple):
    """Messages from one id to before another, and by table the files with rows about them."""

    first: int
    end: int
    files: dict[str, list[str]]


class _Part(NamedTuple):
    """A part of a file, with its first and last message."""

    file: Path
    first: int
    last: int
    rows: int


def spans(tables: Mapping[str, Iterable[Path]], cores: int) -> list[Span]:
    """Divide the messages in these files for this many cores; return at least one span.

    Raises:
        PipelineFailed: One of the files cannot be read.
    """
    parts = {table: [*_parts(files)] for table, files in tables.items()}
    ends = [*_ends([part for each in parts.values() for part in each], cores)]
    return [
        Span(first, end, {table: _between(each, first, end) for table, each in parts.items()})
        for first, end in zip([_FIRST, *ends], [*ends, _LAST], strict=True)
    ]


def _parts(files: Iterable[Path]) -> Iterator[_Part]:
    for file in files:
        metadata = footer(file)
        column = metadata.schema.names.index("msg")
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            known = group.column(column).statistics
            if known is None or not (known.has_min_max or known.null_count == group.num_rows):
                # Another program wrote the file without them.
                yield _Part(file, _FIRST, _LAST - 1, group.num_rows)
            elif known.has_min_max:
                yield _Part(file, known.min, known.max, group.num_rows)


def footer(file: Path) -> pq.FileMetaData:
    """Read the metadata of a file.

    Raises:
        PipelineFailed: The file cannot be read.
    """
    try:
        return metadata_of(file)
    except pa.ArrowException:
        refuse({file: "cannot be read"})
        raise


def first_of(metadata: pq.FileMetaData, column: str) -> datetime | None:
    """Return the first time in a column of a file; None if there is none."""
    place = metadata.schema.names.index(column)
    groups = (metadata.row_group(number).column(place) for number in range(metadata.num_row_groups))
    known = [each.statistics.min for each in groups if each.statistics is not None]
    return min((first for first in known if first is not None), default=None)


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


def parts(span: Span) -> Iterator[Span]:
    """Divide a span into parts that fit into a task's memory; the metadata gives only estimates.

    The rows of one message stay together.
    """
    rows = [opened(files, _MESSAGES) for files in span.files.values() if files]
    if sum(each.count_rows(filter=_is_in(span)) for each in rows) <= 2 * _MOST:
        yield span
        return
    ids = [each.to_table(filter=_is_in(span), use_threads=False)["msg"].to_numpy() for each in rows]
    ends = np.unique(np.sort(np.concatenate(ids))[_MOST::_MOST]).tolist()
    ends = [each for each in ends if each > span.first]
    for first, end in pairwise([span.first, *ends, span.end]):
        yield span._replace(first=first, end=end)


def read(span: Span, table: str, schema: pa.Schema) -> pa.Table:
    """Read these columns of a table for the messages of a span; missing columns are null."""
    if not span.files[table]:
        return schema.empty_table()
    rows = opened(span.files[table], schema).to_table(filter=_is_in(span), use_threads=False)
    # Queries read a column as a whole.
    return rows.unify_dictionaries().combine_chunks().cast(schema)


def _is_in(span: Span) -> pc.Expression:
    return (pc.field("msg") >= span.first) & (pc.field("msg") < span.end)
