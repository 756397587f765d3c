"""Checks that every accepted copy has exactly one end, and that no receiver got a copy twice.

Each finding is a row: its kind, what it is about, its time if that is the journal, the excess or
shortage, and a text. Open copies are no violation. `coverage` finds what cannot be checked. The
messages of a day are checked together, and again only when there are new events about them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from holdfast.journal.schema import Kind
from holdfast.pipeline.audit.books import UNBALANCED
from holdfast.pipeline.audit.coverage import STRETCHES, Stretch, Unknown, gaps_in, unknowns_of
from holdfast.pipeline.audit.ledger import SCHEMA, words
from holdfast.pipeline.audit.memory import AuditMemory, MessageDays
from holdfast.pipeline.audit.messages import examine
from holdfast.pipeline.incidents import LOSSES
from holdfast.pipeline.reports.memory import MESSAGE_DAY
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
) -> list[Unknown]:
    """Make the table `findings` of violations and present unknowns; return all unknowns.

    Args:
        lacking: By node, the number of missing frames after the last one.
        heard: By node, when its server was last heard of, in ms since 1970.
    """
    done, unread = 0, len(memory.unread)
    for days in memory.read(tables):
        # About as many days remain to be checked.
        report(done, 2 * unread)
        done += days
    tables.add_files("ledger", memory.ledgers(), SCHEMA)
    tables.define("reach", _REACH)
    tables.define("beginning", _BEGINNING)
    stretches = [Stretch(*row) for row in tables.ask(STRETCHES).rows]
    unknowns = [*unknowns_of(stretches, heard, now_us)]
    tables.add("gaps", "since_us bigint, until_us bigint", gaps_in(unknowns))
    rows = [*_lacking(lacking), *map(_row, memory.news(unknowns))]
    tables.add("unknowns", _UNKNOWN, rows)
    parts = [f"select * from ({_OF_JOURNAL}) where {scope.overlap}"]
    whole, others = _spans(memory.days(), scope)
    total = done + len(whole) + len(others)
    for checked, faults in _check(tables, memory.days(), whole, others):
        done += checked
        report(done, total)
        if faults is not None:
            parts.append(f"select * from {{{faults}}}")
    tables.materialize("findings", " union all ".join(parts))
    return unknowns


def _spans(days: MessageDays, scope: Scope) -> tuple[list[int], list[Scope]]:
    """Return the whole days to check, and the scopes of parts of days, or of some messages."""
    if scope.has_names:
        return [], [scope]
    parts = {day: scope.within(Scope.of_day(day)) for day in days}
    whole = [day for day, part in parts.items() if part == Scope.of_day(day)]
    others = [part for day, part in parts.items() if part is not None and day not in {*whole}]
    return [day for day in whole if not days.clean[day].exists()], others


def _check(
    tables: Tables, days: MessageDays, whole: Iterable[int], others: Iterable[Scope]
) -> Iterator[tuple[int, str | None]]:
    """Check messages; yield the number of days, and the table of their faults if there are any."""
    for few in days.together(whole):
        faults = f"faults_of_{few[0]}"
        days.add_events(tables, "events_about", few)
        found = examine(tables, faults, "events_about")
        yield len(few), faults if found else None
        faulty = (
            tables.ask(f"select distinct {MESSAGE_DAY} from {{{faults}}}").rows if found else ()
        )
        for day in {*few} - {day for (day,) in faulty}:
            days.clean[day].touch()
    for number, part in enumerate(others):
        narrow(tables, part)
        faults = f"faults_{number}"
        yield 1, faults if examine(tables, faults, "events") else None


def _row(unknown: Unknown) -> tuple[object, ...]:
    kind, node, since_us, until_us, what = unknown
    # If a clock was set back, the time between is negative.
    ms = None if until_us is None else max(until_us - since_us, 0) // 1000
    return kind, node, since_us, until_us, ms, what


def _lacking(lacking: Mapping[str, int]) -> Iterator[tuple[object, ...]]:
    text = "the last frames that were written are missing"
    for node, frames in lacking.items():
        yield "frame.lacking", node, None, None, frames, text


# The time of the first events of each node. Until 0.4, its messages had its name.
_REACH = """
    select node as origin, min(unix_micros(since)) as begin_us
    from {ledger} where seq is not null group by node
"""
# The time from which on everything about a deployment is known: when its first events happened, or
# later if the beginning of a shard's journal is missing.
_BEGINNING = """
    with shards as (
        select regexp_extract(node, '/[0-9]+$', 0) as shard, min(seq) as first_seq,
            min(unix_micros(since)) as begin_us
        from {ledger} where seq is not null group by regexp_extract(node, '/[0-9]+$', 0)
    )
    select greatest(min(begin_us), max(case when first_seq > 1 then begin_us end)) as known_us
    from shards
"""
_UNKNOWN = "kind string, node string, since_us bigint, until_us bigint, number bigint, what string"
_UNKNOWNS = """
    select kind, node, cast(null as bigint) as msg, cast(null as string) as receiver,
        timestamp_micros(since_us) as since, timestamp_micros(until_us) as until, number, what
    from {unknowns}
"""
# Events that the journal lacks, or must not contain; and what shards did not get of each other.
_LOST = f"""
    select kind, node, cast(null as bigint) as msg, cast(null as string) as receiver,
        since, until, number, case kind
            when '{Kind.DROPPED}' then 'events found no room while the store was unavailable'
            when '{Kind.GAP}' then concat('messages of shard ', what, ' did not arrive here')
            else what end as what
    from {{ledger}}
    where kind in {words(*LOSSES, Kind.GAP)} or kind = '{Kind.DROPPED}' and number > 0
"""
_OF_JOURNAL = " union all ".join(
    f"select {_NAMES} from ({part})" for part in (_UNKNOWNS, _LOST, UNBALANCED)
)
