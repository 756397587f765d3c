"""Messages are shared among tasks: each of them is some task's, and no other's."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import spans as planning
from pipeline.arrow import ARROW, batch
from pipeline.failures import PipelineFailed
from pipeline.making import make_of
from pipeline.runs import runs_of
from pipeline.spans import Span, read, spans
from tests.pipeline.stories import the_story
from tests.pipeline.told import made_of, one_run, table_of

_MESSAGES = ARROW.empty_table().select(["msg"]).schema


def file_of(place: Path, name: str, messages: list[int | None]) -> Path:
    """Events of these messages, a few in each part of the file."""
    rows = pa.Table.from_batches([batch({"msg": pa.array(messages, pa.int64())}, len(messages))])
    pq.write_table(rows, place / name, row_group_size=3)
    return place / name


def read_all(found: list[Span], *tables: str) -> list[list[int]]:
    return [
        [msg for table in tables for msg in read(span, table, _MESSAGES)["msg"].to_pylist()]
        for span in found
    ]


_Ids = list[int | None]
_IDS = st.lists(st.none() | st.integers(0, 40) | st.integers(2**62, 2**62 + 9), max_size=40)


@given(st.lists(_IDS, max_size=3), _IDS)
def test_each_message_is_in_one_span_with_all_that_tells_of_it(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[list[int | None]],
    still: list[int | None],
) -> None:
    place = tmp_path_factory.mktemp("spans")
    files = [file_of(place, f"{n}.parquet", each) for n, each in enumerate(events)]
    tables = {"events": files, "open": [file_of(place, "open.parquet", still)]}
    with pytest.MonkeyPatch.context() as few:
        few.setattr(planning, "_FEWEST", 5)
        few.setattr(planning, "_MOST", 10)
        found = spans(tables, 2)
    parts = read_all(found, "events", "open")
    given = [msg for each in (*events, still) for msg in each if msg is not None]
    assert sorted(msg for part in parts for msg in part) == sorted(given)
    assert sum(len(set(part)) for part in parts) == len(set(given))


def test_spans_are_of_like_size_and_read_little_of_what_others_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_FEWEST", 10)
    files = [file_of(tmp_path, f"{n}.parquet", [*range(100 * n, 100 * n + 100)]) for n in range(4)]
    found = spans({"events": files}, 4)
    assert all(80 <= len(part) <= 120 for part in read_all(found, "events"))
    assert max(len(span.files["events"]) for span in found) <= 2
    # More tasks would have less to do than it takes to begin.
    assert len(spans({"events": files}, 1000)) == 40
    monkeypatch.setattr(planning, "_MOST", 50)
    assert len(spans({"events": files}, 1)) == 8


def test_where_no_message_is_one_task_says_so(tmp_path: Path) -> None:
    [span] = spans({"events": [file_of(tmp_path, "0.parquet", [None])], "open": []}, 2)
    assert read_all([span], "events", "open") == [[]]


def test_a_file_that_nobody_can_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    carried = tmp_path / "messages" / "batch=00000001" / "part.parquet"
    carried.parent.mkdir(parents=True)
    carried.write_text("torn")
    told = "part.parquet cannot be read: what was in it is lost; .*backfill makes it anew"
    with pytest.raises(PipelineFailed, match=told):
        spans({"messages": [carried]}, 2)


def test_many_tasks_make_what_one_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = one_run(the_story())
    pq.write_table(table_of(told), tmp_path / "events.parquet", row_group_size=7)
    monkeypatch.setattr(planning, "_FEWEST", 5)
    found = spans({"events": [tmp_path / "events.parquet"], "messages": [], "open": []}, 9)
    assert len(found) > 5
    made = [each for span in found for each in make_of(span, runs_of([]), tmp_path)]
    life = [
        {**row, "state": each.place.partition("=")[2]}
        for each in made
        if each.table == "life"
        for row in pq.read_table(tmp_path / each.file).to_pylist()
    ]
    whole = made_of(told)
    assert sorted(life, key=repr) == sorted(whole.life.to_pylist(), key=repr)
    [unsettled] = [each for each in made if each.table == "messages"]
    assert pq.read_table(tmp_path / unsettled.file) == whole.messages
