"""The counts that the funnel adds up; they are computed once for files that never change.

Files of events are grouped by their day, and files of ended lives by the day on which they were
written. Of each day of publish, all messages of a node count or none: messages from before its
journal began do not, because the tables may have only a part of them. On the day on which the
journal began, each message is checked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from holdfast.pipeline.copies import DAY_NS, REPLIES, REPLY_CHANNELS
from holdfast.pipeline.lake import EVENTS, OPEN, TABLES, Lake
from holdfast.pipeline.reports.memory import (
    EVENT_DAY,
    MESSAGE_DAY,
    Memory,
    by_day,
    keep_each,
    place_of,
    together,
)
from holdfast.pipeline.reports.tables import Tables
from holdfast.pipeline.table_files import File, paths_of

_US = 86_400_000_000
# Tables have one name for all reply channels, but not events.
CHANNEL = f"case when channel like '{REPLIES}%' then '{REPLY_CHANNELS}' else channel end"
_OF_PUBLISHES = {
    "published": "count(case when size > 0 then 1 end)",
    "copies": "cast(sum(copies) as bigint)",
}
# What leaves a work queue does not count as a move: how often the journal says so depends on which
# of several workers has the next receiver. A delay that is over does: its message is a copy again.
_OF_LIVES = {
    "copies": "-count(case when state = 'due' then 1 end)",
    "moves": "count(case when state = 'due' or state = 'moved' and receiver not like 'work:%' "
    "then 1 end)",
    "replayed": "count(replay_of)",
    "handed": "count(case when state <> 'moved' and (handed_ts is not null or attempts > 0) "
    "then 1 end)",
    "acked": "count(case when state in ('acked', 'written') then 1 end)",
    "dead": "count(case when state = 'dead' then 1 end)",
    "expired": "count(case when state = 'expired' then 1 end)",
    "discarded": "count(case when state = 'discarded' then 1 end)",
    "ended": "count(case when state not in ('open', 'lost_with_process', 'moved', 'due') "
    "then 1 end)",
    "in_flight": "count(case when state = 'open' then 1 end)",
}
# All files have the same types.
_NONE = "cast(0 as bigint)"
COUNTS = tuple({**_OF_PUBLISHES, **_OF_LIVES})
_COUNTED, _BEGUN = "sums", "begins"
_NUMBERS = ", ".join(f"{name} bigint" for name in COUNTS)


def _counts(found: Mapping[str, str], rows: str, condition: str, part: str | None = None) -> str:
    """Return the question for counts by channel, node and day of publish, and by part."""
    numbers = ", ".join(f"{found.get(name, _NONE)} as {name}" for name in COUNTS)
    first, last = ("", "") if part is None else (f"{part} as part, ", f", {part}")
    return (
        f"select {first}{CHANNEL} as channel, origin, {MESSAGE_DAY} as day, {numbers} from {rows} "
        f"where {condition} group by {CHANNEL}, origin, {MESSAGE_DAY}{last}"
    )


_AND_BEGINS = "left join {begins} using (origin)"
_IS_KNOWN = "(begin_us is null or msg >= begin_us * 1000)"
_IS_PUBLISH = "kind = 'published'"
# The sums if nothing is remembered.
SUMS = (
    f"{_counts(_OF_PUBLISHES, f'{{publishes}} {_AND_BEGINS}', _IS_KNOWN)} union all "
    f"{_counts(_OF_LIVES, f'{{life}} {_AND_BEGINS}', _IS_KNOWN)}"
)


def recall(tables: Tables, lake: Lake) -> None:
    """Define `sums` of all messages of a lake from what is remembered about its files."""
    # Events that arrived after the tables were opened do not count.
    files = {table: lake.found(table, at=tables.state) for table in (EVENTS, "life", OPEN)}
    days = {f"{EVENTS}-{day}": group for day, group in by_day(files[EVENTS]).items()}
    written = {f"life-{day}": group for day, group in _by_writing(files["life"]).items()}
    groups = {name: paths_of(group) for name, group in {**days, **written}.items()}
    with place_of(lake, "_sums") as place:
        memory = Memory(place, groups)
        unread = [*memory.unread]
        new = {name: sum(file.rows for file in days[name]) for name in days if name in unread}
        for few in together(new):
            its_files = [path for name in few for path in groups[name]]
            with memory.writing(few) as drafts:
                _find_out(tables, EVENTS, its_files, drafts)
        for name in written:
            if name in unread:
                with memory.writing([name]) as drafts:
                    _find_out(tables, "life", groups[name], drafts)
        memory.forget_others()
        _add(tables, memory)
    tables.materialize("known_sums", " union all ".join(_known_parts(tables, files)))
    tables.define("sums", "select * from {known_sums}")


def _by_writing(files: Iterable[File]) -> dict[str, list[File]]:
    days: dict[str, list[File]] = {}
    for file in files:
        written = datetime.fromtimestamp(file.written_ms / 1000, UTC)
        days.setdefault(f"{written:%Y-%m-%d}", []).append(file)
    return days


def _find_out(
    tables: Tables, table: str, files: Sequence[Path], drafts: Mapping[str, Path]
) -> None:
    tables.add_files("group_rows", files, ", ".join(filter(None, TABLES[table])))
    if table == EVENTS:
        part = f"concat('{EVENTS}-', {EVENT_DAY})"
        counts = _counts(_OF_PUBLISHES, "{group_rows}", _IS_PUBLISH, part)
        keep_each(tables, counts, _COUNTED, drafts)
        keep_each(tables, _BEGINS.format(part=part), _BEGUN, drafts)
    else:
        [part] = (f"'{name}'" for name in drafts)
        counts = _counts(_OF_LIVES, "{group_rows}", "true", part)
        keep_each(tables, counts, _COUNTED, drafts)


_BEGINS = """
    select {part} as part, node as origin, min(unix_micros(ts)) as begin_us
    from {{group_rows}} where seq is not null group by {part}, node
"""


def _add(tables: Tables, memory: Memory) -> None:
    """Add what is remembered as `kept_sums`, and `known_begins`."""
    schema = f"channel string, origin string, day bigint, {_NUMBERS}"
    tables.add_files("sums_of_groups", memory.files(f"{_COUNTED}/*.parquet"), schema)
    tables.materialize("kept_sums", "select * from {sums_of_groups}")
    begins = memory.files(f"{_BEGUN}/*.parquet")
    tables.add_files("begins_of_groups", begins, "origin string, begin_us bigint")
    tables.materialize(
        "known_begins",
        "select origin, min(begin_us) as begin_us from {begins_of_groups} group by origin",
    )


def _known_parts(tables: Tables, files: Mapping[str, Iterable[File]]) -> Iterator[str]:
    began = "left join {known_begins} using (origin)"
    _add_known(tables, OPEN, f"known_{OPEN}", files[OPEN])
    yield (
        f"select channel, origin, day, {', '.join(COUNTS)} from {{kept_sums}} {began} "
        f"where begin_us is null or day * {_US} >= begin_us"
    )
    yield _counts(_OF_LIVES, f"{{known_open}} {began}", _IS_KNOWN)
    first = f"cast((begin_us - begin_us % {_US}) / {_US} as bigint)"
    for (day,) in tables.ask(f"select distinct {first} from {{known_begins}}").rows:
        begin, end = day * DAY_NS, (day + 1) * DAY_NS
        # Only the files with messages of that day are read, and checked before.
        of_day = {
            table: [file for file in files[table] if file.may_have(begin, end)]
            for table in (EVENTS, "life")
        }
        for table, found in of_day.items():
            _add_known(tables, table, f"known_{table}_{day}", found)
        is_first = (
            f"msg >= {begin} and msg < {end} and msg >= begin_us * 1000 and begin_us > {day * _US}"
        )
        yield _counts(
            _OF_PUBLISHES, f"{{known_events_{day}}} {began}", f"{_IS_PUBLISH} and {is_first}"
        )
        yield _counts(_OF_LIVES, f"{{known_life_{day}}} {began}", is_first)


def _add_known(tables: Tables, table: str, name: str, files: Iterable[File]) -> None:
    tables.add_files(name, paths_of(files), ", ".join(filter(None, TABLES[table])))
