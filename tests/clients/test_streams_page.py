"""The program of docs/how-to/streams.md reads through restarts, and prints each message once."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.clients.mortal_server import MortalServer
from tests.pages import ROOT, blocks
from tests.serving import environment

KEPT = {"history": 100, "durable": True}
[PROGRAM] = [
    each for each in blocks(ROOT / "docs" / "how-to" / "streams.md") if each.kind == "program"
]


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[MortalServer]:
    channels = {"/prices/*": KEPT, "/rooms/**": KEPT}
    mortal = MortalServer({"data": str(tmp_path), "channels": channels})
    yield mortal
    mortal.stop()


@pytest.fixture
def program(mortal: MortalServer) -> Iterator[subprocess.Popen[str]]:
    code = PROGRAM.at(urlsplit(mortal.alive.url).netloc)
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment(), stdout=subprocess.PIPE, text=True
    ) as program:
        yield program
        program.kill()


def test_the_program_of_the_page_prints_each_message_once_whatever_happens_to_the_server(
    mortal: MortalServer, program: subprocess.Popen[str]
) -> None:
    assert program.stdout is not None
    mortal.wait_for_readers(1)
    said = iter(program.stdout.readline, "message {'channel': '/prices/a', 'data': 'last'}\n")
    expected = []
    for number, channel in enumerate(("/prices/a", "/rooms/1", "/rooms/1/desk")):
        mortal.publish(channel, number)
        expected.append(f"message {{'channel': '{channel}', 'data': {number}}}\n")
        [mortal.stop_and_start, mortal.kill_and_start][number % 2]()
    mortal.publish("/prices/a", "last")
    lines = list(said)
    assert [line for line in lines if line.startswith("message")] == expected
    # After a kill, the server does not know what else such histories have had.
    others = [line for line in lines if line not in expected]
    assert all(line.startswith("lost {'channel': '/rooms/") for line in others)
