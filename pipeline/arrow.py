"""The tables in Arrow's words; pipeline.schemas has them in Spark's."""

import pyarrow as pa

from pipeline import schemas

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


def batch(columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """A piece of the journal's table; columns that are not given are empty."""
    arrays = []
    for field in ARROW:
        given = columns.get(field.name)
        arrays.append(pa.nulls(rows, field.type) if given is None else given.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)
