"""The lake, without Spark."""

import os
import shutil
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from holdfast.pipeline import delta, upkeep
from holdfast.pipeline.arrow import arrow_of
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import CARRIED, EVENTS, MADE, TABLES, Lake, NewFile

pytestmark = pytest.mark.untraced

DAYS = ("2025-11-19", "2025-11-20", "2025-11-21")


class Killed(BaseException):
    """As if the process had been killed."""


@pytest.mark.parametrize(("mib", "is_small"), [(0, True), (20, True), (40, False)])
def test_a_lake_counts_as_small_up_to_a_total_size(
    tmp_path: Path, mib: int, is_small: bool
) -> None:
    for table in ("events", "life"):
        place = tmp_path / table
        place.mkdir(parents=True)
        with (place / "part.parquet").open("wb") as file:
            file.truncate(mib * 1024**2 // 2)
    assert Lake(tmp_path).is_small() == is_small


def write(lake: Lake, table: str, name: str, message: int) -> NewFile:
    """A file with one row, which is about this message."""
    place = lake.root / table / name
    place.parent.mkdir(parents=True, exist_ok=True)
    columns, _ = TABLES[table]
    row = {"msg": message, "n": message}
    pq.write_table(pa.Table.from_pylist([row], arrow_of(columns)), place)
    return NewFile(table, name)


def batch(lake: Lake, number: int) -> list[NewFile]:
    """New files of all tables."""
    made = [write(lake, table, f"{number}.parquet", number) for table in MADE]
    return [*made, *(write(lake, EVENTS, f"d={day}/{number}.parquet", number) for day in DAYS)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with two states; each adds one file to every table, and three to the events."""
    lake = Lake(tmp_path_factory.mktemp("made"))
    lake.sign()
    for number in range(2):
        with lake.changing():
            lake.commit(batch(lake, number), {"n1": number})
    return lake.root


@pytest.fixture
def lake(made: Path, tmp_path: Path) -> Lake:
    """A copy of it for one test."""
    return Lake(shutil.copytree(made, tmp_path / "a lake"))


def rows(lake: Lake, table: str, at: int | None = None) -> list[int]:
    """The messages that the rows are about."""
    column = "msg" if "msg" in arrow_of(TABLES[table][0]).names else "n"
    files = lake.files(table, at=at)
    return sorted(pq.ParquetFile(file).read()[column][0].as_py() for file in files)


def holds(lake: Lake, *numbers: int) -> bool:
    """Whether the tables have exactly the rows of these batches."""
    assert rows(lake, EVENTS) == sorted(3 * numbers)
    for table in MADE:
        assert rows(lake, table) == ([numbers[-1]] if table in CARRIED else [*numbers])
    return lake.offset() == {"n1": numbers[-1]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("since", "days"),
    [(None, DAYS), (date(2025, 11, 20), DAYS[1:]), (date(2025, 11, 22), ())],
)
def test_readers_get_the_files_of_the_days_that_they_ask_for(
    lake: Lake, since: date | None, days: tuple[str, ...]
) -> None:
    found = [file.parent.name for file in lake.files(EVENTS, since)]
    assert found == [f"d={day}" for day in days for _ in range(2)]
    assert len(lake.files("life", since)) == 2


@pytest.mark.slow
def test_carried_tables_have_only_the_rows_of_the_newest_state(lake: Lake) -> None:
    assert holds(lake, 0, 1)


def dying_after(commits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = iter(range(commits))
    real = delta.Table.commit

    def commit(table: delta.Table, *given: Any, **more: Any) -> None:
        if next(steps, None) is None:
            raise Killed
        real(table, *given, **more)

    monkeypatch.setattr(delta.Table, "commit", commit)


@pytest.mark.slow
@pytest.mark.parametrize("survived", range(len(TABLES)))
def test_a_state_that_a_kill_left_incomplete_is_not_read_and_is_undone_by_the_next_change(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    with monkeypatch.context() as fate:
        dying_after(survived, fate)
        with pytest.raises(Killed), lake.changing():
            lake.commit(batch(lake, 2), {"n1": 2})
    assert holds(lake, 0, 1)
    with lake.changing():
        # Other readers of the tables do not see it any more, either.
        assert all(lake.open(table).number() == 1 for table in TABLES)
        assert holds(lake, 0, 1)
        lake.commit(batch(lake, 3), {"n1": 3})
    assert holds(lake, 0, 1, 3)


@pytest.mark.slow
@pytest.mark.parametrize("survived", range(len(TABLES)))
def test_a_first_state_that_a_kill_left_incomplete_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    lake = Lake(tmp_path / "lake")
    lake.sign()
    with monkeypatch.context() as fate:
        dying_after(survived, fate)
        with pytest.raises(Killed), lake.changing():
            lake.commit(batch(lake, 0), {"n1": 0})
    with pytest.raises(PipelineFailed, match="ingest first"):
        lake.newest()
    lake.sign()
    with lake.changing():
        assert lake.offset() == {}
        lake.commit(batch(lake, 1), {"n1": 1})
    assert holds(lake, 1)


@pytest.mark.slow
def test_a_reader_keeps_its_state_of_all_tables_while_newer_ones_are_committed(lake: Lake) -> None:
    number = lake.newest()
    for batches in (2, 3):
        with lake.changing():
            lake.commit(batch(lake, batches), {"n1": batches})
    assert rows(lake, EVENTS, number) == [0, 0, 0, 1, 1, 1]
    assert rows(lake, "open", number) == [1]
    assert rows(lake, "life", number) == [0, 1]
    assert holds(lake, 0, 1, 2, 3)


@pytest.mark.slow
def test_a_commit_that_a_power_cut_left_empty_does_not_count(lake: Lake) -> None:
    with lake.changing():
        lake.commit(batch(lake, 2), {"n1": 2})
    newest = lake.open(EVENTS).newest().version()
    (lake.root / EVENTS / "_delta_log" / f"{newest:020d}.json").write_text("")
    # Its digest comes later, once it is on the disk.
    (lake.root / EVENTS / "_digests").unlink()
    lake = Lake(lake.root)
    with lake.changing():
        assert holds(lake, 0, 1)
        lake.commit(batch(lake, 3), {"n1": 3})
    assert holds(lake, 0, 1, 3)


@pytest.mark.slow
def test_the_batches_of_a_process_do_not_read_the_log_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = DeltaTable.__init__

    def note(table: DeltaTable, place: str, **more: Any) -> None:
        opened.append(Path(place).name)
        real(table, place, **more)

    monkeypatch.setattr(DeltaTable, "__init__", note)
    for number in range(2, 6):
        with lake.changing():
            lake.commit(batch(lake, number), {"n1": number})
        assert holds(lake, *range(number + 1))
    assert sorted(opened) == sorted(TABLES)
    # What another process has done is seen all the same.
    with Lake(lake.root).changing():
        Lake(lake.root).commit(batch(lake, 6), {"n1": 6})
    assert holds(lake, *range(7))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the files that were synced to disk."""
    found: set[str] = set()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        found.add(Path(f"/proc/self/fd/{descriptor}").resolve().name)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return found


@pytest.mark.slow
def test_merged_files_are_synced_to_disk_like_the_commit_that_names_them(
    lake: Lake, settled: set[str]
) -> None:
    settled.clear()
    upkeep.compact(lake, [*upkeep.to_compact(lake)], lambda: None)
    [merged] = lake.files("life")
    newest = lake.open("life").newest().version()
    assert {merged.name, f"{newest:020d}.json"} <= settled


@pytest.mark.slow
def test_the_commit_that_undoes_an_incomplete_state_is_synced_to_disk(
    lake: Lake, settled: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as fate:
        dying_after(1, fate)
        with pytest.raises(Killed), lake.changing():
            lake.commit(batch(lake, 2), {"n1": 2})
    settled.clear()
    with lake.changing():
        [undo] = {name for name in settled if name.endswith(".json")}
    newest = {lake.open(table).newest().version() for table in CARRIED}
    assert undo == f"{max(newest):020d}.json"


@pytest.mark.slow
def test_the_first_files_of_a_lake_are_synced_to_disk(tmp_path: Path, settled: set[str]) -> None:
    Lake(tmp_path / "lake").sign()
    assert settled == {"_id.draft", "_version.draft", "_digests.draft", f"{0:020d}.json"}


@pytest.mark.slow
def test_a_commit_of_files_that_are_not_in_the_folder_fails(lake: Lake) -> None:
    with pytest.raises(PipelineFailed, match="in one folder"), lake.changing():
        lake.commit([NewFile("life", "elsewhere.parquet")], {})
    assert holds(lake, 0, 1)


def test_upkeep_of_a_lake_that_does_not_exist_fails_and_creates_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with pytest.raises(PipelineFailed, match="ingest first"), lake.alone_with_tables():
        pass
    assert not lake.root.exists()


def test_a_kind_of_work_is_done_only_once_at_a_time(lake: Lake) -> None:
    with (
        lake.alone_with_tables(),
        lake.alone("ingest"),
        pytest.raises(PipelineFailed, match="another upkeep"),
        lake.alone("upkeep"),
    ):
        pass


def test_work_waits_for_the_same_kind_of_work_if_it_may(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as other:
        other.enter_context(Lake(lake.root).alone("ingest"))
        paused: list[float] = []

        def pause(seconds: float) -> None:
            paused.append(seconds)
            if len(paused) == 3:
                other.close()

        monkeypatch.setattr("holdfast.pipeline.lake.sleep", pause)
        with pytest.raises(PipelineFailed, match="let this one wait with --wait 40"):
            lake.alone("ingest").__enter__()
        assert paused == []
        with lake.alone("ingest", 60):
            assert len(paused) == 3


def test_work_can_be_done_again_although_a_child_still_has_the_file_of_its_lock_open(
    lake: Lake,
) -> None:
    waits, goes_on = os.pipe()
    with lake.alone("upkeep"):
        child = os.fork()
        if child == 0:
            os.close(goes_on)
            os.read(waits, 1)
            os._exit(0)
    try:
        with lake.alone("upkeep"):
            pass
    finally:
        os.close(waits)
        os.close(goes_on)
        os.waitpid(child, 0)
