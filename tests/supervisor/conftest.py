"""A stage for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    found = Stage(tmp_path)
    yield found
    found.close()
