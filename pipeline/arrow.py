"""Arrow schemas of the tables; holdfast.pipeline.schemas has Spark's."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from holdfast.pipeline import schemas
from holdfast.pipeline.storage.place import for_arrow

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyarrow.parquet import FileMetaData

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<bigint>": pa.list_(pa.int64()),
}


def arrow_of(schema: str) -> pa.Schema:
    """Return the Arrow schema of these columns."""
    columns = (column.split() for column in schema.split(", "))
    return pa.schema([(name, _TYPES[kind]) for name, kind in columns])


ARROW = arrow_of(schemas.JOURNAL)


def opened(files: Iterable[Path | str], schema: pa.Schema) -> "Dataset":
    """Open Parquet files with these columns; texts stay dictionary-encoded until they are cast."""
    # Imported here because it loads pandas, which other users of this module do not need.
    import pyarrow.dataset as ds

    words = [field.name for field in schema if field.type == pa.string()]
    numbered = pa.dictionary(pa.int32(), pa.string())
    columns = [(each.name, numbered if each.name in words else each.type) for each in schema]
    how = ds.ParquetFileFormat(dictionary_columns=words)
    names, filesystem = for_arrow(files)
    return ds.dataset(names, schema=pa.schema(columns), format=how, filesystem=filesystem)


def metadata_of(file: Path) -> "FileMetaData":
    """Read the metadata of a Parquet file."""
    from pyarrow.parquet import read_metadata

    [name], filesystem = for_arrow([file])
    return read_metadata(name, filesystem=filesystem)


def batch(columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Make a batch of the journal's table; missing columns are empty."""
    arrays = []
    for field in ARROW:
        given = columns.get(field.name)
        arrays.append(pa.nulls(rows, field.type) if given is None else given.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def give_back() -> None:
    """Give memory that nothing uses back to the machine: a process that waits would keep it."""
    pa.default_memory_pool().release_unused()
