"""Keeps the tables small: merges the batches of a day, and removes old days.

It never touches what the next ingest reads: the newest batch, and what is carried.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import Lake, batch_of
from holdfast.pipeline.swap import changing, replace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Growing tables, each with the column that gives a row's day.
_TIMES = {"events": "d", "life": "ended_ts", "latency": "hour", "lost": "found_ts"}
_CUT = {"events": "d", "life": "state"}
# The approximate size of files: some million events, so that each core has one to write.
_FILE_BYTES = 32 * 1024**2
_WORK = "_compact"
# Where an unfinished backfill has its plan.
PLAN = "_backfill/plan.json"


@dataclass(frozen=True, slots=True)
class Step:
    """Folders of one table and day to be merged into one, or removed."""

    table: str
    # None for folders without rows.
    day: date | None
    folders: tuple[Path, ...]

    @property
    def files(self) -> int:
        return sum(1 for _ in self._files())

    @property
    def bytes(self) -> int:
        return sum(file.stat().st_size for file in self._files())

    def _files(self) -> Iterator[Path]:
        for folder in self.folders:
            yield from folder.rglob("*.parquet")


def last_days(rows: "DataFrame", column: str) -> "DataFrame":
    """Return the last day of each batch: batch int, day date."""
    return rows.groupBy("batch").agg(F.max(F.to_date(column)).alias("day"))


def to_compact(spark: "SparkSession", lake: Lake) -> list[Step]:
    """Return the days with several folders, and the empty folders."""
    _refuse_half_filled(lake)
    steps = []
    for table in _TIMES:
        by_day = _by_day(spark, lake, table)
        for day, folders in sorted(by_day.items(), key=lambda item: str(item[0])):
            if day is None or len(folders) > 1:
                steps.append(Step(table, day, tuple(folders)))
    return steps


def _refuse_half_filled(lake: Lake) -> None:
    if (lake.root / PLAN).exists():
        raise PipelineFailed(
            "a backfill was interrupted: finish it with holdfast pipeline backfill"
        )


def _by_day(spark: "SparkSession", lake: Lake, table: str) -> dict[date | None, list[Path]]:
    """Return the folders of a table's closed batches by their last day."""
    newest = lake.newest()
    rows = lake.table(spark, table).where(F.col("batch") < newest)
    days = {row.batch: row.day for row in last_days(rows, _TIMES[table]).collect()}
    by_day: dict[date | None, list[Path]] = {}
    for number, folder in _folders(lake, table):
        if number < newest:
            by_day.setdefault(days.get(number), []).append(folder)
    return by_day


def _folders(lake: Lake, table: str) -> list[tuple[int, Path]]:
    found = (lake.root / table).glob("batch=*")
    return sorted((batch_of(folder), folder) for folder in found)


def compact(
    spark: "SparkSession", lake: Lake, steps: Sequence[Step], report: Callable[[], None]
) -> None:
    """Do these steps; `report` is called for each."""
    # A killed run may have left files.
    shutil.rmtree(lake.root / _WORK, ignore_errors=True)
    for step in steps:
        if step.day is None:
            _remove(lake, step.folders)
        else:
            _merge(spark, lake, step)
        report()


def _merge(spark: "SparkSession", lake: Lake, step: Step) -> None:
    numbers = [batch_of(folder) for folder in step.folders]
    rows = lake.table(spark, step.table).where(F.col("batch").isin(numbers)).drop("batch")
    pieces = max(1, -(-step.bytes // _FILE_BYTES))
    work = Lake(lake.root / _WORK)
    whole = rows.coalesce(pieces)
    if step.table == "events":
        # As ingests write them: see holdfast.pipeline.spans.
        whole = whole.sortWithinPartitions("msg")
    work.write(whole, step.table, numbers[-1], by=_CUT.get(step.table))
    made, aim = (each.folder(step.table, numbers[-1]) for each in (work, lake))
    with changing(lake):
        replace(lake, step.folders, {made: aim})


def to_forget(
    spark: "SparkSession", lake: Lake, *, before: date, events_before: date
) -> list[Step]:
    """Return the steps that remove earlier days: days of events, whole batches of other tables."""
    _refuse_half_filled(lake)
    steps = [*_old_events(lake, events_before)]
    for table in ("life", "latency", "lost"):
        for day, folders in _by_day(spark, lake, table).items():
            if day is not None and day < before:
                steps.append(Step(table, day, tuple(folders)))
    return sorted(steps, key=lambda step: (step.table, str(step.day)))


def _old_events(lake: Lake, before: date) -> Iterator[Step]:
    newest, by_day = lake.newest(), dict[date, list[Path]]()
    for number, folder in _folders(lake, "events"):
        for place in folder.glob("d=*") if number <= newest else ():
            name = place.name.partition("=")[2]
            # Events without a time belong to no day, and stay.
            if name[:1].isdigit() and (day := date.fromisoformat(name)) < before:
                by_day.setdefault(day, []).append(place)
    return (Step("events", day, tuple(places)) for day, places in by_day.items())


def forget(lake: Lake, steps: Sequence[Step]) -> None:
    """Remove the folders of these steps."""
    _remove(lake, [folder for step in steps for folder in step.folders])


def _remove(lake: Lake, folders: Sequence[Path]) -> None:
    with changing(lake):
        replace(lake, folders, {})
