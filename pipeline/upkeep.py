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

from holdfast.pipeline.arrow import arrow_of, batch, opened
from holdfast.pipeline.delta import flaws
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.incidents import Incident
from holdfast.pipeline.lake import CARRIED, EVENTS, TABLES, Lake, check, refuse
from holdfast.pipeline.rewriting import SMALL, bins, rewrite
from holdfast.pipeline.source.event_files import write_events
from holdfast.pipeline.spans import first_of, footer
from holdfast.pipeline.table_files import File, paths_of

# Growing tables, each with the column of a row's time.
_TIMES = {EVENTS: "d", "life": "ended_ts", "latency": "hour", "lost": "found_ts"}
# The most merges in a commit: many commits are slow to read, and of a killed process one is lost.
_TOGETHER = 50
# An ingest merges this many small files, and cleans up after this many batches: an hour, at a batch
# a minute.
_MANY = 60
# Hours that files of carried tables stay, which each batch replaces; others stay for days.
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
    for table, its_merges in groupby(merges, attrgetter("table")):
        of_days = _small_files(lake, table, {merge.day for merge in its_merges})
        for few in _in_portions(of_days):
            lost |= _merge(lake, table, few, report)
    clean(lake)
    refuse(lost)


def _small_files(lake: Lake, table: str, days: Iterable[str | None]) -> list[list[File]]:
    """Return the files of these days that are to be merged."""
    files = [file for file in lake.open(table).files(lake.newest()) if file.size < SMALL]
    return [[file for file in files if file.day == day] for day in sorted(days, key=str)]


def _in_portions(of_days: Sequence[list[File]]) -> Iterator[Sequence[list[File]]]:
    for first in range(0, len(of_days), _TOGETHER):
        yield of_days[first : first + _TOGETHER]


def _merge(
    lake: Lake, table: str, of_days: Iterable[Sequence[File]], report: Callable[[], None]
) -> dict[Path, str]:
    """Merge the files of each day, in one commit; return what is wrong with days that stay."""
    lost: dict[Path, str] = {}
    merged, names = list[File](), list[str]()
    for files in of_days:
        if faults := flaws(files):
            lost |= faults
            continue
        for together in bins(files):
            merged += together
            names += _rewritten(lake, table, together)
        report()
    if merged:
        # First undo what a killed process did: if two processes undo it together, one fails.
        with lake.changing():
            lake.open(table).exchange(merged, names, is_same=True)
    return lost


def _rewritten(
    lake: Lake, table: str, files: Sequence[File], kept: pc.Expression | None = None
) -> list[str]:
    """Write these files of one folder as one; return its name in the table, if it has rows."""
    folder = files[0].path.parent
    name = rewrite(paths_of(files), arrow_of(TABLES[table][0]), folder, kept)
    return [] if name is None else [str((folder / name).relative_to(lake.root / table))]


def clean(lake: Lake) -> None:
    """Delete files that no longer belong to the tables, and the log of states from long ago."""
    # First undo what a killed process did: it may have replaced files of the newest state.
    with lake.changing():
        for table in TABLES:
            lake.open(table).vacuum(is_whole=True)
        for table in CARRIED:
            lake.open(table).vacuum(_CARRIED_H, is_whole=False)
        for table in TABLES:
            lake.open(table).shorten_log()


def tidy(lake: Lake) -> None:
    """Merge the small files of one table and day if there are many; clean up now and then."""
    # Another process may be doing this: an ingest continues.
    with suppress(PipelineFailed, DeltaError, OSError), lake.alone("upkeep"):
        if lake.newest() % _MANY == 0:
            clean(lake)
        for merge in to_compact(lake, _MANY):
            files = _small_files(lake, merge.table, [merge.day])
            # Files may be lost, which readers report; the others are merged.
            if not _merge(lake, merge.table, files, lambda: None):
                return


def keep_history(lake: Lake, days: int) -> None:
    """Keep former states of the growing tables for this long, from now on."""
    with lake.changing():
        for table in _TIMES:
            lake.open(table).keep_history(days)


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
        return sum(file.rows for file in _of_older_days(lake, before))
    moment = _moment(before)
    times = pa.schema([(column, moment.type)])
    rows: int = opened(lake.files(table), times).count_rows(filter=pc.field(column) < moment)
    return rows


def _of_older_days(lake: Lake, before: date) -> list[File]:
    files = lake.open(EVENTS).files(lake.newest())
    return [file for file in files if file.day is not None and file.day < str(before)]


def forget(lake: Lake, cuts: Sequence[Cut]) -> None:
    """Remove these rows, first from events, which the other tables derive from.

    Readers that have begun still find the files that they know.
    """
    with lake.changing():
        for table, before, _ in cuts:
            if table == EVENTS:
                lake.note_kept_since(before)
                old, names = _of_older_days(lake, before), list[str]()
            else:
                old, names = _without_old_rows(lake, table, _moment(before))
            lake.open(table).exchange(old, names, is_same=False)
    clean(lake)


def _without_old_rows(lake: Lake, table: str, moment: pa.Scalar) -> tuple[list[File], list[str]]:
    """Return the files that have rows from before, and the names of files with their other rows."""
    time = pc.field(_TIMES[table])
    old, names = list[File](), list[str]()
    for file in lake.open(table).files(lake.newest()):
        check([file.path])
        first = first_of(footer(file.path), _TIMES[table])
        if first is not None and first < moment.as_py():
            old.append(file)
            names += _rewritten(lake, table, [file], (time >= moment) | time.is_null())
    return old, names


def _moment(day: date) -> pa.Scalar:
    return pa.scalar(day).cast(pa.timestamp("us", "UTC"))


def give_up_lost(lake: Lake) -> int:
    """Replace lost files of events by incidents, which the audit reports; return their number."""
    lake.widen()
    events = lake.open(EVENTS)
    with lake.changing():
        files = [*events.files(lake.newest())]
        known = flaws(files)
        lost = [file for file in files if file.path in known]
        if lost:
            receipts = write_events(_given_up(lost), lake.root / EVENTS)
            names = {name for receipt in receipts for name in receipt.column("file").to_pylist()}
            events.exchange(lost, names, is_same=False)
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
