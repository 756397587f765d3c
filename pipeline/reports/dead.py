"""Why messages died, and which messages no receiver can process."""

# Similar deaths are a group, the most frequent first.
DEAD = """
    select code, channel, fingerprint, count(*) as dead, count(distinct receiver) as receivers,
        min(ended_ts) as first, max(ended_ts) as last
    from {life} where state = 'dead'
    group by code, channel, fingerprint
    order by dead desc, code, channel, fingerprint
"""

# Similar failures, with the number of their channels, and one of them as an example: a star
# replaces words with a digit.
_EXAMPLE = "regexp_replace(channel, '[A-Za-z0-9_~-]*[0-9][A-Za-z0-9_~-]*', '*')"
CAUSES = f"""
    with failed as (
        select msg, origin, receiver, kind, code, wording, ts from {{events}}
        where kind in ('refused', 'dead') and code is not null
    ),
    channels as (
        select msg, origin, max(channel) as channel from {{life}}
        where refused > 0 or state = 'dead' group by msg, origin
    )
    select code, wording, count(case when kind = 'refused' then 1 end) as refusals,
        count(case when kind = 'dead' then 1 end) as dead,
        count(distinct receiver) as receivers, count(distinct channel) as channels,
        min({_EXAMPLE}) as example, min(ts) as first, max(ts) as last
    from failed left join channels using (msg, origin)
    group by code, wording order by refusals desc, dead desc, code, wording
"""

# Messages that became dead letters for at least three receivers, and for four of five. Few messages
# die that often; so only for these are all receivers examined.
POISON = """
    with suspects as (
        select msg, origin from {life} where state = 'dead'
        group by msg, origin having count(*) >= 3
    ),
    fates as (
        select msg, origin, max(channel) as channel, count(distinct receiver) as receivers,
            count(distinct case when state = 'dead' then receiver end) as dead,
            max(case when state = 'dead' then code end) as code
        from {life} semi join suspects using (msg, origin)
        where state not in ('open', 'moved') group by msg, origin
    )
    select msg, origin, channel, receivers, dead, code, round(dead / receivers, 4) as share
    from fates where dead >= 3 and dead >= 0.8 * receivers
    order by dead desc, share desc, msg, origin
"""
