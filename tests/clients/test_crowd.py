"""Browsers with an unmodified cometd.js come and go in a crowd."""

from tests.clients.node_client import Scenario, cases, play, server_for, written
from tests.serving import Servers

SUITE = "cometd_crowd"
SCENARIOS = [Scenario("comesAndGoes", settings={"channels": {"/jobs/**": {"work_queue": True}}})]


@cases(SCENARIOS)
def test_a_crowd_comes_and_goes(scenario: Scenario, transport: str, servers: Servers) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS} == written(SUITE)
