"""Plays scenarios with other clients, and does for them what only the world outside can.

They are JavaScript, but for `JAVA_SUITES` and `PYTHON_SUITES`.
"""

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

import pytest

from tests.serving import Server, Servers, Settings, environment

CLIENTS = Path(__file__).parent
MODULES = CLIENTS / "node_modules"
RUN = CLIENTS / "js" / "run.js"
JAVA_TARGET = CLIENTS / "java" / "target"
# Suites in java/, each a class.
JAVA_SUITES = frozenset(["Restarts", "Unnoticed"])
# Suites beside this module.
PYTHON_SUITES = frozenset(["witnesses"])
# They run for seconds only.
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
LIMIT_S = 110.0

WEBSOCKET, LONG_POLLING, CALLBACK_POLLING = TRANSPORTS = (
    "websocket",
    "long-polling",
    "callback-polling",
)

# One of them is off by default.
SWITCHED_ON: Settings = {"transports": list(TRANSPORTS)}
IMPATIENT: Settings = {"timeout": 300, "multi_session_interval": 300}


@dataclass(frozen=True)
class Scenario:
    """One exported function of a suite in js/, and what it needs."""

    name: str
    transports: tuple[str, ...] = TRANSPORTS
    settings: Settings = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)


def cases(scenarios: Iterable[Scenario]) -> pytest.MarkDecorator:
    """Each scenario over each of its transports, as a test of its own."""
    return pytest.mark.parametrize(
        ("scenario", "transport"),
        [
            pytest.param(scenario, transport, id=f"{scenario.name}-{transport}")
            for scenario in scenarios
            for transport in scenario.transports
        ],
    )


def server_for(scenario: Scenario, servers: Servers) -> Server:
    """One with all transports, unless the scenario says which."""
    return servers.with_settings({**SWITCHED_ON, **scenario.settings})


def require(is_there: object, what: str) -> None:
    """Skip the test if something is missing."""
    if not is_there:
        pytest.skip(f"{what} is missing")


def require_node() -> None:
    require(shutil.which("node"), "node")
    require((MODULES / "cometd").is_dir(), "tests/clients/node_modules (make setup-clients)")


def require_java() -> None:
    require(shutil.which("java"), "java")
    installed = (JAVA_TARGET / ".installed").exists()
    require(installed, "tests/clients/java/target (make setup-clients)")


def _command(suite: str) -> Sequence[str]:
    if suite in JAVA_SUITES:
        path = os.pathsep.join([str(JAVA_TARGET / "classes"), str(JAVA_TARGET / "lib" / "*")])
        return [*JAVA, "-cp", path, suite]
    if suite in PYTHON_SUITES:
        return [sys.executable, "-P", "-m", f"tests.clients.{suite}"]
    return ["node", str(RUN), suite]


class Stage:
    """A process that plays the scenarios of one suite, one after the other.

    To start one and to load the clients takes longer than most scenarios.
    """

    def __init__(self, suite: str) -> None:
        self._process = subprocess.Popen(
            _command(suite),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
            start_new_session=True,
        )
        atexit.register(self.end)
        self.scenarios = set(self._output.readline().split())

    def play(
        self,
        scenario: str,
        context: Settings,
        services: Mapping[str, Callable[[], object]],
        limit_s: float = LIMIT_S,
    ) -> tuple[bool, str]:
        """Whether it came to a good end, and everything that was said.

        A line `@request` is answered by running that service and then writing a line back.
        """
        said: list[str] = []
        limit = threading.Timer(limit_s, self._kill)
        limit.start()
        try:
            self._tell(json.dumps({"scenario": scenario, "context": context}))
            for line in self._output:
                if line == "@end\n":
                    return True, "".join(said)
                said.append(line)
                if line.startswith("@"):
                    services[line[1:].strip()]()
                    self._tell("done")
        finally:
            limit.cancel()
        return False, "".join(said)

    def end(self) -> None:
        atexit.unregister(self.end)
        self._kill()
        # Closes what leads to it, too.
        self._process.communicate()

    def _kill(self) -> None:
        """Kill it with all processes that it has started, which would keep its output open."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        # If it has ended, it says itself why.
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()

    @property
    def _output(self) -> IO[str]:
        assert self._process.stdout is not None
        return self._process.stdout


_stages: dict[str, Stage] = {}


def _stage_of(suite: str) -> Stage:
    if suite not in _stages:
        _stages[suite] = Stage(suite)
    return _stages[suite]


def written(suite: str) -> set[str]:
    """The names of all scenarios that a suite exports."""
    return _stage_of(suite).scenarios


class Reachable(Protocol):
    """A server, or a proxy before it."""

    @property
    def url(self) -> str: ...


def play(
    suite: str,
    scenario: Scenario,
    transport: str,
    server: Reachable,
    services: Mapping[str, Callable[[], object]] | None = None,
    *,
    limit_s: float = LIMIT_S,
) -> None:
    """Run a scenario to its end; everything it prints is shown if it fails."""
    context = {
        "url": f"{server.url}/cometd",
        "transport": transport,
        "root": f"/{suite}/{scenario.name}/{transport}",
        **scenario.facts,
    }
    is_well = False
    try:
        stage = _stage_of(suite)
        is_well, said = stage.play(scenario.name, context, services or {}, limit_s)
    finally:
        if not is_well:
            # Whatever it left behind is in nobody's way.
            _stages.pop(suite).end()
    if not is_well:
        pytest.fail(f"{scenario.name} failed:\n{said}", pytrace=False)
