"""The tables' folder, without Spark."""

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
