"""A report on some days reads no events of earlier ones."""

from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from holdfast.pipeline.lake import Lake, NewFile
from holdfast.pipeline.on_duckdb import of_lake
from holdfast.pipeline.reports.flow import FUNNEL
from holdfast.pipeline.scope import EVERYTHING, Scope
from tests.unit.pipeline.events import START_US
from tests.unit.pipeline.framed_events import one_run, table_of
from tests.unit.pipeline.stories import the_story

DAY_US = 86_400_000_000
DAYS = ("2025-11-20", "2025-11-21", "2025-11-22")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """Three days with the same events; the file of the first is unreadable."""
    lake = Lake(tmp_path)
    lake.sign()
    made = list[NewFile]()
    for number, day in enumerate(DAYS):
        later = [
            each._replace(
                ts=each.ts + number * DAY_US,
                msg=each.msg and each.msg + number * DAY_US * 1000,
            )
            for each in the_story()
        ]
        made.append(NewFile("events", f"d={day}/rows.parquet"))
        file = lake.root / "events" / made[-1].file
        file.parent.mkdir()
        pq.write_table(table_of(one_run(later)), file)
    lake.commit(made, {})
    first = lake.files("events")[0]
    first.write_bytes(b"x" * first.stat().st_size)
    return lake


@pytest.mark.parametrize("first", [1, 2])
def test_events_of_earlier_days_are_not_opened(lake: Lake, first: int) -> None:
    since = Scope(since=(START_US + first * DAY_US) // 1000)
    with of_lake(lake, since) as tables:
        found = [row["published"] for row in tables.ask(FUNNEL).by_name()]
    assert found == [5 * (3 - first)] * 2
    assert len(lake.files("events", since.first_day)) == 3 - first


def test_all_days_are_opened_for_a_report_on_everything(lake: Lake) -> None:
    with of_lake(lake, EVERYTHING) as tables, pytest.raises(duckdb.Error, match="No magic bytes"):
        tables.ask(FUNNEL)
