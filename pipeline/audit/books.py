"""Compares a node's own counters with the sums of its events."""

from holdfast.journal.schema import BOOKS, Kind
from holdfast.pipeline.audit.ledger import words

_ENDS = " + ".join(f"coalesce({name}, 0)" for name in BOOKS if name != "accepted")
# The counter of each sum; `restored` has the entries that the node found in the store at its start.
_SUMS = {
    **{name: f"kind in {words(*kinds)}" for name, kinds in BOOKS.items()},
    "dropped": f"kind = '{Kind.DROPPED}'",
    "restored": f"kind = '{Kind.BOOKS}' and what = 'restored'",
}
# The number of copies that a row of the ledger is about, or of events that it counts.
_AMOUNT = f"""case when kind = '{Kind.PUBLISHED}' then coalesce(copies, 0)
        when kind in {words(Kind.BOOKS, Kind.DROPPED)} then number else events end"""
_ALL_SUMS = ", ".join(
    f"sum(case when {is_so} then amount end) as {n}" for n, is_so in _SUMS.items()
)
_OF_EVENTS = " ".join(f"when '{name}' then coalesce({name}, 0)" for name in BOOKS)

# Runs whose last counters differ from their events. A run begins with the start of the process, or,
# if that is gone, with the first remaining counters. Events that a node counted as dropped may be
# missing, and may be reported later. All other events that counters include are in earlier frames.
# Without events about the store, open copies cannot be compared.
UNBALANCED = f"""
    with own as (
        select *, regexp_replace(epoch, '-[^-]*$', '') as seed, {_AMOUNT} as amount from {{ledger}}
    ),
    starts as (
        select node, seed, seq as first_seq from own where kind = '{Kind.NODE}' and what = 'start'
    ),
    first_starts as (
        select node, seed, min(first_seq) as start_seq from starts group by node, seed
    ),
    begins as (
        select node, seed, first_seq from starts
        union all
        select node, seed, min(seq) as first_seq
        from own left join first_starts using (node, seed)
        where kind = '{Kind.BOOKS}' and what <> 'restored'
            and (start_seq is null or seq < start_seq)
        group by node, seed
    ),
    ends as (
        select node, seed, seq as last_seq, max(first_seq) as first_seq
        from own join begins using (node, seed)
        where kind = '{Kind.BOOKS}' and first_seq <= seq group by node, seed, seq
    ),
    runs as (
        select node, seed, first_seq, max(last_seq) as last_seq
        from ends group by node, seed, first_seq
    ),
    counted as (
        select node, seed, first_seq, what, max(until) as until, max_by(number, pos) as number
        from own join runs using (node, seed)
        where kind = '{Kind.BOOKS}' and seq = last_seq group by node, seed, first_seq, what
    ),
    counted_before as (
        select node, seed, first_seq, what, max_by(number, pos) as before
        from own join runs using (node, seed)
        where kind = '{Kind.BOOKS}' and what <> 'restored' and seq = first_seq
        group by node, seed, first_seq, what
    ),
    sums as (
        select node, seed, first_seq, min(since) as since, {_ALL_SUMS}
        from own join runs using (node, seed)
        where seq >= first_seq and (seq < last_seq or kind = '{Kind.DROPPED}')
        group by node, seed, first_seq
    ),
    compared as (
        select node, what, since, until, number - coalesce(before, 0) as number,
            coalesce(dropped, 0) as dropped,
            case what {_OF_EVENTS} when 'open' then restored + coalesce(accepted, 0) - ({_ENDS}) end
            as of_events
        from counted left join counted_before using (node, seed, first_seq, what)
            left join sums using (node, seed, first_seq)
    )
    select concat('books_', what) as kind, node, cast(null as bigint) as msg,
        cast(null as string) as receiver, since, until,
        cast(of_events - number as bigint) as number,
        concat('the events are ', cast(of_events as string), ', the node counted ',
            cast(number as string)) as what
    from compared where abs(of_events - number) > dropped
"""
