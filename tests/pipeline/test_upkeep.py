"""Upkeep and backfills: tables are merged, cut and rebuilt, and lose no row that they need."""

import os
import shutil
import time
from collections.abc import Iterator
from datetime import date
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from holdfast.journal.schema import Event
from holdfast.pipeline import backfill as backfills
from holdfast.pipeline import upkeep
from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.delta import Table
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import write_lives
from holdfast.pipeline.lake import CARRIED, EVENTS, TABLES, Lake, NewFile
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.runs import runs_of
from holdfast.pipeline.scope import EVERYTHING, Scope
from holdfast.pipeline.source.event_files import write_events
from holdfast.pipeline.table_files import File
from holdfast.pipeline.tasks import LocalTasks
from tests.pipeline.audited import findings_of
from tests.pipeline.deaths import Killed, kill_at
from tests.pipeline.losses import miss_each_file
from tests.unit.pipeline.events import SECOND
from tests.unit.pipeline.stories import acked, the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATER_US = 3 * 86_400 * SECOND


def later(event: Event) -> Event:
    msg = None if event.msg is None else event.msg + LATER_US * 1000
    return event._replace(ts=event.ts + LATER_US, msg=msg)


def written(lake: Lake, batch: int, events: list[Event]) -> list[NewFile]:
    """Files of events as an ingest leaves them."""
    lake.sign()
    rows = [(*each, "seed-1", 100 * batch + pos, pos) for pos, each in enumerate(events)]
    named = [dict(zip(ARROW.names, row, strict=True)) for row in rows]
    receipts = write_events(iter([pa.RecordBatch.from_pylist(named, ARROW)]), lake.root / EVENTS)
    told = [row for receipt in receipts for row in receipt.to_pylist()]
    return [NewFile(EVENTS, file) for file in {row["file"] for row in told}]


def add_events(lake: Lake, batch: int, events: list[Event]) -> None:
    """Add events from which no other table is made yet."""
    made = written(lake, batch, events)
    with lake.changing():
        lake.commit(made, {}, replaced=())


def ingested(lake: Lake, batch: int, events: list[Event]) -> None:
    """Add events, with the tables that an ingest makes of them."""
    made = written(lake, batch, events)
    with lake.changing():
        paths = [lake.root / EVENTS / each.file for each in made]
        lake.commit([*made, *write_lives(LocalTasks(1), paths, lake, runs_of([]))], {})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A Thursday in two batches, and a Sunday on which bob acks what he got on Thursday."""
    lake = Lake(tmp_path / "lake")
    told = the_story()
    add_events(lake, 0, told[:30])
    add_events(lake, 1, told[30:])
    sunday = [later(each) for each in told]
    add_events(lake, 2, [*sunday, acked(3 * 86_400, 9, "bob/1")])
    return lake


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with both days in four batches, and all tables made of them."""
    lake = Lake(tmp_path_factory.mktemp("made"))
    told = the_story()
    ingested(lake, 0, told[:30])
    ingested(lake, 1, told[30:])
    ingested(lake, 2, [later(each) for each in told[:30]])
    ingested(lake, 3, [later(each) for each in told[30:]])
    return lake.root


@pytest.fixture
def small(made: Path, tmp_path: Path) -> Lake:
    """A copy of it for one test."""
    return Lake(shutil.copytree(made, tmp_path / "lake"))


def run(lake: Lake, *words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", *words, "--json", "--lake", str(lake.root)])


def lines(said: Result) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in said.stdout.splitlines()]


def rows(lake: Lake, table: str) -> list[dict[str, Any]]:
    """All rows, in an order that does not depend on files."""
    found = [pq.ParquetFile(file).read() for file in lake.files(table)]
    return sorted((row for each in found for row in each.to_pylist()), key=str)


def test_a_backfill_continues_after_kills_and_rebuilds_the_tables(
    spark: "SparkSession", lent: None, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as fate:
        kill_at(fate, backfills.Backfill, "_put_in_place")
        with pytest.raises(Killed):
            run(lake, "backfill")
    assert rows(lake, "life") == []
    # Before the backfill continues, another batch arrives.
    add_events(lake, 3, [acked(4 * 86_400, 9, "bob/1")._replace(msg=7)])
    for whose, step in ((os, "link"), (shutil, "rmtree")):
        with monkeypatch.context() as fate:
            kill_at(fate, whose, step)
            with pytest.raises(Killed):
                run(lake, "backfill")
    done = orjson.loads(run(lake, "backfill").stdout)
    assert done == {"first": "2025-11-20", "last": "2025-11-24", "days": 3, "found_done": 3}
    states = [row["state"] for row in rows(lake, "life")]
    assert [states.count(state) for state in ("acked", "dead")] == [38, 4]
    miss_each_file(lake)
    # The next ingest continues from this.
    assert [row["receiver"] for row in rows(lake, "open")] == ["bob/1"]
    assert len(rows(lake, "messages")) == 1
    # Another backfill changes nothing.
    before = rows(lake, "life")
    assert orjson.loads(run(lake, "backfill").stdout)["found_done"] == 0
    assert rows(lake, "life") == before


def test_a_backfill_begins_again_when_its_files_were_merged(
    spark: "SparkSession", lent: None, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as fate:
        kill_at(fate, backfills.Backfill, "_put_in_place")
        with pytest.raises(Killed):
            run(lake, "backfill")
    assert run(lake, "compact").exit_code == 0
    assert orjson.loads(run(lake, "backfill").stdout)["found_done"] == 0
    assert len(rows(lake, "life")) == 41


def test_a_step_of_a_backfill_that_is_killed_at_its_end_takes_effect_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Table.commit

    def commit(table: Table, names: list[str], number: int, *, is_all: bool) -> None:
        # Its lives are committed; the step ends with its events, of which a backfill has none.
        if (number, names, is_all) == (1, [], False):
            raise Killed
        real(table, names, number, is_all=is_all)

    with monkeypatch.context() as fate:
        fate.setattr(Table, "commit", commit)
        with pytest.raises(Killed):
            backfills.Backfill(lake).run(LocalTasks(1), lambda done: None)
    backfills.Backfill(lake).run(LocalTasks(1), lambda done: None)
    assert len(rows(lake, "life")) == 41


def test_a_backfill_proceeds_without_lost_events_only_with_accept_loss(
    spark: "SparkSession", lent: None, lake: Lake
) -> None:
    lake.files(EVENTS)[-1].unlink()
    said = run(lake, "backfill")
    assert (said.exit_code, "backfill --accept-loss" in said.stderr) == (1, True)
    # Of the second day there is only a note that it was given up.
    assert orjson.loads(run(lake, "backfill", "--accept-loss").stdout)["days"] == 2
    assert len(rows(lake, "life")) == 20


def test_the_audit_keeps_reporting_events_that_were_given_up(small: Lake) -> None:
    for file in small.files(EVENTS):
        if file.parent.name == "d=2025-11-20":
            file.unlink()
    assert [upkeep.give_up_lost(small) for _ in range(2)] == [2, 0]
    noon = 1_763_640_000_000
    for scope in (EVERYTHING, Scope(since=noon, until=noon + 1)):
        [found] = [row for row in findings_of(small, scope) if row["kind"] == "events.given_up"]
        assert (found["number"], found["node"]) == (len(the_story()), None)
        assert [f"{found[end]:%m-%d %H:%M}" for end in ("since", "until")] == [
            "11-20 00:00",
            "11-20 23:59",
        ]


def test_merging_small_files_preserves_all_rows(small: Lake) -> None:
    tables = (EVENTS, "life", "latency", "open", "messages")
    before = {table: rows(small, table) for table in tables}
    [thursday, sunday, *others] = lines(run(small, "compact", "--dry-run"))
    assert (thursday["table"], thursday["day"], thursday["files"]) == (EVENTS, "2025-11-20", 2)
    assert (sunday["day"], [step["table"] for step in others]) == (
        "2025-11-23",
        ["life", "latency"],
    )
    assert len(small.files(EVENTS)) == 4
    assert len(lines(run(small, "compact"))) == 4
    assert {table: rows(small, table) for table in tables} == before
    assert [len(small.files(table)) for table in (EVENTS, "life")] == [2, 1]
    assert [file.parent.name for file in small.files(EVENTS)] == ["d=2025-11-20", "d=2025-11-23"]
    miss_each_file(small)
    assert lines(run(small, "compact")) == []
    # An ingest continues with the carried tables.
    ingested(small, 4, [acked(3 * 86_400, 9, "bob/1")])
    assert len(rows(small, "open")) == len(before["open"]) - 1


def test_the_tables_are_locked_while_merged_files_are_committed(
    small: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, undoing what a killed process has left would fail."""
    merged: list[int] = []
    real = Table.exchange

    def exchange(table: Table, files: list[File], names: list[str], *, is_same: bool) -> None:
        with (small.root / "_change").open("a") as file, pytest.raises(BlockingIOError):
            flock(file, LOCK_EX | LOCK_NB)
        real(table, files, names, is_same=is_same)
        merged.append(len(names))

    monkeypatch.setattr(Table, "exchange", exchange)
    upkeep.compact(small, [*upkeep.to_compact(small)], lambda: None)
    # Both days of events, in one commit.
    assert merged == [2, 1, 1]


def test_the_files_of_a_table_are_listed_once_for_all_its_days(
    small: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [*upkeep.to_compact(small)]
    listed: list[Table] = []
    real = Table.files

    def files(table: Table, number: int) -> Iterator[File]:
        found = [*real(table, number)]
        # A stream of an earlier test may still be tidying its own lake.
        if any(file.path.is_relative_to(small.root) for file in found):
            listed.append(table)
        return iter(found)

    monkeypatch.setattr(Table, "files", files)
    upkeep.compact(small, steps, lambda: None)
    assert [step.table for step in steps] == ["events", "events", "life", "latency"]
    assert len(listed) == 3


def test_a_day_with_a_lost_file_is_named_and_all_other_days_are_merged(small: Lake) -> None:
    lost = next(file for file in small.files(EVENTS) if file.parent.name == "d=2025-11-20")
    lost.unlink()
    said = run(small, "compact")
    assert said.exit_code == 1
    assert f"events/d=2025-11-20/{lost.name} is missing" in said.stderr
    assert "holdfast pipeline backfill --accept-loss" in said.stderr
    left = [file.day for file in small.open(EVENTS).files(small.newest())]
    assert sorted(map(str, left)) == ["2025-11-20", "2025-11-20", "2025-11-23"]
    assert [len(small.files(table)) for table in ("life", "latency")] == [1, 1]
    # The next run reports it again, and has nothing else to do.
    assert [step["day"] for step in lines(run(small, "compact"))] == ["2025-11-20"]
    assert upkeep.give_up_lost(small) == 1
    assert run(small, "compact").exit_code == 0


def test_a_table_that_lost_a_file_is_left_to_a_backfill(small: Lake) -> None:
    small.files("life")[0].unlink()
    said = run(small, "compact")
    assert (said.exit_code, "rebuild it with holdfast pipeline backfill" in said.stderr) == (
        1,
        True,
    )
    assert len(small.files(EVENTS)) == 2


def test_an_ingest_merges_files_only_where_there_are_many(
    small: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep.tidy(small)
    assert len(small.files(EVENTS)) == 4
    monkeypatch.setattr(upkeep, "_MANY", 2)
    with small.alone("upkeep"):
        # Another process does it.
        upkeep.tidy(small)
        assert len(small.files(EVENTS)) == 4
    # Each time, one day of one table is merged.
    for left in (3, 2):
        upkeep.tidy(small)
        assert len(small.files(EVENTS)) == left


def test_an_ingest_continues_without_a_file_that_it_does_not_need(
    small: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_MANY", 2)
    lost, *_ = small.files(EVENTS)
    lost.unlink()
    for _ in range(2):
        upkeep.tidy(small)
    # All else is merged.
    left = [file.day for file in small.open(EVENTS).files(small.newest())]
    assert sorted(map(str, left)) == ["2025-11-20", "2025-11-20", "2025-11-23"]
    assert len(small.files("life")) == 1
    ingested(small, 4, [acked(3 * 86_400, 9, "bob/1")])
    with pytest.raises(PipelineFailed, match="is missing"):
        small.files(EVENTS)


def test_files_that_no_reader_can_need_are_deleted(
    small: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = small.files("open")
    orphan = small.root / "life" / "orphan.parquet"
    orphan.write_text("of a killed task")
    assert run(small, "compact").exit_code == 0
    ingested(small, 4, [acked(3 * 86_400, 9, "bob/1")])
    upkeep.clean(small)
    assert (old[0].exists(), orphan.exists()) == (True, True)
    os.utime(orphan, (0, 0))
    for log in (small.root / "open" / "_delta_log").glob("*.json"):
        _age(log)
    # An ingest does it once in so many batches.
    upkeep.tidy(small)
    assert (old[0].exists(), orphan.exists()) == (True, True)
    monkeypatch.setattr(upkeep, "_MANY", 4)
    upkeep.tidy(small)
    assert (old[0].exists(), orphan.exists()) == (False, False)
    miss_each_file(small)


@pytest.mark.parametrize(("words", "days"), [([], 7), (["--history-days", "2"], 2)])
def test_files_that_were_replaced_stay_for_days(small: Lake, words: list[str], days: int) -> None:
    old = small.files("life")
    assert run(small, "compact", *words).exit_code == 0
    _age_all(small, "life", (days - 1) * 24 + 23)
    assert run(small, "compact").exit_code == 0
    assert [file.exists() for file in old] == [True] * len(old)
    _age_all(small, "life", 2)
    assert run(small, "compact").exit_code == 0
    assert [file.exists() for file in old] == [False] * len(old)
    miss_each_file(small)


def test_former_states_of_growing_tables_can_be_read_for_a_week(small: Lake) -> None:
    settings = {
        name: DeltaTable(str(small.root / name)).metadata().configuration for name in TABLES
    }
    kept = {name: each["delta.logRetentionDuration"] for name, each in settings.items()}
    assert kept == {
        **dict.fromkeys(TABLES, "interval 7 days"),
        **dict.fromkeys(CARRIED, "interval 1 days"),
    }


@pytest.mark.parametrize(("hours", "is_kept"), [(6 * 24, True), (8 * 24, False)])
def test_only_cleaning_up_shortens_the_log(small: Lake, hours: int, is_kept: bool) -> None:
    log = small.root / "life" / "_delta_log"
    small.open("life").newest().create_checkpoint()
    former = min(log.glob("*.json"))
    for file in log.iterdir():
        os.utime(file, (time.time() - hours * 3600,) * 2)
    small.open("life").newest().create_checkpoint()
    # A commit looks for nothing in the log, however long that is.
    ingested(small, 4, [acked(3 * 86_400, 9, "bob/1")])
    small.open("life").newest().create_checkpoint()
    assert former.exists()
    upkeep.clean(small)
    assert former.exists() == is_kept
    miss_each_file(small)


def _age_all(lake: Lake, table: str, hours: int) -> None:
    for log in (lake.root / table / "_delta_log").glob("*.json"):
        _age(log, hours)


def test_upkeep_after_a_killed_ingest_deletes_no_file_that_the_tables_need(
    small: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {table: rows(small, table) for table in TABLES}
    real = Table.commit

    def commit(table: Table, names: list[str], number: int, *, is_all: bool) -> None:
        if names and not is_all:
            raise Killed
        real(table, names, number, is_all=is_all)

    with monkeypatch.context() as fate:
        fate.setattr(Table, "commit", commit)
        with pytest.raises(Killed):
            ingested(small, 4, [acked(3 * 86_400, 9, "bob/1")])
    for table in CARRIED:
        # Make the files that the killed ingest has replaced two hours old.
        for log in (small.root / table / "_delta_log").glob("*.json"):
            _age(log)
        for file in (small.root / table).glob("*.parquet"):
            os.utime(file, (0, 0))
    assert run(small, "compact").exit_code == 0
    assert {table: rows(small, table) for table in TABLES} == before
    with small.changing():
        miss_each_file(small)


def _age(log: Path, hours: int = 2) -> None:
    """Make all its removals this many hours older."""
    told = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    for action in told:
        if "remove" in action:
            action["remove"]["deletionTimestamp"] -= hours * 3_600_000
    log.write_bytes(b"\n".join(map(orjson.dumps, told)))
    (log.parent.parent / "_digests").unlink(missing_ok=True)


def test_old_rows_are_removed_but_open_copies_stay(small: Lake) -> None:
    waiting = rows(small, "open")
    # There is no terminal on which to confirm.
    assert run(small, "retain", "--days", "1").exit_code == 2
    told = {
        cut["table"]: cut["rows"] for cut in lines(run(small, "retain", "--days", "1", "--yes"))
    }
    assert told == {EVENTS: 2 * len(the_story()), "life": 40, "latency": told["latency"]}
    for table in (EVENTS, "life", "latency"):
        assert rows(small, table) == []
    assert rows(small, "open") == waiting
    miss_each_file(small)
    assert lines(run(small, "retain", "--days", "1", "--yes")) == []


def test_a_reader_that_has_begun_still_finds_the_days_that_are_removed(small: Lake) -> None:
    for table in (EVENTS, "life", "latency"):
        for file in small.files(table):
            # Old days have old files.
            os.utime(file, (0, 0))
    with of_lake(small) as tables, of_lake(small) as late:
        before = [tables.ask(REPORTS[name]) for name in ("funnel", "throughput", "latency")]
        assert run(small, "retain", "--days", "1", "--yes").exit_code == 0
        assert run(small, "compact").exit_code == 0
        again = [tables.ask(REPORTS[name]) for name in ("funnel", "throughput", "latency")]
        first = [late.ask(REPORTS[name]) for name in ("funnel", "throughput", "latency")]
    assert before == again == first
    assert [len(found.rows) > 0 for found in before] == [True] * 3


def test_only_rows_before_the_given_day_are_removed(small: Lake) -> None:
    sunday = date(2025, 11, 23)
    upkeep.forget(small, upkeep.to_forget(small, before=sunday, events_before=sunday))
    assert len(rows(small, EVENTS)) == len(the_story())
    assert len(rows(small, "life")) == 20
    assert all(row["ended_ts"].date() >= sunday for row in rows(small, "life"))
    assert {row["hour"].date() for row in rows(small, "latency")} == {sunday}


def test_events_may_be_removed_sooner_than_what_was_made_from_them(small: Lake) -> None:
    before = {table: rows(small, table) for table in TABLES}
    told = lines(run(small, "retain", "--days", "36500", "--events-days", "1", "--yes"))
    assert [cut["table"] for cut in told] == [EVENTS]
    assert {table: rows(small, table) for table in TABLES} == before | {EVENTS: []}


def test_a_backfill_keeps_what_is_about_messages_of_removed_days(small: Lake) -> None:
    before = {table: rows(small, table) for table in TABLES if table != EVENTS}
    upkeep.forget(small, [upkeep.Cut(EVENTS, date(2025, 11, 21), 1)])
    for file in small.files("latency"):
        file.write_bytes(b"x" * file.stat().st_size)
    backfills.Backfill(small).run(LocalTasks(1), lambda done: None)
    after = {table: rows(small, table) for table in before}
    # Nothing is left of the damaged table about the removed day.
    assert {row["hour"].day for row in after["latency"]} == {23}
    assert after | {"latency": []} == before | {"latency": []}
    assert any(row["ended_ts"].day == 20 for row in after["life"])


def test_a_backfill_that_would_lose_lives_without_events_is_refused(small: Lake) -> None:
    upkeep.forget(small, [upkeep.Cut(EVENTS, date(2025, 11, 21), 1)])
    # An older version removed them, which noted nothing.
    (small.root / "_since").unlink()
    said = run(small, "backfill")
    assert (said.exit_code, "2025-11-20" in said.stderr) == (1, True)


def test_an_overwritten_file_of_events_stops_a_backfill_and_is_named(
    spark: "SparkSession", lent: None, lake: Lake
) -> None:
    [file, *_] = lake.files(EVENTS)
    file.write_bytes(b"x" * file.stat().st_size)
    said = run(lake, "backfill")
    assert (said.exit_code, f"{file} was changed after" in said.stderr) == (1, True)


def test_events_cannot_be_kept_longer_than_lives(tmp_path: Path) -> None:
    # Otherwise the funnel would compare publishes with the ends of other messages.
    said = run(Lake(tmp_path), "retain", "--days", "10", "--events-days", "20")
    assert (said.exit_code, "less time" in said.stderr) == (2, True)
