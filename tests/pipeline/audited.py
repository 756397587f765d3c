"""The findings of an audit, for tests."""

from typing import Any

from holdfast.pipeline.audit.findings import FINDINGS, find
from holdfast.pipeline.audit.memory import remembering
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.scope import EVERYTHING, Scope

Findings = list[dict[str, Any]]


def findings(tables: Tables, lake: Lake, scope: Scope = EVERYTHING) -> Findings:
    """The findings of an audit whose clock is at zero."""
    with remembering(lake) as memory:
        find(tables, memory, scope, {}, {}, 0, lambda done, total: None)
    return tables.ask(FINDINGS).by_name()


def findings_of(lake: Lake, scope: Scope = EVERYTHING) -> Findings:
    with of_lake(lake) as tables:
        return findings(tables, lake, scope)


def violations(found: Findings) -> Findings:
    """The findings without the unknowns."""
    return [row for row in found if not row["kind"].startswith("run.")]
