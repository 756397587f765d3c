"""The journal's table in Arrow's words; pipeline.schemas has it in Spark's."""

import pyarrow as pa

ARROW = pa.schema(
    [
        ("node", pa.string()),
        ("ts", pa.timestamp("us", "UTC")),
        ("kind", pa.string()),
        ("msg", pa.int64()),
        ("origin", pa.string()),
        ("channel", pa.string()),
        ("receiver", pa.string()),
        ("copies", pa.int32()),
        ("kept", pa.int32()),
        ("size", pa.int32()),
        ("priority", pa.int32()),
        ("sender", pa.string()),
        ("attempt", pa.int32()),
        ("code", pa.string()),
        ("letter", pa.int64()),
        ("fingerprint", pa.string()),
        ("generation", pa.int32()),
        ("what", pa.string()),
        ("number", pa.int64()),
        ("epoch", pa.string()),
        ("seq", pa.int64()),
        ("pos", pa.int32()),
    ]
)


def batch(columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """A piece of the table; columns that are not given are empty."""
    arrays = []
    for field in ARROW:
        given = columns.get(field.name)
        arrays.append(pa.nulls(rows, field.type) if given is None else given.cast(field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)
