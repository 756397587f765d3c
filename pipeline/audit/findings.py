"""Checks that every accepted copy has exactly one end, and that no receiver got a copy twice.

Each finding is a row: its kind, what it is about, its time if that is the journal, the excess or
shortage, and a text. Open copies are no violation. `coverage` finds what cannot be checked. The
messages of a day are checked together, and again only when there are new events about them.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from holdfast.journal.schema import Kind
from holdfast.pipeline.audit.books import UNBALANCED
from holdfast.pipeline.audit.coverage import STRETCHES, Stretch, Unknown, unknowns_of
from holdfast.pipeline.audit.ledger import SCHEMA, words
from holdfast.pipeline.audit.memory import AuditMemory
from holdfast.pipeline.audit.messages import examine
from holdfast.pipeline.incidents import LOSSES
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.reports.views import narrow
from holdfast.pipeline.scope import Scope

_NAMES = "kind, node, msg, receiver, since, until, number, what"
# Unknowns come first.
FINDINGS = f"select {_NAMES} from {{findings}} order by kind not like 'run.%', {_NAMES}"
COUNTS = "select kind, count(*) as n from {findings} group by kind"

# Called with the number of days done, and of all.
Report = Callable[[int, int], None]


def find(
    tables: Tables,
    memory: AuditMemory,
    scope: Scope,
    lacking: Mapping[str, int],
    heard: Mapping[str, int],
    now_us: int,
    report: Report,
) -> None:
    """Make the table `findings`: all violations, and the present unknowns.

    Args:
        lacking: By node, the number of missing frames after the last one.
        heard: By node, when its server was last heard of, in ms since 1970.
    """
    unread = memory.unread
    for done, day in enumerate(unread):
        # About as many days remain to be checked.
        report(done, 2 * len(unread))
        memory.read(tables, day)
    tables.add_files("ledger", memory.ledgers(), SCHEMA)
    tables.define("reach", _REACH)
    stretches = [Stretch(*row) for row in tables.ask(STRETCHES).rows]
    unknowns = [*_lacking(lacking), *map(_row, unknowns_of(stretches, heard, now_us))]
    tables.add("unknowns", _UNKNOWN, unknowns)
    parts = [f"select * from ({_OF_JOURNAL}) where {scope.overlap}"]
    spans = _spans(memory, scope)
    for done, (span, clean) in enumerate(spans, len(unread)):
        report(done, len(unread) + len(spans))
        faults = f"faults_{done}"
        narrow(tables, span)
        if examine(tables, faults):
            parts.append(f"select * from {{{faults}}}")
        elif clean is not None:
            clean.touch()
    tables.materialize("findings", " union all ".join(parts))


def _spans(memory: AuditMemory, scope: Scope) -> list[tuple[Scope, Path | None]]:
    """Return the scopes to check; whole days with the file that marks them as clean."""
    if scope.has_names:
        return [(scope, None)]
    spans: list[tuple[Scope, Path | None]] = []
    for day, clean in memory.days().items():
        whole = Scope.of_day(day)
        part = scope.within(whole)
        if part == whole and not clean.exists():
            spans.append((whole, clean))
        elif part is not None and part != whole:
            spans.append((part, None))
    return spans


def _row(unknown: Unknown) -> tuple[object, ...]:
    kind, node, since_us, until_us, what = unknown
    # If a clock was set back, the time between is negative.
    ms = None if until_us is None else max(until_us - since_us, 0) // 1000
    return kind, node, since_us, until_us, ms, what


def _lacking(lacking: Mapping[str, int]) -> Iterator[tuple[object, ...]]:
    text = "the last frames that were written are missing"
    for node, frames in lacking.items():
        yield "frame.lacking", node, None, None, frames, text


# The time of the first events of each node.
_REACH = """
    select node as origin, min(unix_micros(since)) as begin_us
    from {ledger} where seq is not null group by node
"""
_UNKNOWN = "kind string, node string, since_us bigint, until_us bigint, number bigint, what string"
_UNKNOWNS = """
    select kind, node, cast(null as bigint) as msg, cast(null as string) as receiver,
        timestamp_micros(since_us) as since, timestamp_micros(until_us) as until, number, what
    from {unknowns}
"""
# Events that the journal lacks, or must not contain.
_LOST = f"""
    select kind, node, cast(null as bigint) as msg, cast(null as string) as receiver,
        since, until, number, case when kind = '{Kind.DROPPED}'
            then 'events found no room while the store was unavailable' else what end as what
    from {{ledger}}
    where kind in {words(*LOSSES)} or kind = '{Kind.DROPPED}' and number > 0
"""
_OF_JOURNAL = " union all ".join(
    f"select {_NAMES} from ({part})" for part in (_UNKNOWNS, _LOST, UNBALANCED)
)
