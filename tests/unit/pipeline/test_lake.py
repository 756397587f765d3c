"""The tables' folder, without Spark."""

from datetime import date
from pathlib import Path

import pytest

from holdfast.pipeline.lake import Lake, receipt_of


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


@pytest.fixture
def shelf(tmp_path: Path) -> Lake:
    """Three batches of messages that were carried to the next."""
    lake = Lake(tmp_path)
    for batch in range(3):
        folder = lake.folder("messages", batch)
        folder.mkdir(parents=True)
        receipt_of(folder).parent.mkdir(parents=True, exist_ok=True)
        receipt_of(folder).write_text('["part.parquet"]')
    return lake


@pytest.mark.parametrize("torn", [b"", b'["par', b"\0" * 16, b"\xff"])
def test_a_batch_whose_receipt_is_torn_is_forgotten_as_others_are(shelf: Lake, torn: bytes) -> None:
    receipt_of(shelf.folder("messages", 0)).write_bytes(torn)
    shelf.forget_carried(2)
    for batch, is_left in ((0, False), (1, True)):
        folder = shelf.folder("messages", batch)
        assert (folder.exists(), receipt_of(folder).exists()) == (is_left, is_left)


def test_what_is_not_forgotten_is_told_and_what_is_gone_is_not(shelf: Lake) -> None:
    shelf.folder("messages", 0).rmdir()
    shelf.forget_carried(2)
    # A folder that cannot be removed, for it is none.
    shelf.folder("messages", 0).touch()
    with pytest.raises(NotADirectoryError):
        shelf.forget_carried(2)


@pytest.fixture
def filled(tmp_path: Path) -> Lake:
    """Two committed batches of three days, and one that is being written."""
    lake = Lake(tmp_path)
    lake.sign()
    (lake.checkpoint / "commits").mkdir(parents=True)
    (lake.checkpoint / "commits/1").touch()
    for batch in range(3):
        days = [f"d=2025-11-{day}" for day in (19, 20, 21)]
        parts = [f"events/{{}}/{day}" for day in (*days, "d=__HIVE_DEFAULT_PARTITION__")]
        parts += ["life/{}/state=open", "life/{}/state=acked", "messages/{}"]
        for part in parts:
            place = tmp_path / part.format(f"batch={batch:08d}")
            place.mkdir(parents=True)
            (place / "part.parquet").touch()
    return lake


def parts(lake: Lake, table: str, since: date | None = None, until: date | None = None) -> set[str]:
    """Batches and parts of them."""
    files = lake.files(table, since, until)
    places = {str(file.parent.relative_to(lake.root)) for file in files}
    assert len(places) == len(files)
    return {place.replace("batch=0000000", "") for place in places}


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        (None, None, ["2025-11-19", "2025-11-20", "2025-11-21", "__HIVE_DEFAULT_PARTITION__"]),
        (date(2025, 11, 20), None, ["2025-11-20", "2025-11-21"]),
        (None, date(2025, 11, 20), ["2025-11-19", "2025-11-20"]),
        (date(2025, 11, 20), date(2025, 11, 20), ["2025-11-20"]),
        (date(2025, 11, 22), None, []),
    ],
)
def test_readers_get_the_files_of_the_days_that_they_ask_for(
    filled: Lake, since: date | None, until: date | None, days: list[str]
) -> None:
    found = parts(filled, "events", since, until)
    assert found == {f"events/{batch}/d={day}" for batch in (0, 1) for day in days}


def test_readers_get_no_lives_that_a_later_batch_has_again(filled: Lake) -> None:
    assert parts(filled, "life") == {"life/0/state=acked", "life/1/state=acked"}
    assert parts(filled, "open") == {"life/1/state=open"}
    assert parts(filled, "messages") == {"messages/1"}
