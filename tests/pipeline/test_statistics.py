"""The log says what is in each file, so that other programs read only those they need."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from holdfast.pipeline import upkeep
from holdfast.pipeline.lake import TABLES, Lake
from holdfast.pipeline.statistics import statistics_of
from tests.pipeline.test_upkeep import ingested, later
from tests.unit.pipeline.stories import the_story


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Two days in three batches, of which those of the first day are merged."""
    lake = Lake(tmp_path_factory.mktemp("lake"))
    told = the_story()
    ingested(lake, 0, told[:30])
    ingested(lake, 1, told[30:])
    upkeep.compact(lake, [*upkeep.to_compact(lake)], lambda: None)
    ingested(lake, 2, [later(each) for each in told])
    return lake


@pytest.mark.parametrize("table", TABLES)
def test_the_log_has_the_ends_and_the_nulls_of_each_column_of_each_file(
    lake: Lake, table: str
) -> None:
    actions = pa.table(DeltaTable(str(lake.root / table)).get_add_actions())
    for told in actions.to_pylist():
        rows = pq.ParquetFile(lake.root / table / told["path"]).read()
        assert told["num_records"] == len(rows)
        for name in rows.column_names:
            if not pa.types.is_list(rows[name].type):
                values = pc.drop_null(rows[name])
                ends = pc.min_max(values) if len(values) else {"min": None, "max": None}
                assert told["min"].get(name) == _plain(ends["min"]), name
                assert told["max"].get(name) == _plain(ends["max"]), name
                assert told["null_count"][name] == rows[name].null_count, name


def _plain(value: Any) -> Any:
    return value if value is None else value.as_py()


@pytest.mark.parametrize("table", ["events", "life"])
def test_other_readers_skip_files_without_the_message_that_they_want(
    lake: Lake, table: str
) -> None:
    found = DeltaTable(str(lake.root / table)).to_pyarrow_dataset()
    newest = found.to_table(columns=["msg"])["msg"].to_pylist()
    wanted = ds.field("msg") == max(each for each in newest if each is not None)
    assert len([*found.get_fragments()]) == 2
    assert len([*found.get_fragments(filter=wanted)]) == 1
    assert found.count_rows(filter=wanted) > 0


def test_of_long_texts_only_what_bounds_them_is_in_the_log(tmp_path: Path) -> None:
    rows = pa.table({"a": ["x" * 100, "y" * 100], "b": [None, None], "c": ["k", None]})
    moment = datetime.fromisoformat("2025-11-20T10:00:00.000001+00:00")
    rows = rows.append_column("t", pa.array([moment] * 2, pa.timestamp("us", "UTC")))
    pq.write_table(
        rows.cast(pa.schema(rows.schema).set(1, pa.field("b", pa.int64()))), tmp_path / "f"
    )
    said = statistics_of(pq.read_metadata(tmp_path / "f"))
    at = "2025-11-20T10:00:00.000001Z"
    assert said == (
        f'{{"numRecords": 2, "minValues": {{"a": "{"x" * 64}", "c": "k", "t": "{at}"}}, '
        f'"maxValues": {{"c": "k", "t": "{at}"}}, '
        '"nullCount": {"a": 0, "b": 2, "c": 1, "t": 0}}'
    )
