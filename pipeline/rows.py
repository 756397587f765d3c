"""Queries on Arrow tables within tasks: single-threaded, as Spark runs a task for each core."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# For each column: the source column, and Arrow's aggregation.
Sums = Mapping[str, tuple[str, str]]
_AT = "_at"


def summed(rows: pa.Table, by: Sequence[str], sums: Sums) -> pa.Table:
    """Return a row for each group, with rows in their order; nulls are ignored."""
    made = rows.group_by([*by], use_threads=False).aggregate([*sums.values()])
    return made.select([*by, *map("_".join, sums.values())]).rename_columns([*by, *sums])


def beside(rows: pa.Table, more: pa.Table, by: Sequence[str]) -> pa.Table:
    """Join each row with at most one matching row, else nulls; the order is not kept."""
    places = with_columns(more.select([*by]), {_AT: pa.array(np.arange(len(more)))})
    joined = rows.join(places, [*by], join_type="left outer", use_threads=False)
    found = more.drop_columns([*by]).take(joined[_AT].combine_chunks())
    return with_columns(joined.drop_columns([_AT]), columns_of(found))


def with_columns(rows: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Return the rows with these columns added or replaced."""
    return pa.table({**columns_of(rows), **columns})


def columns_of(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return all columns by name."""
    return dict(zip(rows.column_names, rows.columns, strict=True))


def only_if(condition: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values where the condition holds, else null."""
    return pc.if_else(condition, values, pa.scalar(None, values.type))


def of_each_word(words: pa.ChunkedArray, ask: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Apply a function to texts, once for each distinct text."""
    known = words.combine_chunks().dictionary_encode()
    return ask(known.dictionary).take(known.indices)
