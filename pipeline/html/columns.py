"""Columns of a report as text or numbers."""

from typing import cast

from holdfast.pipeline.reports.catalogue import Result

_UNKNOWN = "(unknown)"


def words(result: Result, name: str, *, missing: str = _UNKNOWN) -> list[str]:
    place = result.columns.index(name)
    return [missing if row[place] is None else str(row[place]) for row in result.rows]


def numbers(result: Result, name: str) -> list[float]:
    place = result.columns.index(name)
    return [cast("float", row[place] or 0) for row in result.rows]
