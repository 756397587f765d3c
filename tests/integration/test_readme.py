"""The commands and examples of the README, and of a page, do what it says."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.clients.node_client import MODULES, require_node
from tests.pages import ROOT, Block, blocks
from tests.serving import Servers, environment

LIMIT_S = 60
BLOCKS = blocks(ROOT / "README.md")


def marked(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind]


@pytest.fixture
def place(servers: Servers) -> str:
    return urlsplit(servers.with_settings({}).url).netloc


def run(command: list[str | Path], where: Path) -> str:
    done = subprocess.run(
        command,
        cwd=where,
        env=environment() | {"no_proxy": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_curl_commands_print_what_the_readme_shows(place: str, tmp_path: Path) -> None:
    [block] = marked("shell")
    expected = BLOCKS[BLOCKS.index(block) + 1]
    assert expected.language == "json"
    script = tmp_path / "first.sh"
    script.write_text(block.at(place))
    said = run(["sh", "-eu", script], tmp_path).splitlines()
    # The publisher's reply and the receiver's event come in either order.
    assert sorted(said) == sorted(expected.text.splitlines())
    assert json.loads(said[0])[0]["successful"]


def test_the_walk_to_a_subject_prints_what_its_page_shows(place: str, tmp_path: Path) -> None:
    [block] = [
        each for each in blocks(ROOT / "docs" / "reference" / "point-to-point.md") if each.kind
    ]
    script = tmp_path / "walk.sh"
    script.write_text(block.at(place))
    unknown, queued, received = map(
        json.loads, filter(None, run(["sh", "-eu", script], tmp_path).splitlines())
    )
    assert unknown[0]["error"] == "404:user.ptp.unknownDestination,client/joe:destination_unknown"
    [destination] = queued[0]["ext"]["delivery"]["destinations"]
    assert destination == {"name": "client/joe", "state": "QUEUED"}
    assert [each.get("data") for each in received] == ["Call me.", None]


def test_the_python_example_prints_its_own_message(place: str, tmp_path: Path) -> None:
    [block] = marked("python")
    script = tmp_path / "greet.py"
    script.write_text(block.at(place))
    assert run([sys.executable, script], tmp_path) == "/greetings hello from Python\n"


@pytest.mark.parametrize("block", marked("node"), ids=["cometd", "faye"])
def test_the_node_examples_print_their_own_messages(
    block: Block, place: str, tmp_path: Path
) -> None:
    require_node()
    (tmp_path / "node_modules").symlink_to(MODULES)
    script = tmp_path / "greet.mjs"
    script.write_text(block.at(place))
    with subprocess.Popen(["node", script], stdout=subprocess.PIPE, text=True) as process:
        limit = threading.Timer(LIMIT_S, process.kill)
        limit.start()
        assert process.stdout is not None
        line = process.stdout.readline()
        limit.cancel()
        # It would run for ever.
        process.kill()
    assert line.startswith("hello from ")
