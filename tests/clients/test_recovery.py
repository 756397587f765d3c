"""cometd.js gets over bad networks, reloads and dying servers."""

from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import (
    IMPATIENT,
    LONG_POLLING,
    WEBSOCKET,
    Scenario,
    cases,
    play,
    server_for,
    written,
)
from tests.serving import Servers

SUITE = "cometd_recovery"
SCENARIOS = [
    Scenario("getsAgainWhatALostReplyCarried"),
    Scenario("getsAgainWhatASilentNetworkSwallowed", settings=IMPATIENT),
    Scenario("keepsTheSessionThroughAShortOutage"),
    Scenario(
        "handshakesAgainAfterALongOutage",
        # Long enough for those that are there, also on a slow machine.
        settings={"max_interval": 1500},
    ),
    Scenario("losesNothingOverTenCutsWithoutACookie", (WEBSOCKET,)),
    Scenario("losesNothingOverFrozenSocketsWithoutACookie", (WEBSOCKET,), IMPATIENT),
    Scenario("keepsItsSessionThroughAReload"),
    Scenario("losesNothingOverAReloadWithoutACookie", (WEBSOCKET,)),
]
DEATHS = [
    Scenario("findsItsFeetAfterTheServerWasKilled"),
    Scenario("findsItsFeetAfterTheServerWasStopped", (WEBSOCKET, LONG_POLLING)),
]


@cases(SCENARIOS)
def test_cometd_js(scenario: Scenario, transport: str, servers: Servers) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


@cases(DEATHS)
def test_cometd_js_finds_its_feet(scenario: Scenario, transport: str, mortal: MortalServer) -> None:
    play(SUITE, scenario, transport, mortal.alive, mortal.services())


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS + DEATHS} == written(SUITE)
