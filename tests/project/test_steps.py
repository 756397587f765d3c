"""The table of steps: a kind of step that is added there is everywhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT

ROW = """STEPS: Final = (
    Step(
        kind="parked",
        words="put aside",
        meaning="somebody put the copy aside",
        books=("parked",),
    ),
"""


def sources_with(row: str, folder: Path) -> None:
    """Link all modules into the folder, except the table: its copy has this row at the top."""
    place, package = folder / "holdfast", ROOT / "app"
    for inner in ("delivery", "basics", "steps.py"):
        place.mkdir()
        for each in package.iterdir():
            if each.name != inner:
                (place / each.name).symlink_to(each)
        place, package = place / inner, package / inner
    text = package.read_text("utf-8")
    assert text.count("STEPS: Final = (\n") == 1
    place.write_text(text.replace("STEPS: Final = (\n", row), "utf-8")


@pytest.mark.slow
def test_a_kind_that_is_only_in_the_table_has_a_counter_a_metric_events_and_words(
    tmp_path: Path,
) -> None:
    sources_with(ROW, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.project.added_step", "parked"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    *shown, told = done.stdout.splitlines()
    assert json.loads(told) == {
        "counted": 2,
        "metric": 2,
        "journal": 2,
        "in_books": True,
        "is_end": True,
        "balances": True,
    }
    assert sum("put aside" in line for line in shown) == 2
