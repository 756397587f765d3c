"""The funnel adds up remembered sums of files, with the same result as without them."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.pipeline.on_duckdb import DuckTables, of_lake
from holdfast.pipeline.reports import memory, sums
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.upkeep import Cut, forget
from tests.pipeline.stored import add_events, store_events
from tests.pipeline.tales import DAY, a_week, more, work
from tests.unit.pipeline.events import published
from tests.unit.pipeline.framed_events import one_run, table_of
from tests.unit.pipeline.stories import acked, handed, the_story

if TYPE_CHECKING:
    from holdfast.pipeline.lake import Lake
    from holdfast.pipeline.reports.tables import Tables

pytestmark = pytest.mark.untraced


@pytest.fixture
def lake(tmp_path: Path) -> "Lake":
    """A week; on its first day there are messages from before the journal, too."""
    told = [*the_story(), *more(), *a_week()]
    told += [*work(9, dead=2), published(100, 1, "/ret/ann/1"), published(101, 1, "/ret/ann/2")]
    told += [acked(2 * DAY, -5, "ann/1"), handed(3, -DAY, "ann/1"), acked(DAY, -DAY, "ann/1")]
    return store_events(tmp_path, one_run(told))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """For each day that was read, its table."""
    found: list[str] = []
    find_out = sums._find_out

    def note(tables: "Tables", table: str, files: list[Path], drafts: dict[str, Path]) -> None:
        found.extend([table] * len(drafts))
        find_out(tables, table, files, drafts)

    monkeypatch.setattr(sums, "_find_out", note)
    return found


def check(lake: "Lake") -> None:
    with of_lake(lake) as tables:
        without = tables.ask(FUNNEL)
        sums.recall(tables, lake)
        assert tables.ask(FUNNEL) == without


def test_remembered_sums_give_the_same_funnel_without_reading_files_again(
    lake: "Lake", read: list[str]
) -> None:
    check(lake)
    assert sorted(read) == ["events"] * 8 + ["life"]
    read.clear()
    check(lake)
    assert read == []


def test_sums_of_another_version_are_computed_anew(
    lake: "Lake", read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(memory, "_VERSION", "1")
        check(lake)
    all_files = read.copy()
    read.clear()
    check(lake)
    assert read == all_files


def test_only_a_new_day_is_read(lake: "Lake", read: list[str]) -> None:
    check(lake)
    read.clear()
    add_events(lake, 1, table_of(one_run([published(9 * DAY, 3)])))
    check(lake)
    assert read == ["events"]


def test_a_remembered_funnel_reads_only_files_with_messages_of_the_first_day(
    lake: "Lake", monkeypatch: pytest.MonkeyPatch
) -> None:
    check(lake)
    opened: list[Path] = []
    real = DuckTables.add_files

    def note(tables: DuckTables, name: str, files: list[Path], schema: str) -> None:
        if name.startswith("known_events"):
            opened.extend(files)
        real(tables, name, files, schema)

    monkeypatch.setattr(DuckTables, "add_files", note)
    check(lake)
    # Two later days have acks of these messages.
    assert [file.parent.name[-2:] for file in opened] == ["20", "21", "22"]
    assert len(lake.files("events")) == 8


def test_events_added_after_the_tables_were_opened_do_not_count(lake: "Lake") -> None:
    with of_lake(lake) as tables:
        before = tables.ask(FUNNEL)
        add_events(lake, 1, table_of(one_run([published(9 * DAY, 3)])))
        sums.recall(tables, lake)
        assert tables.ask(FUNNEL) == before


def test_messages_of_days_that_were_removed_do_not_count(lake: "Lake", read: list[str]) -> None:
    check(lake)
    read.clear()
    forget(lake, [Cut("events", date(2025, 11, 22), 2)])
    check(lake)
    assert read == []
