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


@pytest.mark.parametrize(("ci", "outcome"), [("true", "no tool; CI=true"), ("", "1 skipped")])
@pytest.mark.parametrize("skip", SKIPS)
def test_a_skip_is_a_failure_where_ci_is_true(
    skip: str, ci: str, outcome: str, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(SKIPS[skip])
    words = ["-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", "."]
    done = subprocess.run(
        [sys.executable, *words, "-c", os.devnull, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CI": ci},
        capture_output=True,
        text=True,
    )
    assert outcome in done.stdout
    assert done.returncode == bool(ci)
