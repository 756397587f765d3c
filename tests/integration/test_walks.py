"""The sequence diagrams in `walks.md` show calls that a running server makes."""

import subprocess
import sys

import pytest

from tests.serving import ROOT


@pytest.mark.timeout(180)
def test_the_sequence_diagrams_in_the_docs_match_the_code() -> None:
    command = [sys.executable, "-m", "docs.walks", "--check"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
