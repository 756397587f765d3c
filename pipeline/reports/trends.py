"""Compares days and hours with similar ones."""

_HOUR_US, _DAY_US = 3_600_000_000, 86_400_000_000


def _number(us: str, unit: int) -> str:
    """Return the hour or day of a time, counted since 1970."""
    return f"cast(({us} - {us} % {unit}) / {unit} as bigint)"


_SENT_US = "cast((msg - msg % 1000) / 1000 as bigint)"
# The time that 95 of 100 hand-overs did not exceed, in ms.
_P95 = "min(case when upto * 100 >= total * 95 then us end) / 1000"


def _delivery(by: str) -> str:
    """Return the question for the histograms of hand-overs, added up."""
    return f"""
    select {by}, us, sum(n) over (partition by {by} order by us) as upto,
        sum(n) over (partition by {by}) as total
    from (
        select {by}, us, sum(n) as n from (
            select *, {_number("unix_micros(hour)", _HOUR_US)} as number,
                {_number("unix_micros(hour)", _DAY_US)} as day_number
            from {{latency}} where what = 'delivery'
        ) group by {by}, us
    )
    """


# By day of publish, the newest first, with the ratio to the day before and to the same day of the
# week before. The newest day may not be over.
DAYS = f"""
    with sent as (
        select {_number(_SENT_US, _DAY_US)} as day_number,
            count(case when size > 0 then 1 end) as published,
            cast(sum(copies) as bigint) as copies
        from {{publishes}} group by {_number(_SENT_US, _DAY_US)}
    ),
    ended as (
        select {_number("published_us", _DAY_US)} as day_number,
            count(case when state in ('acked', 'written') then 1 end) as acked,
            count(case when state = 'dead' then 1 end) as dead,
            count(case when state = 'due' then 1 end) as due
        from {{life}} group by {_number("published_us", _DAY_US)}
    ),
    took as (
        select day_number, {_P95} as delivery_p95 from ({_delivery("day_number")})
        group by day_number
    ),
    days as (
        select day_number, coalesce(published, 0) as published,
            coalesce(copies, 0) - coalesce(due, 0) as copies,
            coalesce(acked, 0) as acked, coalesce(dead, 0) as dead, delivery_p95
        from sent full join ended using (day_number) left join took using (day_number)
    )
    select timestamp_micros(days.day_number * {_DAY_US}) as day, days.published, days.copies,
        days.acked, days.dead, days.delivery_p95,
        round(try_divide(days.copies, before.copies), 4) as copies_to_day_before,
        round(try_divide(days.dead, before.dead), 4) as dead_to_day_before,
        round(try_divide(days.delivery_p95, before.delivery_p95), 4) as p95_to_day_before,
        round(try_divide(days.copies, week.copies), 4) as copies_to_week_before,
        round(try_divide(days.dead, week.dead), 4) as dead_to_week_before,
        round(try_divide(days.delivery_p95, week.delivery_p95), 4) as p95_to_week_before
    from days left join days before on before.day_number = days.day_number - 1
        left join days week on week.day_number = days.day_number - 7
    order by day desc
"""

# Hours that are unlike the same hour of other days, the most unlike first: messages and dead
# letters of a channel, and its p95. The usual value is the median of all days, and the spread is
# the median of the distances to it, so that an unusual day changes neither; 3.5 spreads or more are
# unusual. Counts always vary by about their square root, and times by a tenth. Hours without
# messages count, but not the first and the last, which may be incomplete. Channels with less than
# five days, or less than a message an hour, are omitted.
UNUSUAL = f"""
    with counted as (
        select channel, 'published' as measure, {_number(_SENT_US, _HOUR_US)} as number,
            cast(count(case when size > 0 then 1 end) as double) as n
        from {{publishes}} group by channel, {_number(_SENT_US, _HOUR_US)}
        union all
        select channel, 'dead' as measure, {_number("unix_micros(ended_ts)", _HOUR_US)} as number,
            cast(count(*) as double) as n
        from {{life}} where state = 'dead'
        group by channel, {_number("unix_micros(ended_ts)", _HOUR_US)}
    ),
    span as (select min(number) as first_hour, max(number) as last_hour from counted),
    known as (
        select channel, measure, first_hour, last_hour from counted cross join span
        group by channel, measure, first_hour, last_hour
        having max(n) >= 3.5 and (measure = 'dead' or sum(n) >= last_hour - first_hour)
    ),
    hours as (
        select channel, measure, explode(sequence(first_hour, last_hour)) as number from known
    ),
    found as (
        select channel, measure, number, coalesce(n, 0) as found,
            sqrt(coalesce(n, 0)) as noise
        from hours left join counted using (channel, measure, number)
        union all
        select channel, 'delivery_p95' as measure, number, {_P95} as found, {_P95} / 10 as noise
        from ({_delivery("channel, number")}) where total >= 10 group by channel, number
    ),
    usual as (
        select channel, measure, number % 24 as hour_of_day, count(*) as days,
            percentile_cont(0.5) within group (order by found) as usual,
            percentile_cont(0.5) within group (order by noise) as noise
        from found group by channel, measure, number % 24 having count(*) >= 5
    ),
    apart as (
        select found.channel, found.measure, number, found, usual, usual.noise, hour_of_day
        from found join usual on usual.channel = found.channel and usual.measure = found.measure
            and usual.hour_of_day = found.number % 24
    ),
    spreads as (
        select channel, measure, hour_of_day,
            greatest(1.4826 * percentile_cont(0.5) within group (order by abs(found - usual)),
                max(noise), 1) as spread
        from apart group by channel, measure, hour_of_day
    )
    select timestamp_micros(number * {_HOUR_US}) as hour, channel, measure,
        round(found, 3) as found, round(usual, 3) as usual, round(spread, 3) as spread,
        round((found - usual) / spread, 2) as spreads
    from apart join spreads using (channel, measure, hour_of_day) cross join span
    where abs(found - usual) >= 3.5 * spread and number > first_hour and number < last_hour
    order by abs((found - usual) / spread) desc, hour desc, channel, measure
"""
