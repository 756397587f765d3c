"""Latencies of messages to their receivers, of receivers to their acks, and both together, in ms.

A percentile is the smallest time that the percentage of all copies does not exceed; it is read from
a histogram whose times are within one percent: see holdfast.pipeline.latencies.
"""


def _question(by: str, order: str) -> str:
    return f"""
    with merged as (
        select {by}, what, us, sum(n) as n from {{latency}} group by {by}, what, us
    ),
    added as (
        select {by}, what, us, sum(n) over (partition by {by}, what order by us) as upto,
            sum(n) over (partition by {by}, what) as total
        from merged
    )
    select {by}, {_total("delivery")} as n, {_times("delivery")},
        {_total("answer")} as acked, {_times("answer")}, {_times("critical")}
    from added group by {by} order by {order}
"""


def _total(what: str) -> str:
    return f"cast(coalesce(max(case when what = '{what}' then total end), 0) as bigint)"


def _times(what: str) -> str:
    least = ", ".join(
        f"min(case when what = '{what}' and upto * 100 >= total * {part} then us end) / 1000 "
        f"as {what}_p{part}"
        for part in (50, 95, 99)
    )
    most = f"max(case when what = '{what}' then us end) / 1000 as {what}_max"
    return f"{least}, {most}"


# By channel, the busiest first.
LATENCY = _question("channel", "n desc, channel")
# By hour of publish, the newest first, and channel.
BY_HOUR = _question("hour, channel", "hour desc, n desc, channel")
