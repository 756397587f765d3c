"""The extensions for cometd.js keep their promises, and are small enough to be read."""

import gzip
import re
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


@pytest.mark.parametrize("script", ["delivery.js", "outbox.js"])
def test_so_is_all_that_a_page_loads_for_one(script: str) -> None:
    loaded = b"".join(path.read_bytes() for path in sorted(_with_imports(SCRIPTS / script)))
    assert len(gzip.compress(loaded)) < MOST_BYTES


def _with_imports(script: Path) -> set[Path]:
    imports = re.findall(r'from "\./([\w.]+)"', script.read_text("utf-8"))
    return {script}.union(*(_with_imports(SCRIPTS / each) for each in imports))
