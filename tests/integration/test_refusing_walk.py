"""The walk of docs/refusing-walk.md, with its own commands, each in a process as in a terminal."""

import json
import shlex
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.pages import ROOT, blocks
from tests.serving import PROGRAM, Server, environment

LIMIT_S = 60
# The commands of the page, in their order.
COMMANDS = [
    line
    for block in blocks(ROOT / "docs" / "refusing-walk.md")
    if block.language == "sh"
    for line in block.text.splitlines()
]
COUNT = 100


@pytest.fixture
def around() -> Iterator[dict[str, str]]:
    server = Server({})
    yield environment() | {"HOLDFAST_URL": server.url, "HOLDFAST_DATA": str(server.data)}
    server.stop()


class Terminal:
    """A command that goes on until Ctrl-C."""

    def __init__(self, line: str, around: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            words_of(line), env=around, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        assert self.process.stderr.readline().startswith("Subscribed as client/")

    def lines(self, count: int) -> list[dict[str, Any]]:
        """The next lines that it prints."""
        assert self.process.stdout is not None
        return [json.loads(self.process.stdout.readline()) for _ in range(count)]

    def interrupt(self) -> str:
        """Press Ctrl-C; return what it printed after that and to stderr."""
        self.process.send_signal(signal.SIGINT)
        rest, told = self.process.communicate(timeout=LIMIT_S)
        assert self.process.returncode == 0
        return rest + told


def words_of(line: str) -> list[str]:
    program, *words = shlex.split(line)
    assert program == "holdfast"
    return [*PROGRAM, *words]


def run(line: str, around: dict[str, str], *more: str) -> str:
    done = subprocess.run(
        [*words_of(line), *more], env=around, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_walk_works_as_it_stands_there(around: dict[str, str]) -> None:
    lines = iter(COMMANDS)
    assert next(lines) == "holdfast serve"

    def terminal() -> Terminal:
        return Terminal(next(lines) + " --json", around)

    refusing, undertaker = terminal(), terminal()
    ids = run(next(lines), around).split()
    assert len(ids) == COUNT
    shown = refusing.lines(COUNT)
    assert [each["id"] for each in shown] == ids
    assert {each["verdict"] for each in shown} == {"user.update.error"}
    letters = [each["data"] for each in undertaker.lines(COUNT)]
    assert [each["content"] for each in letters] == [each["data"] for each in shown]
    assert {each["errorCode"] for each in letters} == {"user.update.error"}
    assert all("I don't want this" in each["reason"] for each in letters)
    assert f"Refused {COUNT} messages" in refusing.interrupt()
    assert f"Received {COUNT} messages" in undertaker.interrupt()

    assert f"\t{COUNT}\t" in run(next(lines), around)
    assert "/Hello" in run(next(lines), around)
    subscriber = terminal()
    run(next(lines), around)
    assert [each["id"] for each in subscriber.lines(COUNT)] == ids
    subscriber.interrupt()

    refusing = terminal()
    ids = run(next(lines), around).split()
    [first] = refusing.lines(1)
    assert (first["id"], first["verdict"]) == (ids[0], "user.update.holdback")
    assert "subscriber/1" in run(next(lines), around)
    assert "disk full" in run(next(lines), around)
    refusing.interrupt()
    subscriber = terminal()
    run(next(lines), around)
    again = subscriber.lines(COUNT)
    assert [each["id"] for each in again] == ids
    assert (again[0]["redelivered"], again[-1]["redelivered"]) == (1, 0)
    subscriber.interrupt()
    assert next(lines, None) is None
