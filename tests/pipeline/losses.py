"""Whatever of the tables is taken away, whoever reads them next must say so."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import CARRIED, Lake
from holdfast.pipeline.swap import reading


def miss_each_file(lake: Lake) -> None:
    """Take each file of each table away for a moment."""
    files = list(lake.root.glob("[!_]*/**/*.parquet"))
    assert files
    carried = [lake.folder(table, lake.newest()) for table in CARRIED]
    with reading(lake):
        lake.check()
    for file in files:
        with _away(file):
            _miss(lake, file)
            if any(file.is_relative_to(place) for place in carried):
                with pytest.raises(PipelineFailed, match=file.name):
                    lake.check()


def miss_each_folder(lake: Lake) -> None:
    """The same with batches of tables."""
    for folder in lake.root.glob("[!_]*/batch=*"):
        with _away(folder):
            _miss(lake, folder)


def _miss(lake: Lake, place: Path) -> None:
    with pytest.raises(PipelineFailed, match=f"{place} is missing"), reading(lake):
        pass


@contextmanager
def _away(place: Path) -> Iterator[None]:
    elsewhere = place.parents[2] / "_away"
    place.rename(elsewhere)
    yield
    elsewhere.rename(place)
