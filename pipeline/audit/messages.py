"""Finds the faults of messages and of single copies."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from holdfast.journal.schema import TAKEN_BACK, Kind
from holdfast.pipeline.audit.ledger import words
from holdfast.pipeline.copies import ENDS
from holdfast.pipeline.reports.tables import Tables

_NEVER = "timestamp_micros(cast(null as bigint))"
_IS_HANDED = f"kind in {words(Kind.HANDED, Kind.REDELIVERED)}"
_IS_END = f"kind in {words(*ENDS)}"
_IS_ENTRY = f"kind = '{Kind.ENTERED}'"
_IS_TAKEN_BACK = f"kind = '{Kind.MOVED}' and code = '{TAKEN_BACK}'"
_IS_REPLAY, _IS_OTHER = f"kind = '{Kind.REPLAYED}'", f"kind <> '{Kind.PUBLISHED}'"


_HAND_OVERS = "(case when is_moved then firsts + repeats else firsts end)"


class _Fault(NamedTuple):
    kind: str
    is_so: str
    # The size of the excess.
    number: str
    text: str


# A copy ends once, and its first hand-over happens once, before its ack and its end. A copy that
# moved brings its attempts along: there, the first hand-over may be a repeated one.
_OF_COPIES = (
    _Fault("settled_twice", "ends > lives", "ends - lives", "more ends than lives"),
    _Fault("handed_twice", "firsts > lives", "firsts - lives", "more first hand-overs than lives"),
    _Fault("handed_after_end", "ends >= lives and is_later", "1", "handed over after its end"),
    _Fault(
        "never_handed",
        f"acks > {_HAND_OVERS} and not is_old",
        f"acks - {_HAND_OVERS}",
        "acked, but never handed over",
    ),
)
_IS_KNOWN, _IS_UNKNOWN = (f"published {sign} 0 and not is_old" for sign in (">", "="))
# A message has no more ends and receivers than copies, and its events need a publish. Messages from
# before the journal are known only in part, and so are those that are not stored and came just
# before a kill: what happened to stored receivers was stored, and their publish was not.
_OF_MESSAGES = (
    _Fault("too_many_ends", f"ends > room and {_IS_KNOWN}", "ends - room", "more ends than copies"),
    _Fault(
        "too_many_receivers",
        f"receivers > room and {_IS_KNOWN}",
        "receivers - room",
        "more than copies",
    ),
    _Fault("not_published", f"others > 0 and {_IS_UNKNOWN}", "others", "nobody published it"),
)


def _any(faults: Iterable[_Fault]) -> str:
    return " or ".join(f"({fault.is_so})" for fault in faults)


def examine(tables: Tables, name: str, events: str) -> bool:
    """Return whether messages and their copies have faults; materialize the faults as `name`.

    Faults are rare: a first check of all messages treats the journal as complete and every copy as
    one that stays with its receiver, and a second one examines only those with faults.
    """
    # Spark then keeps the copies of a message together.
    tables.define(
        "events_of_messages",
        f"select /*+ repartition(msg, origin) */ * from {{{events}}} where msg is not null",
    )
    tables.define(
        "copies",
        f"select *, false as is_old, false as is_moved from ({_copies('events_of_messages')})",
    )
    of_messages = f"select msg from ({_messages('copies')}) where is_faulty or {_any(_OF_MESSAGES)}"
    tables.materialize("suspects", of_messages)
    if not _is_there(tables, "suspects"):
        return False
    tables.define(
        "events_of_suspects",
        "select /*+ broadcast(few) */ event.* from {events_of_messages} event "
        "semi join {suspects} few using (msg)",
    )
    tables.materialize("suspect_copies", _SUSPECT_COPIES)
    tables.materialize("suspect_messages", _messages("suspect_copies"))
    tables.materialize(name, _FAULTS)
    return _is_there(tables, name)


def _is_there(tables: Tables, name: str) -> bool:
    return bool(tables.ask(f"select * from {{{name}}}", 1).rows)


def _copies(events: str) -> str:
    """Return the question for the events of each copy, in numbers.

    The message itself counts as a copy without a receiver. A message that moved to another queue
    may return. A receiver that had a message may get another's copy of it, which enters. A message
    made from an imported or edited letter begins with its replay.
    Clocks may jump and frames may overtake each other, but not both at the same time.
    """
    return f"""
    select msg, origin, receiver,
        count(case when kind = '{Kind.PUBLISHED}' then 1 end) as published,
        coalesce(sum(copies), 0) as copies,
        coalesce(sum(case when kind = '{Kind.PUBLISHED}' then kept end), 0) as stored,
        case when min(case when {_IS_REPLAY} then ts end) <= min(case when {_IS_OTHER} then ts end)
            then 0 else count(case when {_IS_OTHER} then 1 end) end as others,
        count(case when {_IS_REPLAY} then 1 end) as replayed,
        greatest(
            1 + count(case when kind in {words(Kind.REPLAYED, Kind.MOVED)} then 1 end),
            case when min(case when {_IS_ENTRY} then ts end) > min(ts) then 1 else 0 end
                + count(case when kind in {words(Kind.REPLAYED, Kind.ENTERED)} then 1 end)
        ) as lives,
        count(case when kind = '{Kind.HANDED}' then 1 end) as firsts,
        count(case when kind = '{Kind.REDELIVERED}' then 1 end) as repeats,
        count(case when kind = '{Kind.MOVED}' then 1 end) as moves,
        count(case when {_IS_TAKEN_BACK} then 1 end)
            + case when receiver like 'work:%' then greatest(0,
                count(case when kind = '{Kind.MOVED}' then 1 end)
                - count(case when {_IS_ENTRY} then 1 end) - 1) else 0 end as taken_back,
        case when count(case when {_IS_ENTRY} and kept = 0 then 1 end) > 0
            then count(case when {_IS_END} and kind <> '{Kind.MOVED}' then 1 end)
            else 0 end as lent,
        count(case when kind = '{Kind.ACKED}' then 1 end) as acks,
        count(case when {_IS_END} then 1 end) as ends,
        coalesce(max(case when {_IS_HANDED} then ts end) > max(case when {_IS_END} then ts end)
            and max(case when {_IS_HANDED} then seq end) > max(case when {_IS_END} then seq end),
            false) as is_later
    from {{{events}}} group by msg, origin, receiver
    """


def _messages(copies: str) -> str:
    """Return the question for the copies of each message, in numbers.

    A copy that moves ends in one queue and goes on in another one, which is another receiver. Work
    that was taken back goes on, although the receiver may have done it before its worker ended. If
    the worker of the queue ended, too, nothing tells of the return: work leaves it once more.
    """
    return f"""
    select msg, origin, is_old, cast(null as string) as receiver,
        sum(published) as published,
        sum(copies) + sum(replayed) + sum(moves) + least(sum(taken_back), sum(lent)) as room,
        sum(ends) as ends,
        count(receiver) as receivers, sum(others) as others,
        bool_or({_any(_OF_COPIES)}) as is_faulty
    from {{{copies}}} group by msg, origin, is_old
    """


def _found(faults: Iterable[_Fault], table: str) -> Iterator[str]:
    for kind, is_so, number, text in faults:
        yield f"""
        select '{kind}' as kind, origin as node, msg, receiver, {_NEVER} as since,
            {_NEVER} as until, cast({number} as bigint) as number, '{text}' as what
        from {{{table}}} where {is_so}
        """


_FAULTS = " union all ".join(
    [*_found(_OF_COPIES, "suspect_copies"), *_found(_OF_MESSAGES, "suspect_messages")]
)
# Of a message that is stored for all its receivers, everything is known.
_SUSPECT_COPIES = f"""
    with unsure as (
        select distinct msg, true as is_in_gap
        from {{suspects}} join {{gaps}} on msg >= since_us * 1000 and msg <= until_us * 1000
    ),
    placed as (
        select copies.*, sum(stored) over (partition by msg, origin) > 0
            and sum(stored) over (partition by msg, origin)
                >= sum(copies) over (partition by msg, origin) as is_stored,
            max(moves) over (partition by msg, origin) > 0 as is_moved
        from ({_copies("events_of_suspects")}) copies
    )
    select placed.*, coalesce(msg < coalesce(begin_us, known_us) * 1000, false)
        or coalesce(is_in_gap, false) and not is_stored as is_old
    from placed left join {{reach}} using (origin) left join unsure using (msg)
        cross join {{beginning}}
"""
