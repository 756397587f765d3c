"""Tables are kept small and made anew, and tell the same afterwards."""

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import orjson
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from holdfast.journal.schema import Event
from holdfast.pipeline import backfill as backfills
from holdfast.pipeline.arrow import ARROW
from holdfast.pipeline.batches import EVENTS
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import Lake, receipt_of, write_down
from holdfast.pipeline.source.keeping import keep
from holdfast.pipeline.swap import changing, keeping_up, reading, replace, unread
from tests.pipeline.losses import miss_each_file
from tests.unit.pipeline.events import SECOND
from tests.unit.pipeline.stories import acked, the_story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LATER_US = 3 * 86_400 * SECOND


class Killed(BaseException):
    """As if the process was."""


def later(event: Event) -> Event:
    msg = None if event.msg is None else event.msg + LATER_US * 1000
    return event._replace(ts=event.ts + LATER_US, msg=msg)


def write_events(lake: Lake, batch: int, events: list[Event]) -> None:
    """As an ingest leaves them."""
    lake.sign()
    rows = [(*each, "seed-1", 100 * batch + pos, pos) for pos, each in enumerate(events)]
    named = [dict(zip(ARROW.names, row, strict=True)) for row in rows]
    receipts = keep(iter([pa.RecordBatch.from_pylist(named, ARROW)]), lake.coming)
    told = [row for receipt in receipts for row in receipt.to_pylist()]
    lake.take_in("events", {row["file"]: f"d={row['day']}" for row in told}, batch)
    commits = lake.checkpoint / "commits"
    commits.mkdir(parents=True, exist_ok=True)
    (commits / str(batch)).touch()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A Thursday in two batches, and a Sunday on which bob acks what he got on Thursday."""
    lake = Lake(tmp_path / "lake")
    told = the_story()
    write_events(lake, 0, told[:30])
    write_events(lake, 1, told[30:])
    sunday = [later(each) for each in told]
    write_events(lake, 2, [*sunday, acked(3 * 86_400, 9, "bob/1")])
    return lake


def run(lake: Lake, *words: str) -> Result:
    return CliRunner().invoke(program, ["pipeline", *words, "--json", "--lake", str(lake.root)])


def folders(lake: Lake, table: str) -> list[int]:
    return sorted(int(each.name[-8:]) for each in (lake.root / table).glob("batch=*"))


def states(spark: "SparkSession", lake: Lake) -> dict[tuple[int, str], int]:
    """Lives by batch and state."""
    counted = lake.table(spark, "life").groupBy("batch", "state").count().collect()
    return {(row["batch"], row["state"]): row["count"] for row in counted}


def test_tables_are_made_anew_put_together_and_forgotten(
    spark: "SparkSession", lent: None, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as fate:
        fate.setattr(backfills, "_put_in_place", _die)
        with pytest.raises(Killed):
            run(lake, "backfill")
    assert not (lake.root / "life").exists()
    assert "backfill" in run(lake, "compact").stderr
    done = orjson.loads(run(lake, "backfill").stdout)
    assert done == {"first": "2025-11-20", "last": "2025-11-23", "days": 2, "found_done": 2}
    assert states(spark, lake) == {
        **{(1, "acked"): 18, (1, "dead"): 2},
        **{(2, "acked"): 19, (2, "dead"): 2},
    }
    # Whatever is gone was taken away on purpose.
    miss_each_file(lake)
    # From this the next ingest goes on.
    assert [row.receiver for row in lake.table(spark, "open").collect()] == ["bob/1"]
    assert lake.table(spark, "messages").count() == 1

    # As it is left by a backfill that was killed when all was done.
    (lake.root / "_backfill").mkdir()
    [step] = map(orjson.loads, run(lake, "compact").stdout.splitlines())
    assert (step["table"], step["day"], step["folders"]) == ("events", "2025-11-20", 2)
    assert folders(lake, "events") == [1, 2]
    assert lake.table(spark, "events").count() == 2 * len(the_story()) + 1
    assert not run(lake, "compact").stdout
    miss_each_file(lake)

    # Nobody can be asked here.
    assert run(lake, "retain", "--days", "1").exit_code == 2
    gone = run(lake, "retain", "--days", "1", "--yes")
    tables = [orjson.loads(line)["table"] for line in gone.stdout.splitlines()]
    assert tables == ["events", "events", "latency", "life"]
    assert {batch for batch, _ in states(spark, lake)} == {2}
    miss_each_file(lake)
    assert lake.table(spark, "events").isEmpty()
    assert "No violations" in run(lake, "audit").stderr
    shutil.rmtree(lake.folder("events", 2))
    lost = run(lake, "audit")
    assert (lost.exit_code, "batch=00000002 is missing" in lost.stderr) == (1, True)
    assert [row.receiver for row in lake.table(spark, "open").collect()] == ["bob/1"]


def _die(*_: object) -> None:
    raise Killed


def test_lives_of_days_whose_events_are_gone_are_not_lost(
    spark: "SparkSession", lent: None, tmp_path: Path
) -> None:
    lake = Lake(tmp_path / "lake")
    write_events(lake, 0, [later(each) for each in the_story()[:4]])
    life = spark.sql(
        "select 'n1' origin, 1L msg, 'a/1' receiver, 0 generation, '/a' channel, "
        "timestamp'2025-11-01' handed_ts, timestamp'2025-11-01' ended_ts, 1 attempts, "
        "0L redelivered, 0L refused, null code, null letter, null fingerprint, 'acked' state"
    )
    lake.write(life, "life", 0, by="state")
    said = run(lake, "backfill")
    assert (said.exit_code, "2025-11-01" in said.stderr) == (1, True)


def test_events_that_nobody_can_read_are_named_before_anything_is_made_anew(lake: Lake) -> None:
    [file] = lake.folder("events", 0).rglob("*.parquet")
    file.write_text("torn")
    plan = backfills.Plan(2, ((file.parent.name.removeprefix("d="),),), 0)
    with pytest.raises(PipelineFailed, match=f"{file} cannot be read: .* do without"):
        backfills.backfill(cast("Any", None), lake, plan, _die)


def test_lives_are_kept_as_long_as_what_they_are_made_from(tmp_path: Path) -> None:
    # Else the funnel would compare what was published with ends of something else.
    said = run(Lake(tmp_path), "retain", "--days", "10", "--events-days", "20")
    assert (said.exit_code, "less time" in said.stderr) == (2, True)


@pytest.fixture
def shelf(tmp_path: Path) -> Lake:
    """Folders that Spark need not look into."""
    lake = Lake(tmp_path / "lake")
    tables = ("events", "life", "latency")
    names = [f"{table}/batch={batch:08d}" for table in tables for batch in range(3)]
    for name in (*names, "_compact/life/batch=00000002"):
        (lake.root / name).mkdir(parents=True)
        (lake.root / name / "rows.parquet").write_text(name)
    lake.sign()
    (lake.checkpoint / "commits").mkdir(parents=True)
    (lake.checkpoint / "commits/2").touch()
    return lake


@pytest.mark.parametrize("survived", range(19))
def test_a_backfill_that_is_killed_while_it_ends_loses_no_table(
    spark: "SparkSession", shelf: Lake, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    made = Lake(shelf.root / "_backfill")
    for table in ("life", "latency"):
        made.folder(table, 0).mkdir(parents=True)
        (made.folder(table, 0) / "rows.parquet").write_text("new")
    (made.checkpoint / "commits").mkdir(parents=True)
    (made.checkpoint / "commits/0").touch()
    write_down(made.root / "plan.json", {"newest": 2, "steps": [["2025-11-20"]]})
    steps = iter(range(survived))
    for whose, name in ((shutil, "rmtree"), (Path, "rename"), (Path, "unlink")):
        monkeypatch.setattr(whose, name, _dying(getattr(whose, name), shelf, steps))
    with pytest.raises(Killed):
        _end_backfill(spark, shelf)
    monkeypatch.undo()
    if (made.root / "plan.json").exists():
        _end_backfill(spark, shelf)
    for table in ("life", "latency"):
        [file] = (shelf.root / table).rglob("*.parquet")
        assert (file.parent, file.read_text()) == (shelf.folder(table, 2), "new")


def _end_backfill(spark: "SparkSession", shelf: Lake) -> None:
    plan = backfills.begin(spark, shelf)
    assert plan.done == len(plan.steps)
    backfills.backfill(spark, shelf, plan, _die)


@pytest.mark.parametrize("survived", range(11))
def test_who_reads_after_a_kill_does_the_rest_first(
    shelf: Lake, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    old = [shelf.folder("life", batch) for batch in range(3)]
    new = shelf.root / "_compact/life/batch=00000002"
    for folder in (*old, new):
        receipt_of(folder).parent.mkdir(parents=True, exist_ok=True)
        write_down(receipt_of(folder), ["rows.parquet"])
    steps = iter(range(survived))
    for whose, name in ((shutil, "rmtree"), (Path, "rename"), (Path, "unlink")):
        monkeypatch.setattr(whose, name, _dying(getattr(whose, name), shelf, steps))
    with pytest.raises(Killed), changing(shelf):
        replace(shelf, old, {new: old[2]})
    monkeypatch.undo()
    with reading(shelf):
        left = {str(each.relative_to(shelf.root)) for each in (shelf.root / "life").glob("*/*")}
        assert "life/batch=00000002/rows.parquet" in left
        assert len(left) == (1 if survived else 3)
        text = (old[2] / "rows.parquet").read_text()
    assert ("_compact" in text) == (survived > 0)
    assert [receipt_of(folder).exists() for folder in old] == [not survived, not survived, True]


def _dying(real: Any, shelf: Lake, steps: Any) -> Any:
    def step(place: Path, *given: Any, **more: Any) -> None:
        # Others have folders, too.
        if shelf.root in place.parents and next(steps, None) is None:
            raise Killed
        real(place, *given, **more)

    return step


def test_only_one_keeps_the_tables_up(shelf: Lake) -> None:
    with keeping_up(shelf), pytest.raises(PipelineFailed, match="another"), keeping_up(shelf):
        pass


def test_a_file_that_a_power_cut_left_empty_is_named(shelf: Lake) -> None:
    # Of a batch that is being written.
    (shelf.root / "life/batch=00000003").mkdir()
    (shelf.root / "life/batch=00000003/part.parquet").touch()
    # And this was to have the names of its files.
    torn = receipt_of(shelf.folder("life", 2))
    torn.parent.mkdir(parents=True)
    torn.touch()
    with reading(shelf):
        pass
    (shelf.root / "life/batch=00000002/part.parquet").touch()
    with pytest.raises(PipelineFailed, match=r"part.parquet is empty"), reading(shelf):
        pass


def test_a_batch_that_is_not_there_is_missed(shelf: Lake) -> None:
    for batch in range(2):
        shutil.rmtree(shelf.folder("events", batch))
    with pytest.raises(PipelineFailed, match=r"0000 is missing, and 1 more"), reading(shelf):
        pass
    for batch in range(2):
        shelf.folder("events", batch).mkdir()
    with reading(shelf):
        # Somebody said so.
        pass


@pytest.mark.parametrize("lost", ["what is in a file", "a file", "a folder"])
def test_whoever_does_as_told_does_without_lost_events(shelf: Lake, lost: str) -> None:
    shelf.coming.mkdir()
    (shelf.coming / "part.parquet").write_text("rows")
    shelf.take_in("events", {"part.parquet": "d=2025-11-20"}, 2)
    file = shelf.folder("events", 2) / "d=2025-11-20/part.parquet"
    match lost:
        case "what is in a file":
            file.write_text("")
        case "a file":
            file.unlink()
        case _:
            shutil.rmtree(file.parents[1])
    with pytest.raises(PipelineFailed) as told, reading(shelf):
        pass
    [advice] = re.findall(" or (.*), and do without", str(told.value))
    for verb, place in map(str.split, advice.split(" and ")):
        Path(place).mkdir() if verb == "make" else Path(place).unlink()
    with reading(shelf):
        pass


def test_what_is_made_from_events_is_missed_where_it_is_needed(shelf: Lake) -> None:
    shutil.rmtree(shelf.folder("latency", 1))
    with pytest.raises(PipelineFailed, match="rebuild it with holdfast"), reading(shelf):
        pass
    with keeping_up(shelf, EVENTS):
        # A backfill needs no more.
        pass
    with pytest.raises(PipelineFailed, match=r"messages.*the next batch needs it.*backfill"):
        shelf.check()


def test_what_was_taken_away_on_purpose_is_not_missed_and_what_is_left_is(shelf: Lake) -> None:
    for batch in (1, 0):
        with changing(shelf):
            replace(shelf, [shelf.folder("events", batch)], {})
        with reading(shelf):
            pass
    (shelf.checkpoint / "commits/3").touch()
    with (
        pytest.raises(PipelineFailed, match=r"events/batch=00000003 is missing:"),
        reading(shelf),
    ):
        pass
    shutil.rmtree(shelf.folder("events", 2))
    with pytest.raises(PipelineFailed, match=r"2 is missing, and 1 more"), reading(shelf):
        pass


def test_where_there_are_no_tables_none_are_kept_up(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with pytest.raises(PipelineFailed, match="ingest first"), keeping_up(lake):
        pass
    assert not lake.root.exists()


def test_folders_that_somebody_reads_are_not_unread(shelf: Lake) -> None:
    with reading(shelf), unread(shelf) as is_unread:
        assert not is_unread
    with unread(shelf) as is_unread:
        assert is_unread
