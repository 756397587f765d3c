"""Moves that an older server wrote count as those of this one: in its journal and in its tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from holdfast.journal.schema import Event
from holdfast.pipeline.backfill import Backfill
from holdfast.pipeline.delta import Table
from holdfast.pipeline.ingest import Source, take_what_is_there
from holdfast.pipeline.lake import EVENTS, OLDEST, Lake
from holdfast.pipeline.migration import clean_up, take_back
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.catalogue import REPORTS
from holdfast.pipeline.source.moves import ADDED
from holdfast.pipeline.tasks import LocalTasks
from tests.pipeline.audited import findings_of
from tests.pipeline.deaths import Killed, kill_at
from tests.pipeline.journals import Writer, frame_of
from tests.pipeline.stored import store_events
from tests.pipeline.tales import DAY, merged, work
from tests.store.servers import ValkeyServer
from tests.unit.pipeline.framed_events import one_run
from tests.unit.pipeline.stories import start, the_story

TASKS = LocalTasks(1)


def told() -> list[Event]:
    """The last items are worked on a day later."""
    late = [
        each if each.kind == "published" else each._replace(ts=each.ts + DAY * 1_000_000)
        for each in work(3, dead=1)
    ]
    more = [each._replace(msg=(each.msg or 0) + 10**12) for each in late]
    for place, each in enumerate(more):
        if each.kind == "published":
            more[place] = each._replace(ts=(each.msg or 0) // 1000)
    return [start(0), *work(10, dead=2), *merged(50), *more]


def as_older(events: list[Event]) -> Iterator[Event]:
    """The same, as a server before this one wrote it."""
    published: dict[int | None, Event] = {}
    for place, each in enumerate(events):
        if each.kind == "published":
            if each.size == 0:
                continue
            published[each.msg] = each
        if each.kind == "moved":
            count = 0
            while events[place + 1 + count].kind == "entered":
                count += 1
            if count:
                yield published[each.msg]._replace(copies=count, kept=count, size=0)
        yield each


def everything(lake: Lake) -> dict[str, Any]:
    """The rows of all reports, and the findings of an audit."""
    with of_lake(lake) as tables:
        known: dict[str, Any] = {name: tables.ask(REPORTS[name]).rows for name in REPORTS}
    return known | {"audit": findings_of(lake)}


@pytest.fixture
def of_today(tmp_path: Path) -> dict[str, Any]:
    return everything(store_events(tmp_path / "today", one_run(told())))


def test_frames_of_an_older_server_count_as_those_of_this_one(
    store: ValkeyServer, tmp_path: Path, of_today: dict[str, Any]
) -> None:
    writer, lake = Writer(store), Lake(tmp_path / "lake")
    for each in as_older(told()):
        writer.write_frame(frame_of([each], version=2))
    take_what_is_there(TASKS, Source(store.url), lake, lambda taken: None)
    assert everything(lake) == of_today


def test_frames_of_an_older_server_without_moves_are_read(
    store: ValkeyServer, tmp_path: Path
) -> None:
    writer, lake = Writer(store), Lake(tmp_path / "lake")
    writer.write_frame(frame_of(the_story(), version=2))
    take_what_is_there(TASKS, Source(store.url), lake, lambda taken: None)
    assert everything(lake) == everything(store_events(tmp_path / "today", one_run(the_story())))


@pytest.fixture
def older(tmp_path: Path) -> Lake:
    """Tables of an older version."""
    lake = store_events(tmp_path / "lake", one_run(as_older(told())))
    (lake.root / "_version").write_text(str(OLDEST))
    return lake


def test_older_tables_count_as_those_of_this_version_after_a_backfill(
    older: Lake, of_today: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = older.listed(EVENTS, at=older.state())
    with monkeypatch.context() as fate:

        def die(*args: object, **more: object) -> None:
            raise Killed

        fate.setattr(Table, "exchange", die)
        with pytest.raises(Killed):
            take_back(older)
    assert older.listed(EVENTS, at=older.state()) == before
    for _ in range(2):
        take_back(older)
    Backfill(older).run(TASKS, lambda done: None)
    clean_up(older)
    assert everything(older) == of_today


def test_a_backfill_that_an_older_version_began_begins_again(
    older: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as fate:
        kill_at(fate, Backfill, "_put_in_place")
        with pytest.raises(Killed):
            Backfill(older).run(TASKS, lambda done: None)
    assert Backfill(older).done == 2
    (older.root / "_backfill/_version").write_text(str(OLDEST))
    assert Backfill(older).done == 0


def test_nothing_is_added_for_messages_of_removed_days(older: Lake) -> None:
    [first, *_] = sorted({file.day or "" for file in older.found(EVENTS, at=older.state())})
    files = [file for file in older.found(EVENTS, at=older.state()) if file.day == first]
    older.open(EVENTS).exchange(files, (), is_same=False)
    take_back(older)
    listed = older.listed(EVENTS, at=older.state())
    assert all(first not in str(file) for file in listed)
    rows = [row for file in listed for row in pq.ParquetFile(file).read().to_pylist()]
    assert [row for row in rows if row["pos"] == ADDED] == []
