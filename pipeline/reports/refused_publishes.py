"""Publishes that the server refused."""

# By reason and channel, the most first. The reason is the name of the error in the reply. The
# server counts within a minute, so times are up to a minute late. Without a channel, a message
# named none that exists, or too many channels were refused within a minute.
REFUSED_PUBLISHES = """
    select what as reason, channel, cast(sum(number) as bigint) as refused, min(ts) as first,
        max(ts) as last
    from {events} where kind = 'publishes_refused'
    group by what, channel order by refused desc, reason, channel
"""
