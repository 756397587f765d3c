"""The number of messages, and their outcomes."""

from holdfast.pipeline.copies import HAND_OVERS, LAST_ENDS
from holdfast.pipeline.reports.sums import COUNTS

_ENDS = ", ".join(map(repr, LAST_ENDS))
_HANDED = ", ".join(map(repr, HAND_OVERS))

_COUNTS = ", ".join(f"cast(coalesce(sum({name}), 0) as bigint) as {name}" for name in COUNTS)
# By channel: publishes, copies, and the number of each end. A copy is one message for one receiver,
# or for a work queue; that it moves to another worker or session makes no other copy, and neither
# does the end of a delay. `lost` copies were in the memory of a process that ended. Messages from
# before the journal are omitted, because their ends may be known but not their copies. If frames
# are missing, there may be more ends than copies.
FUNNEL = f"""
    with counted as (
        select channel, {_COUNTS}, cast(coalesce(sum(n), 0) as bigint) as lost
        from (
            select channel, {", ".join(COUNTS)}, 0 as n from {{sums}}
            union all
            select channel, {", ".join(f"0 as {name}" for name in COUNTS)}, n from {{lost}}
        ) group by channel
    )
    select channel, published, copies, replayed, moves, handed, acked, dead, expired, discarded,
        lost,
        greatest(copies + replayed - ended - lost, in_flight) as open,
        round(try_divide(acked, copies + replayed), 4) as share
    from counted order by copies desc, channel
"""

# By minute and node, the newest first. A message that is stored for some of its receivers only is
# published twice; only the first event has its size.
THROUGHPUT = f"""
    select date_trunc('minute', ts) as minute, node,
        count(case when kind = 'published' and size > 0 then 1 end) as published,
        cast(coalesce(sum(copies), 0) as bigint) as copies,
        cast(coalesce(sum(size), 0) as bigint) as bytes,
        count(case when kind in ({_HANDED}) then 1 end) as handed,
        count(case when kind in ({_ENDS}) then 1 end) as ended,
        count(case when kind = 'dead' then 1 end) as dead
    from {{events}} where msg is not null
    group by date_trunc('minute', ts), node order by minute desc, node
"""

# By hour, the newest first: the copies that began and ended, the maximum that was open at the end
# of a minute, and those open at the end of the hour. Messages from before the journal are omitted.
BACKLOG = f"""
    with known as (
        select timestamp_micros(cast((msg - msg % 1000) / 1000 as bigint)) as ts, copies as came,
            0 as went, msg, origin
        from {{publishes}}
        union all
        select ts, case when kind = 'replayed' then 1 else 0 end as came,
            case when kind = 'replayed' then 0 else 1 end as went, msg, origin
        from {{events}}
        where kind = 'replayed' or kind in ({_ENDS})
    ),
    changes as (
        select ts, came, went from known left join {{begins}} using (origin)
        where begin_us is null or msg >= begin_us * 1000
        union all
        select found_ts as ts, 0 as came, n as went from {{lost}}
    ),
    minutes as (
        select date_trunc('minute', ts) as minute, sum(came) as came, sum(went) as went
        from changes group by date_trunc('minute', ts)
    ),
    levels as (
        select minute, came, went, sum(came - went) over (order by minute) as waiting from minutes
    )
    select date_trunc('hour', minute) as hour, cast(sum(came) as bigint) as came,
        cast(sum(went) as bigint) as went, cast(max(waiting) as bigint) as most,
        cast(max_by(waiting, minute) as bigint) as waiting
    from levels group by date_trunc('hour', minute) order by hour desc
"""

# By publishing session, those with the most bytes first: its messages, their copies, and its
# busiest minute. The server publishes without a session.
PUBLISHERS = """
    with minutes as (
        select sender, date_trunc('minute', ts) as minute,
            count(case when size > 0 then 1 end) as published,
            cast(sum(copies) as bigint) as copies, cast(sum(size) as bigint) as bytes
        from {events} where kind = 'published' group by sender, date_trunc('minute', ts)
    )
    select sender, cast(sum(published) as bigint) as published,
        cast(sum(copies) as bigint) as copies, cast(sum(bytes) as bigint) as bytes,
        max(published) as most_per_minute,
        max_by(minute, (published, -unix_micros(minute))) as busiest
    from minutes group by sender order by bytes desc, published desc, sender
"""

_HOUR_US = 3_600_000_000
_PUBLISHED_US = "cast((msg - msg % 1000) / 1000 as bigint)"
# By channel, the most waiting first: the copies that are open at the time of the newest event, an
# hour before and a day before; those that came and went in the last hour; and when none will be
# left if that goes on. Messages from before the journal are omitted.
TREND = f"""
    with replayed as (
        select distinct msg, origin, channel from {{life}} where replay_of is not null
    ),
    known as (
        select channel, {_PUBLISHED_US} as us, copies as came, 0 as went, msg, origin
        from {{publishes}}
        union all
        select replayed.channel, unix_micros(ts) as us, 1 as came, 0 as went, msg, origin
        from (select msg, origin, ts from {{events}} where kind = 'replayed') event
            join replayed using (msg, origin)
        union all
        select channel, unix_micros(ended_ts) as us, 0 as came, 1 as went, msg, origin
        from {{life}} where state in ({_ENDS})
    ),
    changes as (
        select channel, us, came, went from known left join {{begins}} using (origin)
        where begin_us is null or msg >= begin_us * 1000
        union all
        select channel, unix_micros(found_ts) as us, 0 as came, n as went from {{lost}}
    ),
    newest as (select max(unix_micros(ts)) as last_us from {{events}}),
    levels as (
        select channel, last_us, cast(sum(came - went) as bigint) as waiting,
            cast(sum(case when us <= last_us - {_HOUR_US} then came - went else 0 end) as bigint)
                as hour_before,
            cast(sum(case when us <= last_us - 24 * {_HOUR_US} then came - went else 0 end)
                as bigint) as day_before,
            cast(sum(case when us > last_us - {_HOUR_US} then came else 0 end) as bigint) as came,
            cast(sum(case when us > last_us - {_HOUR_US} then went else 0 end) as bigint) as went
        from changes cross join newest group by channel, last_us
    )
    select channel, waiting, hour_before, day_before, came, went,
        case when waiting > 0 and went > came then timestamp_micros(last_us
            + cast(floor(waiting * {_HOUR_US} / (went - came)) as bigint)) end as empty
    from levels where waiting <> 0 or hour_before <> 0 or day_before <> 0 or came > 0 or went > 0
    order by waiting desc, channel
"""
