"""Where Python is too old, the user is told so, not that a name cannot be imported."""

import subprocess
import sys

from tests.serving import ROOT

AS_OLD = "import runpy, sys; sys.version_info = (3, 10, 0, 'final', 0); "
COMMAND = "sys.argv = ['-m']; runpy.run_module('holdfast', run_name='__main__')"


def run(program: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-c", AS_OLD + program]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_the_command_says_which_python_it_needs() -> None:
    ended = run(COMMAND)
    assert ended.returncode == 1
    assert ended.stderr.startswith("holdfast needs Python 3.11 or newer; this is ")
    assert len(ended.stderr.splitlines()) == 1


def test_a_program_that_imports_holdfast_is_told_which_python_it_needs() -> None:
    ended = run("import holdfast")
    assert "RuntimeError: holdfast needs Python 3.11 or newer; this is " in ended.stderr
