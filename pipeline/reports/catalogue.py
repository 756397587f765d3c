"""All reports by name."""

from datetime import datetime
from typing import NamedTuple

from holdfast.pipeline.reports.dead import CAUSES, DEAD, POISON
from holdfast.pipeline.reports.flow import BACKLOG, FUNNEL, PUBLISHERS, THROUGHPUT, TREND
from holdfast.pipeline.reports.forms import message_name
from holdfast.pipeline.reports.latency import LATENCY
from holdfast.pipeline.reports.receivers import (
    FLAPPING,
    HOLDBACK_ADVICE,
    LAG,
    REDELIVERY,
    SLOW_RECEIVERS,
)
from holdfast.pipeline.reports.refused_publishes import REFUSED_PUBLISHES
from holdfast.pipeline.reports.requests import REQUESTS
from holdfast.pipeline.reports.tables import Answer
from holdfast.pipeline.reports.trends import DAYS, UNUSUAL

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
    "backlog": BACKLOG,
    "trend": TREND,
    "lag": LAG,
    "refused-publishes": REFUSED_PUBLISHES,
    "days": DAYS,
    "unusual": UNUSUAL,
    "causes": CAUSES,
    "requests": REQUESTS,
}


class Result(NamedTuple):
    """The first rows of a report; times are text in UTC."""

    columns: list[str]
    rows: list[list[object]]


def result_of(answer: Answer) -> Result:
    """Return the rows to be shown, with one name for each message."""
    names = [*answer.columns]
    rows = [[*map(_shown, row)] for row in answer.rows]
    if "msg" in names:
        msg = names.index("msg")
        # Findings of the audit have the origin as their node.
        origin = names.index("origin" if "origin" in names else "node")
        for row in rows:
            number = row[msg]
            row[msg] = message_name(row[origin], number) if isinstance(number, int) else None
        names[msg] = "message"
        if names[origin] == "origin":
            del names[origin]
            for row in rows:
                del row[origin]
    return Result(names, rows)


def _shown(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value
