"""Plays seeds in a process of their own, with the sources of the server."""

import subprocess
import sys

from tests.serving import ROOT, environment


def simulate(*words: str) -> tuple[int, str]:
    """Run `python -m tests.simulation`; returns its exit code, and what it said."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *words],
        env=environment(str(ROOT)),
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert ran.stderr == b"", ran.stderr.decode()
    return ran.returncode, ran.stdout.decode()
