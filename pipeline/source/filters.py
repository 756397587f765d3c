"""Spark's filters on events, as far as Arrow evaluates them alike."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from holdfast.pipeline.arrow import ARROW

# What takes a column and a value; without a value, what takes a column.
_WITH_VALUE: dict[type[Filter], Callable[[Any, Any], Any]] = {
    EqualTo: lambda column, value: column == value,
    GreaterThan: lambda column, value: column > value,
    GreaterThanOrEqual: lambda column, value: column >= value,
    LessThan: lambda column, value: column < value,
    LessThanOrEqual: lambda column, value: column <= value,
    In: lambda column, values: column.isin(values),
    StringStartsWith: lambda column, value: pc.starts_with(column, value),
}
_WITHOUT: dict[type[Filter], Callable[[Any], Any]] = {
    IsNull: lambda column: column.is_null(),
    IsNotNull: lambda column: column.is_valid(),
}


def is_known(each: Filter) -> bool:
    """Return whether `passing` can evaluate it. Spark evaluates all others."""
    known: Any = each
    kind, name = type(each), getattr(known, "attribute", None)
    if name is None or len(name) != 1 or name[0] not in ARROW.names:
        return False
    return kind in _WITHOUT or (kind in _WITH_VALUE and known.value is not None)


def passing(
    events: Iterable[pa.RecordBatch], filters: Sequence[Filter]
) -> Iterator[pa.RecordBatch]:
    """Yield the events that pass all of these filters."""
    wanted = [*map(_condition, filters)]
    for batch in events:
        table = pa.Table.from_batches([batch])
        for condition in wanted:
            table = table.filter(condition)
        yield from table.to_batches()


def _condition(each: Filter) -> pc.Expression:
    known: Any = each
    name = known.attribute[0]
    column, kind = pc.field(name), ARROW.field(name).type
    if type(each) in _WITHOUT:
        return _WITHOUT[type(each)](column)
    if isinstance(each, In):
        return _WITH_VALUE[In](column, pa.array([*each.value], kind))
    value = known.value if isinstance(each, StringStartsWith) else pa.scalar(known.value, kind)
    return _WITH_VALUE[type(each)](column, value)
