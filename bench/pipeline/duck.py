"""Computes lives with DuckDB, from the same files of events."""

from collections.abc import Sequence
from pathlib import Path

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


def lives(events: Sequence[Path], place: Path) -> dict[str, int]:
    """Write the lives to a folder; return the number of lives in each state."""
    base = duckdb.connect(config={"preserve_insertion_order": False})
    base.read_parquet([*map(str, events)], hive_partitioning=False).create_view("events")
    base.execute(_LIVES)
    base.execute(
        f"copy life to '{place}/life' (format parquet, compression zstd, partition_by (state), "
        "overwrite_or_ignore true)"
    )
    return dict(
        base.execute(
            "select state, count(*) from life where state <> 'open' group by all"
        ).fetchall()
    )
