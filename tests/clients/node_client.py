"""Plays scenarios with JavaScript clients and does for them what only the world outside can."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.serving import Server, Servers, Settings

CLIENTS = Path(__file__).parent
MODULES = CLIENTS / "node_modules"
RUN = CLIENTS / "js" / "run.js"
LIMIT_S = 60.0

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
    """At home a missing tool skips the test, where it counts it fails it."""
    if is_there:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing")
    pytest.skip(f"{what} is missing")


def require_node() -> None:
    require(shutil.which("node"), "node")
    require((MODULES / "cometd").is_dir(), "tests/clients/node_modules (make setup-clients)")


def written(suite: str) -> set[str]:
    """The names of all scenarios that a suite exports."""
    listing = subprocess.run(
        ["node", RUN, suite], capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    return set(listing.stdout.split())


def play(
    suite: str,
    scenario: Scenario,
    transport: str,
    server: Server,
    services: Mapping[str, Callable[[], None]] | None = None,
) -> None:
    """Run a scenario to its end.

    A line `@request` of the script is answered by running that service and then writing a line
    back. Everything it prints is shown if it fails.
    """
    context = {
        "url": f"{server.url}/cometd",
        "transport": transport,
        "root": f"/{suite}/{scenario.name}/{transport}",
        **scenario.facts,
    }
    command = ["node", str(RUN), suite, scenario.name, json.dumps(context)]
    said: list[str] = []
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        limit = threading.Timer(LIMIT_S, process.kill)
        limit.start()
        try:
            for line in process.stdout:
                said.append(line)
                if line.startswith("@"):
                    (services or {})[line[1:].strip()]()
                    process.stdin.write("done\n")
                    process.stdin.flush()
            code = process.wait()
        finally:
            limit.cancel()
            process.kill()
    if code != 0:
        pytest.fail(f"{scenario.name} ended with {code}:\n{''.join(said)}", pytrace=False)
