"""Writes files of a table again: several small ones as one, or one without its old rows.

Files are read and written piece by piece, so that memory does not depend on their size.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from holdfast.pipeline.arrow import opened
from holdfast.pipeline.digests import move_with_digest
from holdfast.pipeline.source.event_files import PACKED, TOGETHER, packing
from holdfast.pipeline.storage.place import draft_in
from holdfast.pipeline.table_files import File

# The size of merged files: some million events. Files of less than half this size are merged.
MERGED = 32 * 1024**2
SMALL = MERGED // 2


def bins(files: Iterable[File]) -> Iterator[list[File]]:
    """Divide small files into those that are merged into one file; none is alone."""
    together: list[File] = []
    for file in sorted(files, key=lambda file: file.path.name):
        together.append(file)
        if sum(each.size for each in together) >= MERGED:
            yield together
            together = []
    if len(together) > 1:
        yield together


def rewrite(
    files: Sequence[Path], schema: pa.Schema, folder: Path, kept: pc.Expression | None = None
) -> str | None:
    """Write the rows of these files into one new file; return its name, or None without rows.

    Args:
        schema: The columns; those that a file lacks are null.
        kept: The condition on the rows.
    """
    pieces = _pieces(files, schema, kept)
    first = next(pieces, None)
    if first is None:
        return None
    draft = draft_in(folder, f"{uuid4().hex}.parquet")
    with pq.ParquetWriter(draft, schema, **packing(schema)) as writer:
        for rows in chain([first], pieces):
            writer.write_table(rows, row_group_size=PACKED)
    return move_with_digest(draft, folder)


def _pieces(
    files: Sequence[Path], schema: pa.Schema, kept: pc.Expression | None
) -> Iterator[pa.Table]:
    batches: list[pa.RecordBatch] = []
    for batch in opened(files, schema).to_batches(filter=kept, use_threads=False):
        batches.append(batch)
        if sum(each.num_rows for each in batches) >= TOGETHER:
            yield _in_order(batches, schema)
            batches = []
    if any(each.num_rows for each in batches):
        yield _in_order(batches, schema)


def _in_order(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Return the rows as one piece, sorted by message as in a new file of events."""
    rows = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().cast(schema)
    return rows.take(pc.sort_indices(rows["msg"])) if "msg" in schema.names else rows
