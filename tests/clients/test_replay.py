"""cometd.js goes on where it was, with an extension like Salesforce's and without."""

from pathlib import Path

import pytest

from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import (
    IMPATIENT,
    LONG_POLLING,
    SWITCHED_ON,
    WEBSOCKET,
    Scenario,
    cases,
    play,
    server_for,
    written,
)
from tests.serving import Servers, Settings

SUITE = "cometd_replay"
KEEPING = {"channels": {f"/{SUITE}/**": {"history": 10, "durable": True}}}
SCENARIOS = [
    Scenario("goesOnWhereItWas", settings=KEEPING),
    Scenario("getsAllThatIsKept", settings=KEEPING),
    Scenario("knowsTheNewestCursorWithoutAnyMessage", settings={**KEEPING, **IMPATIENT}),
]
DEATHS = [Scenario("goesOnAfterTheServerWasKilled", (WEBSOCKET, LONG_POLLING))]


@pytest.fixture
def mortal_settings(tmp_path: Path) -> Settings:
    return {**SWITCHED_ON, **KEEPING, "data": str(tmp_path / "data")}


@cases(SCENARIOS)
def test_cometd_js_goes_on(scenario: Scenario, transport: str, servers: Servers) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


@cases(DEATHS)
def test_cometd_js_goes_on_after_a_restart(
    scenario: Scenario, transport: str, mortal: MortalServer
) -> None:
    play(SUITE, scenario, transport, mortal.alive, mortal.services())


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS + DEATHS} == written(SUITE)
