"""What the audit finds."""

from typing import Any

import pyarrow as pa

from holdfast.pipeline import schemas
from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.audit.findings import FINDINGS, find
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake, opened
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.reports.views import narrow

Findings = list[dict[str, Any]]
_OTHERS = {
    "life": f"{schemas.LIFE}, state string",
    "latency": schemas.LATENCY,
    "lost": schemas.LOST,
}


def findings(tables: Tables, events: pa.Table) -> Findings:
    """What is found in these events by somebody whose clock is at zero."""
    tables.add("all_events", events)
    for name, schema in _OTHERS.items():
        tables.add(f"all_{name}", arrow_of(schema).empty_table())
    narrow(tables)
    return _found(tables)


def _found(tables: Tables) -> Findings:
    find(tables, {}, 0)
    return tables.ask(FINDINGS).to_pylist()


def findings_of(lake: Lake) -> Findings:
    with of_lake(lake) as tables:
        return _found(tables)


def violations_in(events: pa.Table) -> Findings:
    with opened() as tables:
        return violations(findings(tables, events))


def violations(found: Findings) -> Findings:
    """Without the times of which not everything is known."""
    return [row for row in found if not row["kind"].startswith("run.")]
