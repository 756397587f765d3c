"""Results for the console: computed here, and written to the store as whole values.

Each value is JSON under `{NAMESPACE}:pipeline:NAME`, with the time of computation and the period
covered. Writing replaces the value, so nothing is counted twice, even if a process is killed.
"""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from holdfast.pipeline.reports.columns import COLUMNS, TITLES, Column
from holdfast.pipeline.reports.dead import CAUSES, DEAD, POISON
from holdfast.pipeline.reports.flow import FUNNEL, TREND
from holdfast.pipeline.reports.forms import message_name
from holdfast.pipeline.reports.latency import BY_HOUR
from holdfast.pipeline.reports.receivers import HOLDBACK_ADVICE, LAG
from holdfast.pipeline.reports.refused_publishes import REFUSED_PUBLISHES
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.source.clients import answering, connect
from holdfast.units import Form

VERSION = 2
# Each result with its question and its maximum number of rows; there are more hours than kinds of
# death.
_RESULTS = {
    "funnel": (FUNNEL, 200),
    "dead": (DEAD, 200),
    "causes": (CAUSES, 200),
    "latency": (BY_HOUR, 1000),
    "poison": (POISON, 200),
    "holdback-advice": (HOLDBACK_ADVICE, 200),
    "trend": (TREND, 200),
    "lag": (LAG, 200),
    "refused-publishes": (REFUSED_PUBLISHES, 200),
}
# The tables of results that have another name.
_TABLES = {"latency": "latency-by-hour"}
_SPAN = """
    select cast(floor(min(unix_micros(ts)) / 1000) as bigint) as since,
        cast(floor(max(unix_micros(ts)) / 1000) as bigint) as until
    from {events}
"""


def find_out(tables: Tables) -> dict[str, dict[str, Any]]:
    """Compute all results by name, in the form to be written."""
    [span] = tables.ask(_SPAN).by_name()
    found = {}
    for name, (question, most) in _RESULTS.items():
        rows = [_fields_of(row) for row in tables.ask(question, most).by_name()]
        at = time.time_ns() // 1_000_000
        found[name] = {"result": name, "at": at, **span, **_about(name), "rows": rows}
    return found


def _about(name: str) -> dict[str, Any]:
    """Return the title and the columns of a result."""
    table = _TABLES.get(name, name)
    columns = [column._asdict() for column in COLUMNS[table]]
    return {"title": TITLES[table], "columns": columns}


def of_audit(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the violations that an audit found, by kind, in the form to be written."""
    rows = [{"kind": kind, "number": number} for kind, number in sorted(counts.items())]
    columns = [
        Column("kind", Form.TEXT, "The kind of violation.")._asdict(),
        Column("number", Form.COUNT, "How many there are.")._asdict(),
    ]
    about = {"title": TITLES["audit"], "columns": columns}
    at = time.time_ns() // 1_000_000
    return {"result": "audit", "at": at, "since": None, "until": None, **about, "rows": rows}


def _fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as in the admin API: times are ms since 1970, messages have one name."""
    fields = {
        name: round(value.timestamp() * 1000) if isinstance(value, datetime) else value
        for name, value in row.items()
    }
    if "msg" in fields:
        fields = {"message": message_name(fields.pop("origin"), fields.pop("msg")), **fields}
    return fields


def write_back(found: Mapping[str, Mapping[str, Any]], urls: str, namespace: str) -> None:
    """Write all results in one step, into the store of the first shard.

    Raises:
        PipelineFailed: The store does not answer.
    """
    url = urls.split()[0]
    with answering(url), connect(url) as redis, redis.pipeline(transaction=True) as together:
        for name, value in found.items():
            together.set(f"{{{namespace}}}:pipeline:{name}", orjson.dumps({"v": VERSION, **value}))
        together.execute()
