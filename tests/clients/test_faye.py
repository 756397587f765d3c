"""Faye's client, as it comes from npm, works with this server."""

from dataclasses import replace

from tests.clients.mortal_server import MortalServer
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

SUITE = "faye_scenarios"
BOTH = (WEBSOCKET, LONG_POLLING)
SCENARIOS = [
    Scenario("hearsItselfUntilItCancels", BOTH),
    Scenario("talksWithOthers", BOTH),
    Scenario("sharesOutWildcards", BOTH),
    Scenario("learnsOfRefusals", BOTH),
    Scenario("keepsTheOrderOfAThousandMessages", BOTH),
    Scenario("carriesFalsyAndOddData", BOTH),
    Scenario("getsPastAValueThatCannotBePassedOn", BOTH),
    Scenario("worksFromFarAway", BOTH),
    Scenario("changesToItsSocketWhenever", (WEBSOCKET,)),
    Scenario("keepsTheSessionThroughAShortOutage", BOTH),
]
DEATH = Scenario("findsItsFeetAfterTheServerWasKilled", BOTH)


@cases(SCENARIOS)
def test_faye(scenario: Scenario, transport: str, servers: Servers) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


@cases([DEATH])
def test_faye_finds_its_feet(scenario: Scenario, transport: str, mortal: MortalServer) -> None:
    play(SUITE, scenario, transport, mortal.alive, mortal.services())


@cases([replace(each, facts={"isExtended": True}) for each in SCENARIOS])
def test_faye_with_the_extension_of_holdfast(
    scenario: Scenario, transport: str, servers: Servers
) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


@cases([replace(DEATH, facts={"isExtended": True})])
def test_faye_with_the_extension_finds_its_feet(
    scenario: Scenario, transport: str, mortal: MortalServer
) -> None:
    play(SUITE, scenario, transport, mortal.alive, mortal.services())


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in [*SCENARIOS, DEATH]} == written(SUITE)
