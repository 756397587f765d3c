"""The walk of docs/building/refusing-walk.md, with its commands, each in a process of its own."""

import json
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import pytest

from tests.clients.deployment import deployed
from tests.forking import Forked, start
from tests.pages import ROOT, blocks
from tests.serving import environment

LIMIT_S = 60
# The commands of the page, in their order.
COMMANDS = [
    line
    for block in blocks(ROOT / "docs" / "building" / "refusing-walk.md")
    if block.language == "sh"
    for line in block.text.splitlines()
]
COUNT = 100


@pytest.fixture(params=[1, 3])
def around(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    with deployed(tmp_path, {"workers": request.param}) as deployment:
        place = {"HOLDFAST_URL": deployment.url, "HOLDFAST_DATA": str(tmp_path / "data")}
        yield environment() | place


class Terminal:
    """A command that runs until Ctrl-C."""

    def __init__(self, line: str, around: dict[str, str]) -> None:
        output, errors = os.pipe()
        self._output = os.fdopen(output)
        with os.fdopen(errors, "wb") as file:
            self._process = started(line, around, file)
        assert self._output.readline().startswith("Subscribed as client/")

    def lines(self, count: int) -> list[dict[str, Any]]:
        """The next lines that it prints."""
        assert self._process.stdout is not None
        return [json.loads(self._process.stdout.readline()) for _ in range(count)]

    def interrupt(self) -> str:
        """Press Ctrl-C; return what it writes to standard error then."""
        self._process.send_signal(signal.SIGINT)
        assert self._process.wait(LIMIT_S) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()
        with self._output:
            return self._output.read()


def started(line: str, around: dict[str, str], errors: IO[bytes]) -> Forked:
    program, *words = shlex.split(line)
    return start(program, *words, environment=around, cwd=ROOT, errors=errors)


def run(line: str, around: dict[str, str]) -> str:
    """Run a command to its end; return what it prints."""
    with TemporaryFile() as errors:
        process = started(line, around, errors)
        assert process.stdout is not None
        with process.stdout:
            output = process.stdout.read().decode()
        errors.seek(0)
        assert process.wait(LIMIT_S) == 0, errors.read()
    return output


@pytest.mark.slow
def test_the_commands_of_the_walk_do_what_the_page_says_with_any_workers(
    around: dict[str, str],
) -> None:
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
    # The server may have handed over any number of those behind the first.
    redelivered = [each["redelivered"] for each in again]
    assert redelivered == sorted(redelivered, reverse=True)
    assert redelivered[0] == 1
    subscriber.interrupt()
    assert next(lines, None) is None
