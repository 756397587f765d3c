"""Rebuilds all tables that derive from events: step by step, then swaps them in together.

A step builds batches of tables in a separate folder, as an ingest would. After a kill, a backfill
continues behind the last complete step; readers never see incomplete tables.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from holdfast.pipeline.batches import MADE, due
from holdfast.pipeline.census import census
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import write_lives
from holdfast.pipeline.lake import Lake, batch_of, write_down
from holdfast.pipeline.runs import runs_of
from holdfast.pipeline.spans import footer
from holdfast.pipeline.swap import changing, replace
from holdfast.pipeline.upkeep import PLAN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Plan:
    """The days of each step, and the last batch that the backfill covers."""

    newest: int
    steps: tuple[tuple[str, ...], ...]
    # The steps that an earlier run has completed.
    done: int


def begin(spark: "SparkSession", lake: Lake) -> Plan:
    """Return the plan; that of an unfinished earlier run, if there is one.

    Raises:
        PipelineFailed: There are lives of days whose events are gone: these would be lost.
    """
    place = lake.root / PLAN
    if not place.exists():
        _write_plan(place, _new_plan(spark, lake))
    told = json.loads(place.read_text("utf-8"))
    done = Lake(place.parent).committed()
    return Plan(told["newest"], tuple(map(tuple, told["steps"])), 0 if done is None else done + 1)


def _write_plan(place: Path, plan: Plan) -> None:
    shutil.rmtree(place.parent, ignore_errors=True)
    place.parent.mkdir()
    write_down(place, {"newest": plan.newest, "steps": plan.steps})


def _new_plan(spark: "SparkSession", lake: Lake) -> Plan:
    found = lake.table(spark, "events").select("d").distinct().orderBy("d").collect()
    days = [row.d for row in found if row.d is not None]
    newest = lake.newest()
    if not days:
        raise PipelineFailed(f"{lake.root} has no events to rebuild tables from")
    _check_reach(spark, lake, days[0])
    # The tables must not have more batches than events; then a step is no larger than a batch was.
    count = min(len(days), newest + 1)
    bounds = [place * len(days) // count for place in range(count + 1)]
    steps = (days[first:last] for first, last in pairwise(bounds))
    return Plan(newest, tuple(tuple(map(str, step)) for step in steps), 0)


def _check_reach(spark: "SparkSession", lake: Lake, first: date) -> None:
    [(oldest,)] = lake.table(spark, "life").agg(F.to_date(F.min("ended_ts"))).collect()
    if oldest is not None and oldest < first:
        raise PipelineFailed(
            f"events go back to {first}, the table life to {oldest}: its older rows would be lost. "
            "To remove them on purpose, use holdfast pipeline retain"
        )


def backfill(spark: "SparkSession", lake: Lake, plan: Plan, report: Callable[[int], None]) -> None:
    """Do the remaining steps and swap the tables in; `report` is called with the steps done."""
    scratch = Lake((lake.root / PLAN).parent)
    for step in range(plan.done, len(plan.steps)):
        scratch.forget_carried(step)
        files = [*_files(lake, plan.steps[step], plan.newest)]
        for file in files:
            footer(file)
        write_lives(spark, files, step, scratch, runs_of(census(spark, files)))
        commits = scratch.checkpoint / "commits"
        commits.mkdir(parents=True, exist_ok=True)
        (commits / str(step)).touch()
        report(step + 1)
    _put_in_place(lake, scratch, plan)


def _files(lake: Lake, days: Sequence[str], newest: int) -> Iterator[Path]:
    """Yield the event files of these days."""
    for folder in (lake.root / "events").glob("batch=*"):
        if batch_of(folder) <= newest:
            for day in days:
                yield from (folder / f"d={day}").glob("*.parquet")


def _put_in_place(lake: Lake, scratch: Lake, plan: Plan) -> None:
    """Make the last step the newest batch, where the next ingest continues."""
    shift = plan.newest + 1 - len(plan.steps)
    with changing(lake):
        new = {
            folder: lake.folder(table, batch_of(folder) + shift)
            for table, folder in _folders(scratch)
        }
        # A killed run may have moved them already.
        if new:
            replace(lake, _old(lake, plan.newest), new)
        # First of all: a later run could not continue with half of the rest.
        (lake.root / PLAN).unlink()
        shutil.rmtree(scratch.root)


def _old(lake: Lake, newest: int) -> set[Path]:
    # The receipts of lost folders are removed too.
    lost = {lake.folder(table, batch) for table in MADE for batch in due(lake, table, newest)}
    return lost | {folder for _, folder in _folders(lake) if batch_of(folder) <= newest}


def _folders(lake: Lake) -> list[tuple[str, Path]]:
    return [(table, each) for table in MADE for each in (lake.root / table).glob("batch=*")]
