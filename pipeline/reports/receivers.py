"""Reports on receivers: redelivery, lost contact, and advice on delays."""

# By channel and receiver with redeliveries or refusals, the most first. A copy may move to the same
# receiver several times.
REDELIVERY = """
    with copies as (
        select channel, receiver, sum(redelivered) as redelivered, sum(refused) as refused,
            max(attempts) as attempts
        from {life} where handed_ts is not null
        group by channel, receiver, msg, origin, generation
    ),
    counts as (
        select channel, receiver, count(*) as copies,
            count(case when redelivered > 0 then 1 end) as repeated,
            cast(sum(redelivered) as bigint) as redeliveries,
            cast(sum(refused) as bigint) as refusals, max(attempts) as attempts
        from copies group by channel, receiver
    )
    select *, round(repeated / copies, 4) as share from counts
    where redeliveries > 0 or refusals > 0
    order by redeliveries desc, refusals desc, receiver, channel
"""

# Receivers that lost contact three times with pauses of less than ten minutes. A loss after a start
# of the server, before they have come back, is not theirs: it had ended their connections.
FLAPPING = """
    with contacts as (
        select receiver, ts, what, unix_micros(ts) as us,
            lag(what) over (partition by receiver order by ts) as before
        from {events} where kind in ('session', 'dispatcher') and what in
            ('polling', 'dead', 'left', 'expired', 'taken_over', 'given_up', 'resumed', 'alive')
    ),
    losses as (
        select receiver, ts, what, us,
            us - lag(us) over (partition by receiver order by us) as rest
        from contacts
        where what not in ('resumed', 'alive') and coalesce(before, '') <> 'resumed'
    ),
    numbered as (
        select receiver, ts, what, sum(case when rest >= 600000000 then 1 else 0 end)
            over (partition by receiver order by us) as number
        from losses
    )
    select receiver, min(ts) as first, max(ts) as last, count(*) as losses,
        array_join(array_sort(collect_set(what)), ' ') as how
    from numbered group by receiver, number having count(*) >= 3
    order by losses desc, receiver, first
"""

# By channel: the success of later hand-overs, and advice on the delay and the retries. The delay is
# the time in which nine of ten successful messages got through, divided by their attempts; the
# retries are the attempts that sufficed for 99 of 100. A message that is held back after a refusal
# may be handed over again without a new attempt. Messages that returned because another one failed
# did not fail. What another receiver of the same copy did counts: a copy moves within its subject,
# and has a life in each queue. All lives of work belong to one copy.
HOLDBACK_ADVICE = """
    with failed as (
        select msg, origin, generation,
            max(case when receiver like 'work:%' then 'work:' end) as work
        from {life} group by msg, origin, generation having sum(refused) > 0
    ),
    copies as (
        select max(channel) as channel, sum(refused) as refused, max(attempts) as attempts,
            unix_micros(max(ended_ts)) - unix_micros(min(handed_ts)) as took,
            count(case when state not in ('open', 'moved') then 1 end) as ends,
            count(case when state in ('acked', 'written') then 1 end) > 0 as is_through
        from {life} join failed using (msg, origin, generation)
        group by msg, origin, generation, case when work is not null then work
            when state = 'moved' or former is not null then regexp_replace(receiver, '/[^/]*$', '')
            else receiver end
    ),
    tried as (
        select channel, attempts, is_through, took, greatest(attempts - 1, 1) as extra
        from copies where ends > 0 and refused > 0 and (attempts > 1 or is_through)
    ),
    counts as (
        select channel, count(*) as retried, count(case when is_through then 1 end) as succeeded,
            round(percentile_cont(0.5) within group
                (order by case when is_through then took end) / 1000, 3) as success_p50,
            round(percentile_cont(0.9) within group
                (order by case when is_through then took / extra end) / 1000, 3) as backoff,
            cast(ceil(percentile_cont(0.99) within group
                (order by case when is_through then attempts end)) as bigint) as max_attempts
        from tried group by channel
    )
    select *, round(succeeded / retried, 4) as share from counts order by retried desc, channel
"""

# By receiver: the time from a hand-over to the ack, the slowest first. Receivers with less than ten
# acks are omitted.
SLOW_RECEIVERS = """
    with answers as (
        select receiver, channel, (unix_micros(ended_ts) - unix_micros(handed_ts)) / 1000 as ms
        from {life} where state = 'acked' and handed_ts is not null
    )
    select receiver, count(*) as acked, count(distinct channel) as channels,
        round(percentile_cont(0.5) within group (order by ms), 3) as ack_p50,
        round(percentile_cont(0.95) within group (order by ms), 3) as ack_p95,
        round(max(ms), 3) as ack_max
    from answers group by receiver having count(*) >= 10
    order by ack_p95 desc, receiver
"""

# By hour, the newest first, and receiver: how far behind it was when it acked messages, from the
# publish of each. Replays do not count: an operator decided when they happened.
LAG = """
    with ended as (
        select date_trunc('hour', ended_ts) as hour, receiver,
            greatest(unix_micros(ended_ts) - published_us, 0) / 1000 as ms
        from {life} where state in ('acked', 'written') and generation = 0
    )
    select hour, receiver, count(*) as acked,
        round(percentile_cont(0.5) within group (order by ms), 3) as lag_p50,
        round(percentile_cont(0.95) within group (order by ms), 3) as lag_p95,
        round(max(ms), 3) as lag_max
    from ended group by hour, receiver order by hour desc, lag_p95 desc, receiver
"""
