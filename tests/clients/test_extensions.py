"""The extensions for cometd.js keep their promises, and are small enough to be read."""

import subprocess
from pathlib import Path

import pytest

from tests.clients.node_client import CLIENTS

SCRIPTS = CLIENTS.parents[1] / "static" / "js"
MOST_BYTES = 6 * 1024


def test_they_do_what_their_own_tests_say() -> None:
    tests = sorted((CLIENTS / "extensions").glob("*.test.js"))
    command = ["node", "--test", *map(str, tests)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=15)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("*.js")), ids=lambda path: path.name)
def test_each_is_small(script: Path) -> None:
    assert script.stat().st_size < MOST_BYTES
