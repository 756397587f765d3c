"""The ledger: a summary of the journal, for checks of whole frames and runs.

A row counts the events of one kind in one frame. Events about the journal and its node have
separate rows.
"""

from holdfast.journal.schema import Kind
from holdfast.pipeline.incidents import INCIDENTS


def words(*kinds: str) -> str:
    """Return these kinds as a list of SQL."""
    return f"({', '.join(map(repr, map(str, kinds)))})"


SCHEMA = (
    "node string, epoch string, seq bigint, kind string, pos int, what string, since timestamp, "
    "until timestamp, events bigint, copies bigint, number bigint"
)
_IS_SINGLE = f"kind in {words(Kind.NODE, Kind.BOOKS, Kind.DROPPED, Kind.GAP, *INCIDENTS)}"


def ledger_of(table: str, part: str) -> str:
    """Return the question for the ledger of some events, in an order that compresses well.

    Args:
        part: What says which part of the ledger an event belongs to.
    """
    return f"""
    with chosen as (
        select {part} as part, node, epoch, seq, kind, ts, copies, number,
            case when {_IS_SINGLE} then pos else 0 end as pos,
            case when {_IS_SINGLE} then what end as what
        from {{{table}}}
    )
    select part, node, epoch, seq, kind, pos, what, min(ts) as since, max(ts) as until,
        count(*) as events, cast(sum(copies) as bigint) as copies,
        cast(sum(number) as bigint) as number
    from chosen group by part, node, epoch, seq, kind, pos, what
    order by part, node, epoch, seq, pos, kind
    """
