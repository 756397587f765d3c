"""The ledger: the journal in short, for whatever is about whole frames and runs.

A row counts the events of one kind in one frame. Events about the journal and its node have rows of
their own.
"""

from holdfast.journal.schema import Kind
from holdfast.pipeline.incidents import INCIDENTS


def words(*kinds: str) -> str:
    """Return these kinds as a list of SQL."""
    return f"({', '.join(map(repr, map(str, kinds)))})"


_IS_SINGLE = f"kind in {words(Kind.NODE, Kind.BOOKS, Kind.DROPPED, *INCIDENTS)}"
_ROW = (
    f"node, epoch, seq, kind, case when {_IS_SINGLE} then pos else 0 end as pos, "
    f"case when {_IS_SINGLE} then what end as what"
)
LEDGER = f"""
    with rows as (select {_ROW}, ts, copies, number from {{all_events}})
    select node, epoch, seq, kind, pos, what, min(ts) as since, max(ts) as until,
        count(*) as events, cast(sum(copies) as bigint) as copies,
        cast(sum(number) as bigint) as number
    from rows group by node, epoch, seq, kind, pos, what
"""
