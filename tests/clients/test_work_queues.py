"""Browsers share the messages of a work queue with an unmodified cometd.js."""

from pathlib import Path

import pytest

from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import (
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

SUITE = "cometd_work"
WORKING = {"channels": {f"/{SUITE}/**": {"work_queue": True}}}
SCENARIOS = [Scenario("sharesWork", (WEBSOCKET, LONG_POLLING), settings=WORKING)]
DEATHS = [Scenario("takesWorkThatWaited", (WEBSOCKET, LONG_POLLING))]


@pytest.fixture
def mortal_settings(tmp_path: Path) -> Settings:
    return {**SWITCHED_ON, **WORKING, "data": str(tmp_path / "data")}


@cases(SCENARIOS)
def test_cometd_js_shares_work(scenario: Scenario, transport: str, servers: Servers) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


@cases(DEATHS)
def test_cometd_js_takes_work_that_waited(
    scenario: Scenario, transport: str, mortal: MortalServer
) -> None:
    play(SUITE, scenario, transport, mortal.alive, mortal.services())


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS + DEATHS} == written(SUITE)
