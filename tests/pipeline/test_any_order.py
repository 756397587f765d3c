"""Tables do not depend on how the journal was cut into batches, or on what was done in between."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.pipeline.backfill import Backfill
from holdfast.pipeline.census import Group
from holdfast.pipeline.ingest import write_batch
from holdfast.pipeline.lake import EVENTS, TABLES, Lake
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.source.event_files import write_events
from holdfast.pipeline.tasks import LocalTasks
from holdfast.pipeline.upkeep import compact, forget, to_compact, to_forget
from tests.effort import TIMES
from tests.pipeline.audited import findings_of
from tests.unit.pipeline.events import SECOND, START_US
from tests.unit.pipeline.fates import Fates
from tests.unit.pipeline.framed_events import FramedEvent, table_of

pytestmark = pytest.mark.untraced

HOUR_US = 3600 * SECOND
TASKS = LocalTasks(1)
SUMS = ("lost", "latency")
# What may happen between two batches.
NOTHING, COMPACT, BACKFILL, RETAIN = range(4)
DICE = st.lists(st.integers(0, 2**20), min_size=20, max_size=120)
PLACES = st.integers(0, 120)
CUTS = st.lists(
    st.tuples(PLACES, st.sampled_from((NOTHING, COMPACT, BACKFILL, RETAIN))), max_size=4
)
# A copy that the store does not have dies; a replay of it, which the store has, outlives a kill.
SETTLED_AND_REPLAYED = [32, 3, 2, 9]
# A copy dies, and its replay moves in a later batch.
REPLAYED_AND_MOVED = [0, 0, 0, 1, 4, 3, 1, 0, 0, 1, 1, 1, 1, 1, 1, 181, 0, 0, 0, 0]
OF_TWO_DAYS = [7919 * n % 2**20 for n in range(100)]
# The second day of the journal.
SECOND_DAY = datetime.fromtimestamp(START_US / SECOND, UTC).date() + timedelta(days=1)


def ingest(lake: Lake, told: Sequence[FramedEvent]) -> None:
    """Add a batch to the tables as an ingest does."""
    if not told:
        return
    lake.sign()
    batches = iter(table_of(told).combine_chunks().to_batches())
    receipts = [
        row for part in write_events(batches, lake.root / EVENTS) for row in part.to_pylist()
    ]
    groups = [Group(**{name: row[name] for name in Group._fields}) for row in receipts]
    with lake.changing():
        write_batch(TASKS, {row["file"] for row in receipts}, groups, lake, {})


def do(lake: Lake, what: int) -> None:
    """Do what operators do between two batches."""
    if lake.state() is None:
        return
    if what == COMPACT:
        compact(lake, list(to_compact(lake)), lambda: None)
    # Without events, there is nothing to rebuild, and a backfill is refused.
    elif what == BACKFILL and lake.files(EVENTS):
        Backfill(lake).run(TASKS, lambda done: None)
    elif what == RETAIN:
        forget(lake, to_forget(lake, before=SECOND_DAY, events_before=SECOND_DAY))


def rows(lake: Lake, table: str) -> Counter[Any]:
    """Return the rows of a table, with all their columns.

    Each batch adds rows of its own to the tables of sums, so `n` is added up, as readers do.
    """
    found = Counter[Any]()
    for file in lake.files(table):
        of_folder = file.parent.name if TABLES[table][1] else ""
        for row in pq.ParquetFile(file).read().to_pylist():
            n = row.pop("n") if table in SUMS else 1
            found[f"{of_folder} {sorted(row.items())}"] += n
    return found


def everything(lake: Lake) -> dict[str, Any]:
    """All rows of all tables, all reports and the findings of an audit."""
    known: dict[str, Any] = {table: rows(lake, table) for table in TABLES}
    with of_lake(lake) as tables:
        known |= {f"report {name}": tables.ask(REPORTS[name]).rows for name in REPORTS}
    return known | {"audit": findings_of(lake)}


def fates_of(dice: Sequence[int], step_us: int) -> Fates:
    fates = Fates(step_us)
    for each in dice:
        fates.go_on(each)
    return fates


def in_parts(lake: Lake, told: Sequence[FramedEvent], cuts: Sequence[tuple[int, int]]) -> None:
    """Ingest in batches; after each, do what its cut says."""
    places = [0, *(place for place, _ in sorted(cuts)), len(told)]
    deeds = [*(deed for _, deed in sorted(cuts)), NOTHING]
    for (first, end), deed in zip(pairwise(places), deeds, strict=True):
        ingest(lake, told[first:end])
        do(lake, deed)


@pytest.mark.slow
@settings(max_examples=2 * TIMES)
@given(DICE, CUTS)
@example(SETTLED_AND_REPLAYED, [(2, NOTHING), (3, NOTHING)])
@example(REPLAYED_AND_MOVED, [(7, NOTHING)])
@example(OF_TWO_DAYS, [(50, RETAIN), (70, BACKFILL)])
def test_tables_and_reports_do_not_depend_on_batches_or_on_what_happens_between(
    dice: list[int], cuts: list[tuple[int, int]]
) -> None:
    fates = fates_of(dice, HOUR_US)
    with TemporaryDirectory() as place:
        whole, parts = Lake(Path(place) / "whole"), Lake(Path(place) / "parts")
        ingest(whole, fates.events)
        in_parts(parts, fates.events, cuts)
        if RETAIN in {deed for _, deed in cuts}:
            do(whole, RETAIN)
            do(parts, RETAIN)
        expected, found = everything(whole), everything(parts)
    wrong = {name: apart(found[name], expected[name]) for name in found}
    assert {name: each for name, each in wrong.items() if any(each)} == {}


def apart(found: Any, expected: Any) -> tuple[Any, Any]:
    """What only one of them has."""
    if not isinstance(found, Counter):
        found, expected = Counter(map(repr, found)), Counter(map(repr, expected))
    return found - expected, expected - found
