"""What the audit finds."""

from typing import Any

from holdfast.pipeline.audit.findings import FINDINGS, find
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.tables import Tables

Findings = list[dict[str, Any]]


def findings(tables: Tables) -> Findings:
    """What somebody finds whose clock is at zero."""
    find(tables, {}, 0)
    return tables.ask(FINDINGS).by_name()


def findings_of(lake: Lake) -> Findings:
    with of_lake(lake) as tables:
        return findings(tables)


def violations(found: Findings) -> Findings:
    """Without the times of which not everything is known."""
    return [row for row in found if not row["kind"].startswith("run.")]
