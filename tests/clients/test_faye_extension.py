"""Faye's client with the extension of Holdfast, which it takes as its own ones."""

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

SUITE = "faye_extension"
BOTH = (WEBSOCKET, LONG_POLLING)
SCENARIOS = [
    Scenario("getsAgainWhatALostReplyCarried", BOTH),
    # A socket that is dead and does not say so keeps Faye waiting until the system notices.
    Scenario("getsAgainWhatASilentNetworkSwallowed", (LONG_POLLING,), settings=IMPATIENT),
    Scenario("takesItsTimeOverCuts", BOTH),
    Scenario("refusesMessages", BOTH),
    Scenario("outlivesItsListeners", BOTH),
    Scenario("showsMessagesToListeners", BOTH),
    Scenario("publishesOnceHoweverOftenItSends", BOTH),
    Scenario("asksAnother", BOTH),
    Scenario("takesItsSessionUpAgain", BOTH),
    Scenario("emptiesItsOutbox", BOTH),
    Scenario(
        "beginsOnceMoreAfterALongOutage",
        BOTH,
        settings={**IMPATIENT, "max_interval": 5000},
        facts={"timeout": IMPATIENT["timeout"]},
    ),
]


@cases(SCENARIOS)
def test_faye_with_the_extension(scenario: Scenario, transport: str, servers: Servers) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS} == written(SUITE)
