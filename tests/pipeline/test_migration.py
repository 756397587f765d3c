"""Tables of an older version are upgraded by the command that their error names."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from holdfast.journal.schema import Event
from holdfast.pipeline import backfill as backfills
from holdfast.pipeline import lake as lakes
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import TABLES, VERSION, Lake, NewFile
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.tasks import local_tasks
from holdfast.pipeline.upkeep import give_up_lost
from tests.pipeline.deaths import Killed, kill_at
from tests.pipeline.journals import Writer
from tests.pipeline.stored import add_events
from tests.pipeline.stored import store as store_rows
from tests.pipeline.tales import refusals
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.events import published
from tests.unit.pipeline.framed_events import made_of, one_run, table_of
from tests.unit.pipeline.stories import died, the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = "d=2025-11-20"


class FormerTables(dict[str, tuple[str, str]]):
    """Tables without wordings, for this thread alone: others run tests meanwhile."""

    def __init__(self, tables: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(tables)
        self._thread = get_ident()

    def __getitem__(self, table: str) -> tuple[str, str]:
        columns, by = super().__getitem__(table)
        is_ours = get_ident() == self._thread
        return (columns.replace("wording string, ", "") if is_ours else columns), by


def without_wordings(rows: pa.Table) -> pa.Table:
    return rows.drop_columns(["wording"])


def write_batch(lake: Lake, batch: int, events: list[Event]) -> Path:
    """A batch of events as version 4 had it, and its receipt."""
    folder = lake.root / f"events/batch={batch:08d}"
    file = folder / DAY / f"part-{batch}.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(without_wordings(table_of(one_run(events))), file)
    receipt = lake.root / "_receipts/events" / folder.name
    receipt.parent.mkdir(parents=True, exist_ok=True)
    receipt.write_bytes(orjson.dumps([f"{DAY}/{file.name}"]))
    return file


@pytest.fixture
def old(tmp_path: Path) -> Lake:
    """Two batches that were committed, and a third that was not."""
    lake = Lake(tmp_path / "lake")
    told = the_story()
    for batch, events in enumerate((told[:30], told[30:], told)):
        write_batch(lake, batch, events)
    for name in ("commits", "offsets"):
        (lake.root / "_checkpoint" / name).mkdir(parents=True)
    for batch in range(2):
        (lake.root / "_checkpoint/commits" / str(batch)).write_text("v1\n{}")
        place = {"n1": {"id": f"{batch}-0", "epoch": "seed-1", "seq": batch, "digests": []}}
        lines = ["v1", "{}", orjson.dumps(place).decode()]
        (lake.root / "_checkpoint/offsets" / str(batch)).write_text("\n".join(lines))
    (lake.root / "_version").write_text("4")
    (lake.root / "_id").write_text("0123abcd")
    return lake


def run(lake: Lake, *words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", *words, "--json", "--lake", str(lake.root)])


def test_a_backfill_rebuilds_older_tables_from_their_events_even_after_kills(
    spark: "SparkSession", lent: None, old: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(old, "report", "funnel")
    assert (said.exit_code, "an older holdfast: holdfast pipeline backfill" in said.stderr) == (
        1,
        True,
    )
    # A backfill that is killed has changed nothing for readers.
    for whose, step in ((os, "link"), (backfills.Backfill, "_put_in_place"), (shutil, "rmtree")):
        with monkeypatch.context() as fate:
            kill_at(fate, whose, step)
            with pytest.raises(Killed):
                run(old, "backfill")
        assert run(old, "report", "funnel").exit_code == 1
    assert run(old, "backfill").exit_code == 0
    copies = [
        orjson.loads(line)["copies"] for line in run(old, "report", "funnel").stdout.splitlines()
    ]
    assert sum(copies) == 20
    assert len(old.files("events")) == 2
    assert old.positions()["n1"].seq == 1
    assert old.id == "0123abcd"
    add_events(old, 9, table_of(one_run(died(60, 1, "ann/1", text="order 3 is unknown"))))
    with of_lake(old) as tables:
        assert tables.ask("select count(wording) as n from {events}").rows == [(2,)]
    left = {each.name for each in old.root.iterdir()}
    assert not left & {"_checkpoint", "_receipts", "_backfill"}
    assert not [*old.root.glob("*/batch=*")]


def test_older_tables_with_a_missing_file_are_not_upgraded(old: Lake) -> None:
    shutil.rmtree(old.root / "events/batch=00000001" / DAY)
    said = run(old, "backfill")
    assert (said.exit_code, "part-1.parquet is missing" in said.stderr) == (1, True)


def test_older_tables_without_a_committed_batch_have_nothing_to_upgrade(old: Lake) -> None:
    shutil.rmtree(old.root / "_checkpoint/commits")
    said = run(old, "backfill")
    assert (said.exit_code, "have no events: move them away" in said.stderr) == (1, True)


def test_older_tables_whose_lives_begin_before_their_events_are_not_upgraded(old: Lake) -> None:
    place = old.root / "life/batch=00000000/state=acked"
    place.mkdir(parents=True)
    earlier = [each._replace(ts=each.ts - 86_400_000_000) for each in the_story()]
    rows = table_of(one_run(earlier)).rename_columns(
        ["ended_ts" if name == "ts" else name for name in table_of([]).column_names]
    )
    pq.write_table(rows, place / "part.parquet")
    said = run(old, "backfill")
    assert (said.exit_code, "the table life to 2025-11-19" in said.stderr) == (1, True)


def test_an_upkeep_that_was_killed_must_be_finished_before_an_upgrade(old: Lake) -> None:
    (old.root / "_swap.json").write_text("{}")
    said = run(old, "backfill")
    assert (said.exit_code, "finish it with the older holdfast" in said.stderr) == (1, True)


def test_an_ingest_into_older_tables_is_refused(
    spark: "SparkSession", store: ValkeyServer, old: Lake
) -> None:
    Writer(store).write(*the_story()[:1])
    with pytest.raises(PipelineFailed, match="holdfast pipeline backfill"):
        take_what_is_there(spark, Source(store.url), old, lambda taken: None)


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """What an older version leaves whose first ingest stops at a frame of a newer server."""
    lake = Lake(tmp_path / "lake")
    with monkeypatch.context() as then:
        then.setattr(lakes, "TABLES", FormerTables(TABLES))
        lake.sign()
    (lake.root / "_version").write_text(str(VERSION - 1))
    return Lake(lake.root)


@pytest.mark.parametrize("words", [["backfill"], ["report", "funnel"], ["audit"], ["compact"]])
def test_tables_of_an_older_version_without_a_batch_are_no_tables(
    empty: Lake, words: list[str]
) -> None:
    said = run(empty, *words)
    assert (said.exit_code, "run holdfast pipeline ingest first" in said.stderr) == (1, True)


def test_an_ingest_begins_where_an_older_version_could_not(
    store: ValkeyServer, empty: Lake
) -> None:
    id = empty.id
    writer = Writer(store)
    writer.write(published(60, 1), *died(61, 60, "ann/1", text="order 3 is unknown"))
    with local_tasks(1) as tasks:
        take_what_is_there(tasks, Source(store.url), empty, lambda taken: None)
    assert causes(empty) == {"order * is unknown": 1}
    assert (empty.version(), empty.id) == (VERSION, id)


@pytest.fixture
def narrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Tables as they were before events had wordings."""
    told = one_run(refusals())
    with monkeypatch.context() as then:
        then.setattr(lakes, "TABLES", FormerTables(TABLES))
        life, events = without_wordings(made_of(told).life), without_wordings(table_of(told))
        place = store_rows(tmp_path / "lake", life, events).root
    # Another process, of this version, opens them.
    return Lake(place)


def causes(lake: Lake) -> dict[str | None, int]:
    """The numbers of refusals by wording."""
    found: dict[str | None, int] = {}
    for line in map(orjson.loads, run(lake, "report", "causes").stdout.splitlines()):
        found[line["wording"]] = found.get(line["wording"], 0) + line["refusals"]
    return found


def test_tables_without_wordings_can_be_read_extended_and_merged(narrow: Lake) -> None:
    assert causes(narrow) == {None: 43}
    narrow.widen()
    told = one_run([published(60, 1), *died(61, 60, "ann/1", text="order 3 is unknown")])
    file = narrow.root / "life/new.parquet"
    pq.write_table(made_of(told).life, file)
    with narrow.changing():
        narrow.commit([NewFile("life", file.name)], {}, replaced=())
    add_events(narrow, 1, table_of(told))
    assert causes(narrow) == {None: 43, "order * is unknown": 1}
    assert run(narrow, "compact").exit_code == 0
    assert len(narrow.files("life")) == 1
    assert causes(narrow) == {None: 43, "order * is unknown": 1}
    with of_lake(narrow) as tables:
        [told_of] = tables.ask("select count(wording) as n, count(*) as events from {events}").rows
    assert told_of == (2, len([*refusals()]) + len(told))


def test_lost_files_without_wordings_can_be_given_up(narrow: Lake) -> None:
    add_events(narrow, 1, without_wordings(table_of(one_run([published(60, 1)]))))
    narrow.files("events")[0].unlink()
    assert give_up_lost(narrow) == 1
    with of_lake(narrow) as tables:
        [told] = tables.ask("select count(wording) as n, count(*) as events from {events}").rows
    assert told == (0, 3)
    # The file that replaces the lost one has the column.
    assert (narrow.is_mixed, narrow.open("events").lacking()) == (True, [])


def test_an_ingest_continues_with_tables_without_wordings(
    spark: "SparkSession", store: ValkeyServer, narrow: Lake
) -> None:
    writer = Writer(store)
    writer.write(published(60, 1), *died(61, 60, "ann/1", text="order 3 is unknown"))
    source = Source(store.url, accepts_loss=True)
    take_what_is_there(spark, source, narrow, lambda taken: None)
    assert causes(narrow) == {None: 43, "order * is unknown": 1}
