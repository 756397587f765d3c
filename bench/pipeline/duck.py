"""The same with DuckDB, on the same Parquet: lives, latency, dead letters, poison and audit."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import duckdb

_ENDS = "('acked', 'written', 'dead', 'expired', 'discarded')"
_HANDED = "('handed', 'redelivered', 'written')"
_OF_A_LIFE = f"""
    min(ts) filter (kind in {_HANDED}) as handed_ts,
    max(ts) filter (kind in {_ENDS}) as ended_ts,
    coalesce(arg_max(kind, ts) filter (kind in {_ENDS}), 'open') as state,
    max(attempt) as attempts,
    count(*) filter (kind = 'redelivered') as redelivered,
    count(*) filter (kind = 'refused') as refused,
    arg_max(code, ts) as code,
    max(letter) as letter,
    max(fingerprint) as fingerprint
"""
_LIVES = f"""
create table life as
with replayed as (
    select distinct msg, origin, receiver from events where kind = 'replayed'
),
once as (
    select msg, origin, receiver, 0 as generation, {_OF_A_LIFE}
    from events anti join replayed using (msg, origin, receiver)
    where receiver is not null and msg is not null
    group by all
),
ordered as (
    select * replace (coalesce(last_value(generation ignore nulls) over (
        partition by msg, origin, receiver order by ts, kind <> 'replayed', seq, pos
    ), 0) as generation)
    from events semi join replayed using (msg, origin, receiver)
),
again as (
    select msg, origin, receiver, generation, {_OF_A_LIFE} from ordered group by all
),
known as (
    select msg, origin, max(channel) as channel from events
    where kind in ('published', 'replayed') group by all
)
select * from (from once union all by name from again) left join known using (msg, origin)
"""  # noqa: S608 - nothing in it is from elsewhere
_LATENCY = """
select channel, count(*), quantile_cont(epoch_us(handed_ts) - msg // 1000, [0.5, 0.95, 0.99])
from life where handed_ts is not null and state <> 'open' group by channel order by 2 desc
"""
_DEAD = """
select code, channel, fingerprint, count(*), approx_count_distinct(receiver), min(ended_ts)
from life where state = 'dead' group by all order by 4 desc
"""
_POISON = """
select msg, origin, count(distinct receiver) as receivers,
    count(distinct receiver) filter (state = 'dead') as dead
from life where state <> 'open' group by all having dead >= 3 and dead >= 0.8 * receivers
"""
_AUDIT = f"""
with copies as (
    select 1 + count(*) filter (kind = 'replayed') as lives,
        count(*) filter (kind in {_ENDS}) as ends,
        count(*) filter (kind = 'handed') as firsts,
        max(ts) filter (kind in ('handed', 'redelivered')) > max(ts) filter (kind in {_ENDS})
            and max(seq) filter (kind in ('handed', 'redelivered'))
            > max(seq) filter (kind in {_ENDS}) as is_later
    from events where msg is not null and receiver is not null group by msg, origin, receiver
),
messages as (
    select count(*) filter (kind = 'published') as published, sum(copies) as copies,
        count(*) filter (kind = 'replayed') as replayed,
        count(*) filter (kind in {_ENDS}) as ends
    from events where msg is not null group by msg, origin
)
select
    (select count(*) from copies where ends > lives or firsts > lives or ends >= lives and is_later)
    + (select count(*) from messages where published = 0 or ends > copies + replayed)
    + (select count(*) from events where kind like 'frame.%')
"""  # noqa: S608 - nothing in it is from elsewhere


def life_cycle(events: Sequence[Path], place: Path, threads: int) -> dict[str, Any]:
    """Seconds for each part, and how many lives there are in each state."""
    base = duckdb.connect(config={"threads": threads, "preserve_insertion_order": False})
    base.read_parquet([*map(str, events)], hive_partitioning=False).create_view("events")
    parts = {"lives": _LIVES, "write": _copy(place)}
    parts |= {"latency": _LATENCY, "dead": _DEAD, "poison": _POISON, "audit": _AUDIT}
    took: dict[str, Any] = {}
    for name, query in parts.items():
        begin = perf_counter()
        base.execute(query).fetchall()
        took[name] = round(perf_counter() - begin, 2)
    took["lives"] = round(took["lives"] + took.pop("write"), 2)
    closed = "select state, count(*) from life where state <> 'open' group by all"
    return took | {"states": dict(base.execute(closed).fetchall())}


def _copy(place: Path) -> str:
    return (
        f"copy life to '{place}/life' (format parquet, compression zstd, partition_by (state), "
        "overwrite_or_ignore true)"
    )
