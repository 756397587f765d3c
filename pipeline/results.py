"""Results for the console: computed here, and written to the store as whole values.

Each value is JSON under `{NAMESPACE}:pipeline:NAME`, with the time of computation and the period
covered. Writing replaces the value, so nothing is counted twice, whenever a process is killed.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson
from pyspark.sql import functions as F

from holdfast.pipeline.reports.dead import dead, poison
from holdfast.pipeline.reports.latency import by_hour
from holdfast.pipeline.reports.receivers import holdback_advice
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.source.streams import answering, connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VERSION = 1
# The most rows of each result; there are more hours than kinds of death.
_MOST = 200
_MOST_HOURS = 1000


def _dead(tables: Tables) -> "DataFrame":
    return dead(tables).limit(_MOST)


def _latency(tables: Tables) -> "DataFrame":
    return by_hour(tables).limit(_MOST_HOURS)


def _poison(tables: Tables) -> "DataFrame":
    """Return the messages by the names that operators know."""
    name = F.format_string("%s-%019d", "origin", "msg").alias("message")
    found = poison(tables).limit(_MOST)
    return found.select(name, "channel", "receivers", "dead", "share", "code")


def _advice(tables: Tables) -> "DataFrame":
    return holdback_advice(tables).limit(_MOST)


RESULTS: Mapping[str, Callable[[Tables], "DataFrame"]] = {
    "dead": _dead,
    "latency": _latency,
    "poison": _poison,
    "holdback-advice": _advice,
}


def find_out(tables: Tables) -> dict[str, dict[str, Any]]:
    """Compute all results by name, in the form to be written."""
    since, until = _span(tables)
    found = {}
    for name, result in RESULTS.items():
        rows = _rows(result(tables))
        at = time.time_ns() // 1_000_000
        found[name] = {"result": name, "at": at, "since": since, "until": until, "rows": rows}
    return found


def _span(tables: Tables) -> tuple[int | None, int | None]:
    ends = (F.unix_millis(F.min("ts")), F.unix_millis(F.max("ts")))
    [(since, until)] = tables.events.agg(*ends).collect()
    return since, until


def _rows(frame: "DataFrame") -> list[dict[str, Any]]:
    """Return the rows; times are ms since 1970, as in the admin API."""
    shown = [
        F.unix_millis(name).alias(name) if kind == "timestamp" else F.col(name)
        for name, kind in frame.dtypes
    ]
    return [row.asDict() for row in frame.select(*shown).collect()]


def write_back(found: Mapping[str, Mapping[str, Any]], url: str, namespace: str) -> None:
    """Write all results in one step.

    Raises:
        PipelineFailed: The store does not answer.
    """
    with answering(url), connect(url) as redis, redis.pipeline(transaction=True) as together:
        for name, value in found.items():
            together.set(f"{{{namespace}}}:pipeline:{name}", orjson.dumps({"v": VERSION, **value}))
        together.execute()
