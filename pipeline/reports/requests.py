"""The outcome of requests."""

# By channel, the most asked first: how requests ended, the time until their answer in ms, and
# replies that came too late or twice. Replies of sessions that were not asked have no channel.
REQUESTS = """
    with happened as (
        select channel, kind, what, number / 1000 as ms
        from {events} where kind in ('request', 'reply')
    ),
    counts as (
        select channel, count(case when kind = 'request' and what = 'asked' then 1 end) as asked,
            count(case when what = 'answered' then 1 end) as answered,
            count(case when what = 'no_responders' then 1 end) as no_responders,
            count(case when what = 'timeout' then 1 end) as timeout,
            count(case when what = 'refused' then 1 end) as refused,
            count(case when what = 'abandoned' then 1 end) as abandoned,
            count(case when what = 'unsent' then 1 end) as unsent,
            round(percentile_cont(0.5) within group
                (order by case when what = 'answered' then ms end), 3) as answer_p50,
            round(percentile_cont(0.95) within group
                (order by case when what = 'answered' then ms end), 3) as answer_p95,
            round(percentile_cont(0.99) within group
                (order by case when what = 'answered' then ms end), 3) as answer_p99,
            count(case when what = 'late' then 1 end) as late,
            count(case when what = 'duplicate' then 1 end) as duplicate,
            count(case when what = 'denied' then 1 end) as denied
        from happened group by channel
    )
    select *, round(try_divide(answered, asked), 4) as share from counts
    order by asked desc, channel
"""
