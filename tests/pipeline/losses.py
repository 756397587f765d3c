"""Checks that readers of the tables report every missing file."""

from pathlib import Path

import pytest

from holdfast.pipeline.failures import PipelineFailed
from holdfast.pipeline.lake import TABLES, Lake


def miss_each_file(lake: Lake) -> None:
    """Replace each file of each table for a moment by nothing, and by an empty file."""
    files = [(table, file) for table in TABLES for file in lake.files(table)]
    assert files
    for table, file in files:
        elsewhere = lake.root / "_away"
        file.rename(elsewhere)
        _miss(lake, table, file)
        # As a power cut may leave it.
        file.touch()
        _miss(lake, table, file)
        elsewhere.rename(file)


def _miss(lake: Lake, table: str, file: Path) -> None:
    with pytest.raises(PipelineFailed, match=f"{file} is"):
        lake.files(table)
