"""Servers for commands: an administration in a thread of its own, and a real one for clients."""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from aiohttp import web
from typer.testing import CliRunner, Result

from holdfast.cli.main import program
from tests.serving import Server, Servers
from tests.web.admin import OPERATOR, READER, Clock, application_of
from tests.web.fake_operations import FakeOperations, a_letter, a_session

Run = Callable[..., Result]


@dataclass
class Shell:
    """Runs commands against the administration, with the operator's token."""

    url: str
    operations: FakeOperations
    home: Path

    def run(self, *arguments: str, input: str | bytes | None = None) -> Result:
        environment = {
            "HOLDFAST_URL": self.url,
            "HOLDFAST_DATA": str(self.home),
            "HOLDFAST_TOKEN_FILE": None,
            "USER": "ann",
            "LOGNAME": "ann",
            "COLUMNS": "200",
        }
        return CliRunner().invoke(program, arguments, input=input, env=environment)


@pytest.fixture(scope="module", autouse=True)
def commands_are_made_once() -> Iterator[None]:
    """Making a command takes longer than running it."""
    made = cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.main.get_command", made)
        patch.setattr("typer.testing._get_command", made)
        yield


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    letters = [a_letter(n, fingerprint="f2" if n > 3 else "f1") for n in range(1, 6)]
    operations = FakeOperations([a_session("joe/1"), a_session("joe/2")], letters)
    for name, token in (("admin-token", OPERATOR), ("reader-token", READER)):
        (tmp_path / name).write_text(token + "\n")
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(application_of(operations, Clock()), shutdown_timeout=0.0)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait(work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(60)

    wait(runner.setup())
    site = web.TCPSite(runner, "127.0.0.1", 0)
    wait(site.start())
    host, port = runner.addresses[0][:2]
    yield Shell(f"http://{host}:{port}", operations, tmp_path)
    wait(runner.cleanup())
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()


@pytest.fixture
def server(servers: Servers) -> Server:
    """A server with channels that keep their messages."""
    return servers.with_settings({"channels": {"/kept/**": {"history": 100}}})


@pytest.fixture
def run(server: Server) -> Run:
    """Runs a command next to the server."""

    def run(*words: object, input: str | bytes | None = None, **environment: str | None) -> Result:
        around = {
            "HOLDFAST_URL": server.url,
            "HOLDFAST_DATA": str(server.data),
            "HOLDFAST_TOKEN_FILE": None,
            "COLUMNS": "200",
            **environment,
        }
        return CliRunner().invoke(program, [*map(str, words)], input=input, env=around)

    return run


def lines(done: Result) -> list[Any]:
    """The lines of JSON that a command has printed."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def kept(run: Run, channel: str) -> list[object]:
    """The data that a channel keeps, the oldest first."""
    done = run("channel", "get", channel, "--limit", 100, "--json")
    return [each["data"] for each in reversed(json.loads(done.stdout))]
