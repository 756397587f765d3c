"""Tests whose tools are missing are skipped, except where everything must run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.container import ROOT

SKIPS = {
    "a mark": 'import pytest\n@pytest.mark.skip(reason="no tool")\ndef test_it(): pass\n',
    "a call": 'import pytest\ndef test_it(): pytest.skip("no tool")\n',
    "a fixture": "import pytest\n@pytest.fixture\ndef tool(): pytest.skip('no tool')\n"
    "def test_it(tool): pass\n",
}


@pytest.mark.parametrize(
    ("ci", "outcomes"), [("true", {"1 failed", "2 errors"}), ("", {"3 skipped"})]
)
def test_a_skip_is_a_failure_where_ci_is_true(ci: str, outcomes: set[str], tmp_path: Path) -> None:
    for number, skip in enumerate(SKIPS.values()):
        (tmp_path / f"test_{number}.py").write_text(skip)
    words = ["-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", "."]
    done = subprocess.run(
        [sys.executable, *words, "-c", os.devnull, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
    )
    told = done.stdout.splitlines()[-1].strip("= ").rpartition(" in ")[0]
    assert {*told.split(", ")} == outcomes, done.stdout
    assert ("no tool; CI=true" in done.stdout) == bool(ci)
    assert done.returncode == bool(ci)
