"""All reports by name."""

from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from holdfast.pipeline.reports.dead import DEAD, POISON
from holdfast.pipeline.reports.flow import FUNNEL, PUBLISHERS, THROUGHPUT
from holdfast.pipeline.reports.latency import LATENCY
from holdfast.pipeline.reports.receivers import (
    FLAPPING,
    HOLDBACK_ADVICE,
    REDELIVERY,
    SLOW_RECEIVERS,
)

REPORTS = {
    "latency": LATENCY,
    "dead": DEAD,
    "poison": POISON,
    "redelivery": REDELIVERY,
    "funnel": FUNNEL,
    "flapping": FLAPPING,
    "holdback-advice": HOLDBACK_ADVICE,
    "throughput": THROUGHPUT,
    "publishers": PUBLISHERS,
    "slow-receivers": SLOW_RECEIVERS,
}


class Result(NamedTuple):
    """The first rows of a report; times are text in UTC."""

    columns: list[str]
    rows: list[list[object]]


def result_of(answer: pa.Table) -> Result:
    """Return the rows to be shown."""
    columns = [[_shown(value) for value in column.to_pylist()] for column in answer.columns]
    return Result(answer.column_names, [list(row) for row in zip(*columns, strict=True)])


def _shown(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
