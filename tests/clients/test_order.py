"""A refused message that comes again keeps its place for a receiver that takes one at a time."""

from tests.clients.node_client import (
    LONG_POLLING,
    WEBSOCKET,
    Scenario,
    cases,
    play,
    server_for,
    written,
)
from tests.serving import Servers

SUITE = "cometd_order"
BOTH = (WEBSOCKET, LONG_POLLING)
SCENARIOS = [
    Scenario("keepsTheOrderOneByOne", BOTH),
    Scenario("processesTheRestOfTheBatch", BOTH),
]


@cases(SCENARIOS)
def test_a_listener_hears_messages_in_the_documented_order(
    scenario: Scenario, transport: str, servers: Servers
) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS} == written(SUITE)
