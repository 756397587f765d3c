"""Spans divide the messages among tasks: each message belongs to exactly one."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.pipeline import spans as planning
from holdfast.pipeline.arrow import ARROW, batch
from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import MADE, OPEN
from holdfast.pipeline.made_tables import Settled, make_tables_of
from holdfast.pipeline.runs import runs_of
from holdfast.pipeline.spans import Span, parts, read, spans
from tests.unit.pipeline.events import published
from tests.unit.pipeline.framed_events import group_of, made_of, one_run, open_of, table_of
from tests.unit.pipeline.stories import handed, start, the_story

_MESSAGES = ARROW.empty_table().select(["msg"]).schema


def file_of(place: Path, name: str, messages: Sequence[int | None], rows_in_part: int = 3) -> Path:
    """Events of these messages, a few in each part of the file."""
    rows = pa.Table.from_batches([batch({"msg": pa.array(messages, pa.int64())}, len(messages))])
    pq.write_table(rows, place / name, row_group_size=rows_in_part)
    return place / name


def read_all(found: list[Span], *tables: str) -> list[list[int]]:
    return [
        [msg for table in tables for msg in read(span, table, _MESSAGES)["msg"].to_pylist()]
        for span in found
    ]


_IDS = st.lists(st.none() | st.integers(0, 40) | st.integers(2**62, 2**62 + 9), max_size=40)


@pytest.mark.slow
@given(st.lists(_IDS, max_size=3), _IDS)
def test_each_message_is_in_one_span_with_all_its_rows(
    events: list[list[int | None]], still: list[int | None]
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as few:
        place = Path(folder)
        files = [file_of(place, f"{n}.parquet", each) for n, each in enumerate(events)]
        tables = {"events": files, "open": [file_of(place, "open.parquet", still)]}
        few.setattr(planning, "_FEWEST", 5)
        few.setattr(planning, "_MOST", 10)
        parts = read_all(spans(tables, 2), "events", "open")
    given = [msg for each in (*events, still) for msg in each if msg is not None]
    assert sorted(msg for part in parts for msg in part) == sorted(given)
    assert sum(len(set(part)) for part in parts) == len(set(given))


@pytest.mark.slow
def test_spans_have_similar_sizes_and_share_few_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_FEWEST", 10)
    files = [file_of(tmp_path, f"{n}.parquet", [*range(100 * n, 100 * n + 100)]) for n in range(4)]
    found = spans({"events": files}, 4)
    assert all(80 <= len(part) <= 120 for part in read_all(found, "events"))
    assert max(len(span.files["events"]) for span in found) <= 2
    # With more tasks, each would have less to do than its start takes.
    assert len(spans({"events": files}, 1000)) == 40
    monkeypatch.setattr(planning, "_MOST", 50)
    assert len(spans({"events": files}, 1)) == 8


@pytest.mark.slow
def test_a_span_that_is_too_large_is_read_in_smaller_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each part of the file has a message that is much older than the others.
    messages = [0 if number % 30 == 0 else 10**9 + number // 2 for number in range(900)]
    files = [file_of(tmp_path, "0.parquet", messages, 300)]
    monkeypatch.setattr(planning, "_FEWEST", 10)
    monkeypatch.setattr(planning, "_MOST", 50)
    found = spans({"events": files, "open": []}, 1)
    assert max(map(len, read_all(found, "events"))) > 200
    told = read_all([part for span in found for part in parts(span)], "events")
    assert max(map(len, told)) <= 100
    assert sorted(msg for part in told for msg in part) == sorted(messages)
    assert sum(len({*part}) for part in told) == len({*messages})


def test_a_file_without_statistics_is_read(tmp_path: Path) -> None:
    rows = pa.Table.from_batches([batch({"msg": pa.array([5, 7])}, 2)])
    pq.write_table(rows, tmp_path / "0.parquet", write_statistics=False)
    found = spans({"events": [tmp_path / "0.parquet"]}, 2)
    assert sorted(msg for part in read_all(found, "events") for msg in part) == [5, 7]


def test_events_without_messages_make_one_empty_span(tmp_path: Path) -> None:
    [span] = spans({"events": [file_of(tmp_path, "0.parquet", [None])], "open": []}, 2)
    assert read_all([span], "events", "open") == [[]]


def test_an_unreadable_file_is_named_with_its_remedy(tmp_path: Path) -> None:
    carried = tmp_path / "messages" / "part.parquet"
    carried.parent.mkdir(parents=True)
    carried.write_text("torn")
    told = "part.parquet cannot be read: its rows are lost; .*rebuild it with holdfast"
    with pytest.raises(PipelineFailed, match=told):
        spans({"messages": [carried]}, 2)


@pytest.mark.slow
def test_many_tasks_make_the_same_tables_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_FEWEST", 5)
    more = [published(40, 3, "/passing", kept=1), handed(40, 40, "ann/1"), handed(40, 40, "x/-1")]
    story = the_story()
    told = one_run([*story[:30], *more, *story[30:], start(50)])
    told[-1] = told[-1]._replace(epoch="seed-2")
    first, second = told[:33], told[33:]
    before = made_of(first)
    whole = made_of(second, before)
    # Some copies have no further events, and one is lost with the process.
    assert len(open_of(before)) > 1
    assert len(whole.lost) == 1
    tables = {"events": table_of(second), "messages": before.messages, "open": open_of(before)}
    for name, rows in tables.items():
        pq.write_table(rows, tmp_path / name, row_group_size=7)
    found = spans({name: [tmp_path / name] for name in tables}, 9)
    assert len(found) > 5
    runs = runs_of(group_of(each) for each in second)
    lake = tmp_path / "lake"
    for name in MADE:
        (lake / name).mkdir(parents=True)
    made = [each for span in found for each in make_tables_of(span, runs, lake)]
    tables = {"life": ended_of(whole), "open": open_of(whole)}
    for table, rows in {**tables, "messages": whole.messages, "lost": whole.lost}.items():
        files = [lake / table / each.file for each in made if each.table == table]
        assert in_order(pa.concat_tables(map(pq.read_table, files))) == in_order(rows)


def ended_of(batch: Settled) -> pa.Table:
    return batch.life.filter(pc.not_equal(batch.life["state"], OPEN))


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=repr)
