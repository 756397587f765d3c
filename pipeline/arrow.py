"""The tables in Arrow's words; pipeline.schemas has them in Spark's."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pipeline import schemas

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<bigint>": pa.list_(pa.int64()),
}


def arrow_of(schema: str) -> pa.Schema:
    """The same columns."""
    columns = (column.split() for column in schema.split(", "))
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns])


ARROW = arrow_of(schemas.JOURNAL)


def opened(files: Iterable[Path | str], schema: pa.Schema) -> "Dataset":
    """Files of Parquet with these columns, in which words are numbered until they are cast."""
    # It brings pandas along, which others who know this module need not wait for.
    import pyarrow.dataset as ds

    words = [field.name for field in schema if field.type == pa.string()]
    numbered = pa.dictionary(pa.int32(), pa.string())
    columns = [(each.name, numbered if each.name in words else each.type) for each in schema]
    how = ds.ParquetFileFormat(dictionary_columns=words)
    return ds.dataset([*map(str, files)], schema=pa.schema(columns), format=how)


def batch(columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """A piece of the journal's table; columns that are not given are empty."""
    arrays = []
    for field in ARROW:
        given = columns.get(field.name)
        arrays.append(pa.nulls(rows, field.type) if given is None else given.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)
