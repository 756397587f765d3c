"""What of the console needs no browser to be tried: its feed, and how it puts things."""

import os
import subprocess

from tests.clients.node_client import CLIENTS


def test_its_parts_do_what_their_own_tests_say() -> None:
    tests = sorted((CLIENTS / "console").glob("*.test.js"))
    command = ["node", "--test", *map(str, tests)]
    environment = {**os.environ, "LC_ALL": "en_US.UTF-8"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=15)
    assert run.returncode == 0, run.stdout + run.stderr
