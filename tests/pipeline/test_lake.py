"""The tables' folder, without Spark."""

from pathlib import Path

import pytest

from pipeline.lake import Lake


@pytest.mark.parametrize(("mib", "is_small"), [(0, True), (20, True), (40, False)])
def test_spark_is_to_begin_soon_where_there_is_little_and_to_run_fast_where_there_is_much(
    tmp_path: Path, mib: int, is_small: bool
) -> None:
    for table in ("events", "life"):
        place = tmp_path / table / "batch=00000000"
        place.mkdir(parents=True)
        with (place / "part.parquet").open("wb") as file:
            file.truncate(mib * 1024**2 // 2)
    assert Lake(tmp_path).is_small() == is_small
