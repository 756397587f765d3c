"""The path of an object is used like that of a file, and never becomes one by mistake."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from holdfast.pipeline.storage.objects import ObjectPath

ROOT = ObjectPath.of("s3://tables/my lake")
FILE = ROOT / "events" / "d=2026-01-01" / "rows.parquet"


def test_it_is_written_as_a_url_and_its_parts_as_names() -> None:
    assert str(FILE) == f"{FILE}" == "s3://tables/my lake/events/d=2026-01-01/rows.parquet"
    assert str(FILE.relative_to(ROOT / "events")) == "d=2026-01-01/rows.parquet"
    assert FILE.arrow_name == "tables/my lake/events/d=2026-01-01/rows.parquet"
    assert str(FILE.parent.with_name("d=2026-01-02")) == "s3://tables/my lake/events/d=2026-01-02"


def test_it_stays_one_whatever_is_made_of_it() -> None:
    assert deepcopy(FILE) == ObjectPath.of(str(FILE)) == FILE
    for made in (FILE.parent, FILE.with_name("other"), deepcopy(FILE)):
        assert isinstance(made, ObjectPath)


@pytest.mark.parametrize("use", [open, Path.rmdir, Path.readlink, Path.write_bytes])
def test_what_only_a_file_can_do_fails(use: Callable[..., object]) -> None:
    more = (b"",) if use is Path.write_bytes else ()
    with pytest.raises(TypeError, match=r"s3://tables/my lake.* is not on this machine"):
        use(FILE, *more)
