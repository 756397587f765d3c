"""An audit checks only days with new events, and finds what a full one would find."""

import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from holdfast.journal.schema import Event
from holdfast.pipeline.audit import memory as audits
from holdfast.pipeline.audit.findings import COUNTS, find
from holdfast.pipeline.audit.memory import remembering
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import Lake
from holdfast.pipeline.on_duckdb import DuckTables, of_lake
from holdfast.pipeline.reports import memory as memories
from holdfast.pipeline.scope import EVERYTHING, Scope
from holdfast.pipeline.upkeep import Cut, forget
from tests.pipeline.stored import add_events, store_events
from tests.unit.pipeline.events import START_US, published
from tests.unit.pipeline.framed_events import one_run, table_of
from tests.unit.pipeline.stories import acked, handed, start, the_story

DAY_S = 86_400
SENT = [published(1, 1), handed(2, 1, "ann/1"), acked(3, 1, "ann/1")]


def on_day(number: int, events: list[Event]) -> list[Event]:
    """The same events so many days later."""
    return [
        each._replace(
            ts=each.ts + number * DAY_S * 1_000_000,
            msg=each.msg and each.msg + number * DAY_S * 10**9,
        )
        for each in events
    ]


class Auditor:
    """Audits a lake, and notes how many days were read and checked."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def __call__(self, scope: Scope = EVERYTHING) -> tuple[int, dict[str, int]]:
        steps = []
        with remembering(self._lake) as memory, of_lake(self._lake) as tables:
            find(tables, memory, scope, {}, {}, 0, lambda done, total: steps.append(done))
            counts = dict(tables.ask(COUNTS).rows)
        return max(steps, default=0), {
            kind: n for kind, n in counts.items() if not kind.startswith("run.")
        }


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Three clean days with the same events, audited once."""
    told = [start(-1)]
    for number in range(3):
        told += on_day(number, the_story())
    lake = store_events(tmp_path_factory.mktemp("audited"), one_run(told))
    assert Auditor(lake)() == (6, {})
    return lake


@pytest.fixture
def lake(audited: Lake, tmp_path: Path) -> Lake:
    return Lake(Path(shutil.copytree(audited.root, tmp_path / "lake")))


@pytest.fixture
def audit(lake: Lake) -> Auditor:
    return Auditor(lake)


def asked(lake: Lake, days: range) -> int:
    """The number of questions in an audit of clean days like those of the story."""
    add_events(lake, 1, table_of(one_run([each for day in days for each in on_day(day, SENT)])))
    with pytest.MonkeyPatch.context() as patch, of_lake(lake) as tables:
        asked: list[str] = []
        real = DuckTables._ready

        def ready(tables: DuckTables, question: str) -> str:
            asked.append(question)
            return real(tables, question)

        patch.setattr(DuckTables, "_ready", ready)
        with remembering(lake) as memory:
            find(tables, memory, EVERYTHING, {}, {}, 0, lambda done, total: None)
        assert all(kind.startswith("run.") for kind, _ in tables.ask(COUNTS).rows)
    return len(asked)


def test_many_days_take_no_more_questions_than_one(tmp_path: Path) -> None:
    one = store_events(tmp_path / "one", [])
    many = store_events(tmp_path / "many", [])
    assert asked(one, range(1)) == asked(many, range(30))


@pytest.mark.parametrize("most", [1, 100, 10**6])
def test_days_are_read_together_as_far_as_memory_allows(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    add_events(lake, 1, table_of(one_run([acked(2 * DAY_S + 60, 0, "ann/1")])))
    shutil.rmtree(lake.root / "_audit")
    monkeypatch.setattr(memories, "_MOST_ROWS", most)
    rows: list[int] = []
    real = memories.together

    def together(groups: Mapping[Any, int]) -> Iterator[list[Any]]:
        for few in real(groups):
            rows.append(sum(groups[each] for each in few))
            assert rows[-1] <= most or len(few) == 1
            yield few

    monkeypatch.setattr(audits, "together", together)
    audit = Auditor(lake)
    assert audit() == (6, {"settled_twice": 1, "never_handed": 1, "too_many_ends": 1})
    # Only the day with the fault is checked again.
    assert audit() == (1, {"settled_twice": 1, "never_handed": 1, "too_many_ends": 1})
    assert len(rows) == {1: 7, 100: 7, 10**6: 3}[most]


def test_clean_days_are_not_checked_again(audit: Auditor) -> None:
    assert audit() == (0, {})


def test_a_fault_in_later_events_about_a_clean_day_is_found(lake: Lake, audit: Auditor) -> None:
    add_events(lake, 1, table_of(one_run([acked(2 * DAY_S + 60, 0, "ann/1")])))
    wrong = {"settled_twice": 1, "never_handed": 1, "too_many_ends": 1}
    # The third day is read again, and all days that its events are about are checked.
    assert audit() == (3, wrong)
    assert audit() == (1, wrong)


def test_only_a_new_day_is_read_and_checked(lake: Lake, audit: Auditor) -> None:
    add_events(lake, 1, table_of(one_run(on_day(3, the_story()))))
    assert audit() == (2, {})


def test_a_changed_file_is_read_again(lake: Lake, audit: Auditor) -> None:
    os.utime(lake.files("events")[0], ns=(1, 1))
    assert audit() == (2, {})


def test_the_memory_of_a_removed_day_is_deleted(lake: Lake, audit: Auditor) -> None:
    forget(lake, [Cut("events", date(2025, 11, 21), 1)])
    assert audit() == (0, {})
    assert len([*(lake.root / "_audit").glob("*-*")]) == 4


@pytest.mark.parametrize(
    ("scope", "days", "wrong"),
    [
        (Scope(since=START_US // 1000 + DAY_S * 1000), 2, {}),
        (Scope(until=START_US // 1000 + 1000), 1, {"settled_twice": 1}),
        (Scope(channel="/chat"), 1, {"settled_twice": 1}),
        (Scope(channel="/orders"), 1, {}),
        (Scope(receiver="ann/1"), 1, {"settled_twice": 1}),
        (Scope(receiver="bob/1"), 1, {}),
    ],
)
def test_an_audit_with_a_scope_finds_only_faults_within_it(
    lake: Lake, audit: Auditor, scope: Scope, days: int, wrong: dict[str, int]
) -> None:
    add_events(lake, 1, table_of(one_run([acked(2 * DAY_S + 60, 0, "ann/1")])))
    steps, found = audit(scope)
    # The third day is read again.
    assert steps == days + 1
    assert {kind: n for kind, n in found.items() if kind == "settled_twice"} == wrong


def test_an_audit_that_may_not_write_beside_the_tables_checks_everything_each_time(
    lake: Lake, audit: Auditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda place, how: False)
    assert audit() == (6, {})
    assert audit() == (6, {})


def test_an_audit_whose_memory_was_written_elsewhere_fails(
    lake: Lake, audit: Auditor, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(lake.root / "_audit")
    monkeypatch.setattr(DuckTables, "keep_by", lambda *given: None)
    with pytest.raises(PipelineFailed, match="all machines of a cluster"):
        audit()
