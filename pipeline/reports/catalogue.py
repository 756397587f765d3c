"""All reports by name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from holdfast.pipeline.reports.dead import dead, poison
from holdfast.pipeline.reports.flow import funnel, throughput
from holdfast.pipeline.reports.latency import latency
from holdfast.pipeline.reports.receivers import flapping, holdback_advice, redelivery
from holdfast.pipeline.reports.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REPORTS: dict[str, Callable[[Tables], "DataFrame"]] = {
    "latency": latency,
    "dead": dead,
    "poison": poison,
    "redelivery": redelivery,
    "funnel": funnel,
    "flapping": flapping,
    "holdback-advice": holdback_advice,
    "throughput": throughput,
}


class Result(NamedTuple):
    """The first rows of a report; times are text in UTC."""

    columns: list[str]
    rows: list[list[object]]


def result_of(frame: "DataFrame", most: int) -> Result:
    """Collect the rows to be shown."""
    shown = [
        F.date_format(name, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").alias(name)
        if kind == "timestamp"
        else F.col(name)
        for name, kind in frame.dtypes
    ]
    rows = [list(row) for row in frame.limit(most).select(*shown).collect()]
    return Result(frame.columns, rows)
