"""The programs of the page for users of Faye do what it says."""

import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from urllib.parse import urlsplit

import pytest

from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import MODULES
from tests.pages import ROOT, Block, blocks
from tests.serving import Settings

LIMIT_S = 60.0
BLOCKS = blocks(ROOT / "docs" / "how-to" / "migrate" / "faye.md")
ORDERS, ASK = (block for block in BLOCKS if block.kind == "node")
[PUBLISH] = (block for block in BLOCKS if block.kind == "shell")


@pytest.fixture
def mortal_settings(tmp_path: Path) -> Settings:
    return {"paths": ["/cometd", "/faye"], "data": str(tmp_path / "data")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where both packages are installed."""
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "faye").symlink_to(MODULES / "faye")
    (modules / "holdfast-bayeux").symlink_to(ROOT / "static" / "js")
    return tmp_path


class Program:
    """A program of the page, and what it prints."""

    def __init__(self, block: Block, folder: Path, mortal: MortalServer) -> None:
        script = folder / "program.mjs"
        script.write_text(block.at(urlsplit(mortal.alive.url).netloc))
        self.process = subprocess.Popen(
            ["node", script],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._limit = Timer(LIMIT_S, self.process.kill)
        self._limit.start()

    def lines(self, count: int) -> list[str]:
        assert self.process.stdout is not None
        return [self.process.stdout.readline().rstrip() for _ in range(count)]

    def end(self) -> str:
        said, _ = self.process.communicate()
        self._limit.cancel()
        return said


@contextmanager
def running(block: Block, folder: Path, mortal: MortalServer) -> Iterator[Program]:
    """A program that is ended by Ctrl-C."""
    program = Program(block, folder, mortal)
    try:
        yield program
    finally:
        program.process.send_signal(signal.SIGINT)
        program.end()


def publish(mortal: MortalServer, pieces: int) -> None:
    command = PUBLISH.at(urlsplit(mortal.alive.url).netloc)
    one = '"pieces": 1'
    assert one in command
    done = subprocess.run(
        ["sh", "-eu", "-c", command.replace(one, f'"pieces": {pieces}')],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=True,
    )
    assert '"successful":true' in done.stdout


def figure(mortal: MortalServer, name: str) -> float:
    with urllib.request.urlopen(f"{mortal.alive.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    [line] = [line for line in lines if line.startswith(f"{name} ")]
    return float(line.split()[1])


def settle(mortal: MortalServer) -> None:
    """Wait until the program has acknowledged everything."""
    ends = time.monotonic() + LIMIT_S
    while figure(mortal, "holdfast_entries_in_flight"):
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_the_orders_survive_what_the_page_says_and_can_be_refused(
    folder: Path, mortal: MortalServer
) -> None:
    with running(ORDERS, folder, mortal) as program:
        assert program.lines(1) == ["ready"]
        publish(mortal, 1)
        assert program.lines(1) == ["1 pieces"]
        settle(mortal)
    publish(mortal, 2)
    publish(mortal, 3)
    with running(ORDERS, folder, mortal) as program:
        # They may come before the reply to the subscribe.
        found = program.lines(3)
        assert [line for line in found if line != "ready"] == ["2 pieces", "3 pieces"]
        mortal.kill_and_start()
        publish(mortal, 4)
        assert program.lines(1) == ["4 pieces"]
        program.process.send_signal(signal.SIGSTOP)
        publish(mortal, 5)
        program.process.send_signal(signal.SIGCONT)
        assert program.lines(1) == ["5 pieces"]
        publish(mortal, 0)
        publish(mortal, 6)
        assert program.lines(1) == ["6 pieces"]
        settle(mortal)
        assert figure(mortal, "holdfast_dead_letters") == 1


def test_the_question_gets_the_reply_that_the_page_shows(
    folder: Path, mortal: MortalServer
) -> None:
    said = Program(ASK, folder, mortal).end()
    assert said == BLOCKS[BLOCKS.index(ASK) + 1].text


def test_a_commonjs_program_loads_it_as_the_page_says(folder: Path) -> None:
    [line] = [
        line
        for line in (ROOT / "docs" / "how-to" / "migrate" / "faye.md").read_text().splitlines()
        if "await import(" in line
    ]
    code = line.partition("`")[2].partition("`")[0]
    script = folder / "program.cjs"
    script.write_text(f"(async () => {{{code}; console.log(typeof new FayeExtension().ask)}})();")
    done = subprocess.run(["node", script], capture_output=True, text=True, timeout=LIMIT_S)
    assert (done.stdout, done.stderr) == ("undefined\n", "")
