"""The tables that reports read, as views of the lake's tables, narrowed to a scope."""

from holdfast.pipeline.copies import REPLIES, REPLY_CHANNELS
from holdfast.pipeline.lake import OPEN
from holdfast.pipeline.reports.sums import CHANNEL, SUMS
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.schemas import ANSWER, CRITICAL, DELIVERY
from holdfast.pipeline.scope import Scope

# The views of all rows, and the tables of the lake that have them; copies in `open` have no end.
PARTS = {
    "all_events": ("events",),
    "all_life": ("life", OPEN),
    "all_latency": ("latency",),
    "all_lost": ("lost",),
}
_PUBLISHES = (
    f"select msg, origin, {CHANNEL} as channel, size, copies from {{events}} "
    "where kind = 'published'"
)
# For one receiver, each message is one copy, unless it moved on.
_PUBLISHES_TO_ONE = """
    select msg, origin, channel, 1 as size, 1 as copies
    from {life} where replay_of is null and state <> 'moved'
"""
# The rows of `latency` for a scope: the table itself has neither receivers nor minutes.
_LATENCY = f"""
    select date_trunc('hour', timestamp_micros(published_us)) as hour, channel,
        '{DELIVERY}' as what, greatest(unix_micros(handed_ts) - published_us, 0) as us, 1 as n
    from {{life}} where handed_ts is not null and generation = 0 and state <> 'open'
        and coalesce(former, 0) = 0
    union all
    select date_trunc('hour', timestamp_micros(published_us)) as hour, channel,
        '{ANSWER}' as what,
        greatest(unix_micros(ended_ts) - unix_micros(handed_ts), 0) as us, 1 as n
    from {{life}} where handed_ts is not null and generation = 0 and state = 'acked'
    union all
    select date_trunc('hour', timestamp_micros(published_us)) as hour, channel,
        '{CRITICAL}' as what, greatest(unix_micros(ended_ts) - published_us, 0) as us, 1 as n
    from {{life}} where handed_ts is not null and generation = 0 and state = 'acked'
"""
# The time of the first events of each node: older messages may be known only in part.
_BEGINS = """
    select node as origin, min(unix_micros(ts)) as begin_us
    from {all_events} where seq is not null group by node
"""


def narrow(tables: Tables, scope: Scope) -> None:
    """Define the tables that reports read, from all rows: `all_events` and so on."""
    channel = scope.channel
    if channel is not None and channel.startswith(REPLIES):
        channel = REPLY_CHANNELS
    tables.add("scope", "channel string, receiver string", [(channel, scope.receiver)])
    tables.define("life", _life(scope))
    tables.define("events", _events(scope))
    tables.define("begins", _BEGINS)
    tables.define("publishes", _PUBLISHES if scope.receiver is None else _PUBLISHES_TO_ONE)
    tables.define("latency", "select * from {all_latency}" if scope.is_everything else _LATENCY)
    tables.define("lost", _lost(scope))
    tables.define("sums", SUMS)


def _conditions(scope: Scope, *names: str) -> list[str]:
    """Return the conditions on these columns."""
    given = [name for name in names if getattr(scope, name) is not None]
    return [f"{name} = (select {name} from {{scope}})" for name in given]


def _where(*conditions: str) -> str:
    return " and ".join(conditions)


def _life(scope: Scope) -> str:
    where = _where(scope.messages, *_conditions(scope, "channel", "receiver"))
    # Nanoseconds are too large for floating-point division.
    published = "cast((msg - msg % 1000) / 1000 as bigint) as published_us"
    return f"select *, {published} from {{all_life}} where {where}"


def _events(scope: Scope) -> str:
    if scope.is_everything:
        return "select * from {all_events}"
    # Engines can then skip earlier days; events without a time belong to no day.
    is_recent = f"coalesce(cast(d as string), '9') >= '{scope.first_day or 0}'"
    of_messages = [is_recent, scope.messages, "msg is not null"]
    others = [is_recent, scope.times, "msg is null", *_conditions(scope, "receiver")]
    if scope.receiver is not None:
        of_messages.append("(kind = 'published' or receiver = (select receiver from {scope}))")
        of_messages.append("(msg, origin) in (select msg, origin from {life})")
    elif scope.channel is not None:
        # Acks do not name the channel.
        of_messages.append(f"(msg, origin) in ({_on_channel(scope)})")
    if scope.channel is not None:
        of_sessions = "channel is null and receiver in (select receiver from {life})"
        others.append(f"({of_sessions} or channel = (select channel from {{scope}}))")
    about_messages = f"select * from {{all_events}} where {_where(*of_messages)}"
    about_others = f"select * from {{all_events}} where {_where(*others)}"
    return f"{about_messages} union all {about_others}"


def _on_channel(scope: Scope) -> str:
    where = _where(
        scope.messages,
        "kind in ('published', 'replayed')",
        f"{CHANNEL} = (select channel from {{scope}})",
    )
    return f"select msg, origin from {{all_events}} where {where}"


def _lost(scope: Scope) -> str:
    times = scope.times.replace("(ts)", "(found_ts)")
    # The receivers of lost copies are unknown.
    known = ["false"] if scope.receiver is not None else _conditions(scope, "channel")
    return f"select * from {{all_lost}} where {_where(times, *known)}"
