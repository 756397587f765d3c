"""Keeps the tables small: merges small files, and removes old rows and unused files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from holdfast.pipeline.arrow import batch, opened
from holdfast.pipeline.delta import SMALL, File
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.incidents import Incident
from holdfast.pipeline.lake import CARRIED, EVENTS, TABLES, Lake, refuse
from holdfast.pipeline.source.event_files import write_events
from holdfast.pipeline.spans import footer

# Growing tables, each with the column of a row's time.
_TIMES = {EVENTS: "d", "life": "ended_ts", "latency": "hour", "lost": "found_ts"}
# An ingest merges this many small files, and cleans up after this many batches: those of an hour,
# at a batch a minute.
_MANY = 60
# Hours that files stay after they are removed from their table: no reader takes longer.
_READ_H = 24
# Each batch replaces the carried tables.
_CARRIED_H = 1


class Merge(NamedTuple):
    """Small files of one table and day, to be merged."""

    table: str
    day: str | None
    files: int
    bytes: int


class Cut(NamedTuple):
    """The rows of a table before a day, to be removed."""

    table: str
    before: date
    rows: int


def to_compact(lake: Lake, least: int = 2) -> Iterator[Merge]:
    """Yield the tables and days that have at least this number of small files."""
    number = lake.newest()
    for table in _TIMES:
        small = [file for file in lake.open(table).files(number) if file.size < SMALL]
        small.sort(key=lambda file: str(file.day))
        for day, files in groupby(small, attrgetter("day")):
            sizes = [file.size for file in files]
            if len(sizes) >= least:
                yield Merge(table, day, len(sizes), sum(sizes))


def compact(lake: Lake, merges: Sequence[Merge], report: Callable[[], None]) -> None:
    """Do these merges; call `report` after each.

    Raises:
        PipelineFailed: Files are lost; all days without such files are done.
    """
    lost: dict[Path, str] = {}
    for merge, faults in _examined(lake, merges):
        if faults:
            lost |= faults
            continue
        _merge(lake, merge)
        report()
    clean(lake)
    refuse(lost)


def clean(lake: Lake) -> None:
    """Delete files that no longer belong to the tables."""
    # First undo what a killed process did: it may have replaced files of the newest state.
    with lake.changing():
        for table in TABLES:
            lake.open(table).vacuum(_READ_H, is_whole=True)
        for table in CARRIED:
            lake.open(table).vacuum(_CARRIED_H, is_whole=False)


def tidy(lake: Lake) -> None:
    """Merge the small files of one table and day if there are many; clean up now and then."""
    # Files may be lost, which readers report; the others are merged.
    examined = _examined(lake, to_compact(lake, _MANY))
    merge = next((merge for merge, faults in examined if not faults), None)
    # Another process may be doing this: an ingest continues.
    with suppress(PipelineFailed, DeltaError, OSError), lake.alone("upkeep"):
        if lake.newest() % _MANY == 0:
            clean(lake)
        if merge is not None:
            _merge(lake, merge)


def _merge(lake: Lake, merge: Merge) -> None:
    # First undo what a killed process did: if two processes undo it together, one fails.
    with lake.changing():
        lake.open(merge.table).merge(merge.day)


def _examined(lake: Lake, merges: Iterable[Merge]) -> Iterator[tuple[Merge, dict[Path, str]]]:
    """Yield merges with the lost files of their table and day, and what happened to each.

    The merges of a table come one after another, so its files are listed once.
    """
    for table, its_merges in groupby(merges, attrgetter("table")):
        files = [*lake.open(table).files(lake.newest())]
        for merge in its_merges:
            found = {file.path: file.fault for file in files if file.day == merge.day}
            yield merge, {path: fault for path, fault in found.items() if fault is not None}


def to_forget(lake: Lake, *, before: date, events_before: date) -> list[Cut]:
    """Return the cuts that remove rows older than these days."""
    cuts = []
    for table, column in _TIMES.items():
        day = events_before if table == EVENTS else before
        rows = _rows(lake, table, column, day)
        if rows:
            cuts.append(Cut(table, day, rows))
    return cuts


def _rows(lake: Lake, table: str, column: str, before: date) -> int:
    """Count the rows before a day."""
    if table == EVENTS:
        number = lake.newest()
        found = lake.open(table).files(number)
        old = [file.path for file in found if file.day is not None and file.day < str(before)]
        return sum(footer(file).num_rows for file in old)
    moment = pa.scalar(before).cast(pa.timestamp("us", "UTC"))
    times = pa.schema([(column, moment.type)])
    rows: int = opened(lake.files(table), times).count_rows(filter=pc.field(column) < moment)
    return rows


def forget(lake: Lake, cuts: Sequence[Cut]) -> None:
    """Remove these rows, first those of events, which the other tables derive from."""
    with lake.changing():
        for table, before, _ in cuts:
            lake.open(table).delete(f"{_TIMES[table]} < {_literal(table, before)}")
    clean(lake)


def give_up_lost(lake: Lake) -> int:
    """Replace lost files of events by incidents, which the audit reports; return their number."""
    lake.widen()
    events = lake.open(EVENTS)
    with lake.changing():
        lost = [file for file in events.files(lake.newest()) if file.fault is not None]
        if lost:
            receipts = write_events(_given_up(lost), lake.root / EVENTS)
            names = {name for receipt in receipts for name in receipt.column("file").to_pylist()}
            events.exchange(lost, names)
    return len(lost)


def _given_up(lost: Sequence[File]) -> Iterator[pa.RecordBatch]:
    """Yield two incidents for each day, at its first and its last moment."""
    for day, files in groupby(sorted(lost, key=attrgetter("day")), attrgetter("day")):
        rows = [file.rows for file in files]
        first = datetime.fromisoformat(day).replace(tzinfo=UTC)
        columns = {
            "ts": pa.array([first, first + timedelta(days=1, microseconds=-1)]),
            "kind": pa.repeat(Incident.GIVEN_UP.value, 2),
            "what": pa.repeat(f"files of this day's events were lost: {len(rows)}", 2),
            # The sum of both incidents is the number of lost events.
            "number": pa.array([sum(rows), 0]),
            # Not the position of an event in its frame.
            "pos": pa.repeat(-1, 2),
        }
        yield batch(columns, 2)


def _literal(table: str, day: date) -> str:
    text = f"'{day}'"
    return text if table == EVENTS else f"""arrow_cast({text}, 'Timestamp(us, "UTC")')"""
