"""Real servers keep their promises in simulated worlds, whatever the seed."""

import subprocess
import sys

import pytest

from tests.serving import ROOT, environment

pytestmark = pytest.mark.slow


def simulate(*words: str) -> tuple[int, str]:
    """Play seeds in a process of their own, with a fixed order of sets."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *words],
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    assert ran.stderr == b"", ran.stderr.decode()
    return ran.returncode, ran.stdout.decode()


def test_no_seed_breaks_a_promise() -> None:
    code, said = simulate("--seeds", "1-12")
    assert code == 0, said


def test_a_seed_decides_the_same_in_each_run() -> None:
    def trace(seed: str) -> list[str]:
        _, said = simulate("--seed", seed, "--trace")
        # The last line says how long it took.
        return said.splitlines()[:-1]

    first = trace("7")
    assert len(first) > 1000
    assert first == trace("7")
