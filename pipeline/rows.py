"""Questions to Arrow's tables, as tasks ask them: of one thread, for Spark has one for each."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# What each column is to be made of: of which one of a group's rows, and how, in Arrow's words.
Sums = Mapping[str, tuple[str, str]]
_AT = "_at"


def summed(rows: pa.Table, by: Sequence[str], sums: Sums) -> pa.Table:
    """A row for each group, whose rows are taken in their order; what is null is no part of it."""
    made = rows.group_by([*by], use_threads=False).aggregate([*sums.values()])
    return made.select([*by, *map("_".join, sums.values())]).rename_columns([*by, *sums])


def beside(rows: pa.Table, more: pa.Table, by: Sequence[str]) -> pa.Table:
    """Each row, in whatever order, with what belongs to it: one row at most, else nulls."""
    places = with_columns(more.select([*by]), {_AT: pa.array(np.arange(len(more)))})
    joined = rows.join(places, [*by], join_type="left outer", use_threads=False)
    found = more.drop_columns([*by]).take(joined[_AT].combine_chunks())
    return with_columns(joined.drop_columns([_AT]), columns_of(found))


def with_columns(rows: pa.Table, columns: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """The same with these, in place of those of their names."""
    return pa.table({**columns_of(rows), **columns})


def columns_of(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """All of them, by their names."""
    return dict(zip(rows.column_names, rows.columns, strict=True))


def only_if(condition: pa.ChunkedArray, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values where this is so, else null."""
    return pc.if_else(condition, values, pa.scalar(None, values.type))


def of_each_word(words: pa.ChunkedArray, ask: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """What is asked of words, asked once of all that are the same."""
    known = words.combine_chunks().dictionary_encode()
    return ask(known.dictionary).take(known.indices)
