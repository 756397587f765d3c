"""The statistics of a file in the commit that adds it, by which readers skip files.

Each column has its least and greatest value and the number of its nulls, as the format says:
https://github.com/delta-io/delta/blob/master/PROTOCOL.md#per-file-statistics
"""

import json
from collections.abc import Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

# Longer texts make commits large; the beginning of a least value is enough.
_LONGEST = 64
_Value = int | str | date


class _Column(NamedTuple):
    """What the parts of a file say about a column; None is unknown, or no value."""

    name: str
    least: _Value | None
    greatest: _Value | None
    nulls: int | None


def statistics_of(footer: "FileMetaData") -> str:
    """Return the statistics of a file as the log has them."""
    columns = [*_columns(footer)]
    found = {
        "numRecords": footer.num_rows,
        "minValues": {each.name: _least(each.least) for each in columns if each.least is not None},
        "maxValues": {
            each.name: _plain(each.greatest)
            for each in columns
            if each.greatest is not None and not _is_long(each.greatest)
        },
        "nullCount": {each.name: each.nulls for each in columns if each.nulls is not None},
    }
    return json.dumps(found)


def _columns(footer: "FileMetaData") -> Iterator[_Column]:
    for place in range(footer.num_columns):
        name = footer.schema.column(place).path
        if "." in name:
            # The values of a list have no order.
            continue
        parts = [footer.row_group(n).column(place) for n in range(footer.num_row_groups)]
        known = [part.statistics for part in parts if part.statistics is not None]
        if len(known) < len(parts) or not all(each.has_null_count for each in known):
            yield _Column(name, None, None, None)
            continue
        nulls = sum(each.null_count for each in known)
        # A part with nothing but nulls has no values.
        ends = [(each.min, each.max) for each in known if each.has_min_max]
        is_whole = len(ends) == sum(each.num_values > 0 for each in known)
        if ends and is_whole:
            least, greatest = min(low for low, _ in ends), max(high for _, high in ends)
            yield _Column(name, least, greatest, nulls)
        else:
            yield _Column(name, None, None, nulls)


def _is_long(value: _Value) -> bool:
    return isinstance(value, str) and len(value) > _LONGEST


def _least(value: _Value) -> int | str:
    plain = _plain(value)
    return plain[:_LONGEST] if isinstance(plain, str) else plain


def _plain(value: _Value) -> int | str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    return str(value) if isinstance(value, date) else value
