"""The way of one message, as the tables have it: longer than the journal."""

from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.pipeline.lake import EVENTS, TABLES, Lake
from holdfast.pipeline.on_duckdb import opened

_NS_PER_S = 1_000_000_000
# The clocks of nodes differ, and are put back.
_BEFORE = timedelta(days=1)
_STEPS = """
    select epoch_us(ts) as at_us, node, kind, receiver, channel, attempt, code,
        lpad(cast(letter as varchar), 19, '0') as letter, copies, sender
    from events where msg = (select msg from wanted) and origin = (select origin from wanted)
    order by ts, seq, pos
"""


def steps(lake: Lake, origin: str, ns: int) -> list[dict[str, Any]]:
    """Return the steps of a message, named as in the administration.

    Raises:
        PipelineFailed: There are no tables, or they cannot be read.
    """
    published = datetime.fromtimestamp(ns // _NS_PER_S, UTC) - _BEFORE
    files = lake.files(EVENTS, published.date())
    with opened() as tables:
        tables.add_files("events", files, ", ".join(TABLES[EVENTS]))
        tables.add("wanted", "origin string, msg bigint", [(origin, ns)])
        return tables.ask(_STEPS).by_name()
