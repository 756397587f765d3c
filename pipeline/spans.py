"""Which messages a task is about: those between two ids, of which about as much is told.

Files say of each of their parts from which message to which it goes, and those of events are in
the order of messages; so a task reads little of what others read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.arrow import opened
from pipeline.batches import refuse

# Rows that a task is about: fewer are not worth one, of more it would take too much memory.
_FEWEST = 100_000
_MOST = 500_000
# In so many steps from its first message to its last a part of a file is thought to go on evenly.
_STEPS = 8
_MESSAGES = pa.schema([("msg", pa.int64())])
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
        told = footer(file)
        column = told.schema.names.index("msg")
        for number in range(told.num_row_groups):
            group = told.row_group(number)
            known = group.column(column).statistics
            if known is None or not (known.has_min_max or known.null_count == group.num_rows):
                # Others wrote it, and did not say.
                yield _Part(file, _FIRST, _LAST - 1, group.num_rows)
            elif known.has_min_max:
                yield _Part(file, known.min, known.max, group.num_rows)


def footer(file: Path) -> pq.FileMetaData:
    """What a file says of itself.

    Raises:
        PipelineFailed: It is none that can be read.
    """
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


def parts(span: Span) -> Iterator[Span]:
    """The same in parts of so many rows as a task may have at once: files only give an idea of it.

    What is told of a single message stays together.
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
    """These columns of what a table tells of the messages; none that a file lacks is known."""
    if not span.files[table]:
        return schema.empty_table()
    told = opened(span.files[table], schema).to_table(filter=_is_in(span), use_threads=False)
    # What is asked of it looks at all of a column at once.
    return told.unify_dictionaries().combine_chunks().cast(schema)


def _is_in(span: Span) -> pc.Expression:
    return (pc.field("msg") >= span.first) & (pc.field("msg") < span.end)
