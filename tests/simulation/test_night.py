"""A long run keeps its results, and goes on where it was stopped."""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.serving import ROOT, environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run(home: Path, *words: str) -> tuple[int, str]:
    build = ("--builds", "a_lease_counts_from_the_answer")
    ran = subprocess.run(
        [sys.executable, "-m", "tests.simulation.night", "--home", home, *build, *words],
        env={**environment(str(ROOT)), "PYTHONHASHSEED": "0"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ran.stderr, ran.stderr
    return ran.returncode, ran.stdout


def results(home: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in (home / "results.ndjson").read_bytes().splitlines()]


def test_a_long_run_goes_on_behind_what_it_has_played(tmp_path: Path) -> None:
    code, said = run(tmp_path, "--seeds", "2", "--first", "1")
    assert code == 1
    # So few seeds do not reach everything.
    assert "never reached:" in said, said
    assert "1 of 1 broken builds were found" in said, said
    before = results(tmp_path)
    with (tmp_path / "results.ndjson").open("ab") as file:
        file.write(b'{"mode":"","see')
    run(tmp_path, "--seeds", "3")
    after = results(tmp_path)
    assert after[:3] == before
    assert [each["seed"] for each in after if "mode" in each] == [1, 2, 3]
