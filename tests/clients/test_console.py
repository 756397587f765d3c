"""What of the console needs no browser to be tried: its feed, and how it puts things."""

import json
import os
import subprocess

from holdfast.web.admin.openapi import describe
from holdfast.web.admin.paths import API
from holdfast.web.admin.resources import ROUTES
from tests.clients.node_client import CLIENTS


def test_its_parts_do_what_their_own_tests_say() -> None:
    tests = sorted((CLIENTS / "console").glob("*.test.js"))
    command = ["node", "--test", *map(str, tests)]
    environment = {**os.environ, "LC_ALL": "en_US.UTF-8"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110)
    assert run.returncode == 0, run.stdout + run.stderr


def test_browsers_understand_the_patterns_of_the_servers_description() -> None:
    document = json.dumps(describe(ROUTES, "/admin" + API))
    # As browsers read the attribute `pattern`.
    check = """
        const read = (text) => JSON.parse(text, (name, value) =>
            (name === "pattern" ? new RegExp(value, "v") : value));
        process.stdin.toArray().then((parts) => read(parts.join("")));
    """
    run = subprocess.run(
        ["node", "-e", check], input=document, capture_output=True, text=True, timeout=110
    )
    assert run.returncode == 0, run.stderr
