"""cometd.js, as it comes from npm, does with this server what applications do with it."""

from tests.clients.node_client import (
    CALLBACK_POLLING,
    IMPATIENT,
    LONG_POLLING,
    TRANSPORTS,
    WEBSOCKET,
    Scenario,
    cases,
    play,
    server_for,
    written,
)
from tests.serving import Servers

SUITE = "cometd_scenarios"
SERVICES, DOORMAN, GREETER = (
    {"extension": [f"tests.clients.applications:{factory}"]}
    for factory in ("services", "doorman", "greeter")
)
LAZY_CHANNELS = [f"/{SUITE}/getsLazyMessagesTogether/{kind}/lazy" for kind in TRANSPORTS]
LAZY = {"channels": {name: {"lazy": True, "lazy_timeout": 300} for name in LAZY_CHANNELS}}
SCENARIOS = [
    Scenario("hearsItselfUntilItUnsubscribes"),
    Scenario("reachesOthersWithoutNamingThePublisher"),
    Scenario("keepsTheOrderOfABatch"),
    Scenario("sharesOutWildcardsButSendsOneCopy"),
    Scenario("keepsServiceChannelsPrivate"),
    Scenario("answersRemoteCalls", settings=SERVICES),
    # A script tag has only its address to carry a message in.
    Scenario("carriesLargeMessages", (WEBSOCKET, LONG_POLLING)),
    Scenario("carriesFalsyAndOddData"),
    Scenario("getsPastAValueThatCannotBePassedOn"),
    Scenario("itsOutboxGetsPastWhatTheServerWillNotHave", (WEBSOCKET, LONG_POLLING)),
    Scenario("carriesBinaryData"),
    Scenario("keepsCustomFieldsButNoForgedOnes"),
    Scenario("keepsTheOrderOfAThousandMessages"),
    Scenario("getsLazyMessagesTogether", settings=LAZY, facts={"lazyTimeout": 300}),
    Scenario(
        "isGreetedWithTheHandshake",
        settings={**GREETER, "allow_message_delivery_during_handshake": True},
    ),
    Scenario("isGreetedAfterTheHandshake", settings=GREETER),
    # Callback-polling would carry its credentials in a URL.
    Scenario("isTurnedAwayWithoutATicket", (WEBSOCKET, LONG_POLLING), DOORMAN),
    Scenario("leavesWhenItIsThrownOut", settings=SERVICES),
    # Messages for callback-polling travel with connects alone.
    Scenario("leavesEvenIfNoConnectIsHeld", (WEBSOCKET, LONG_POLLING), SERVICES),
    Scenario("synchronisesItsClock"),
    Scenario("passesTimestampsOn"),
    Scenario("findsStampsOnRepliesIfToldSo", settings={"timestamp": True}),
    Scenario("keepsPollingWhenNothingHappens", settings=IMPATIENT, facts={"timeout": 300}),
    Scenario(
        "letsTwoTabsShareABrowser",
        (LONG_POLLING, CALLBACK_POLLING),
        IMPATIENT,
        {"multiSessionInterval": 300},
    ),
    Scenario("choosesItsFavouriteAmongAll", (WEBSOCKET,)),
    Scenario("fallsBackWithoutWebSocket", (LONG_POLLING,), {"transports": [LONG_POLLING]}),
]


@cases(SCENARIOS)
def test_cometd_js(scenario: Scenario, transport: str, servers: Servers) -> None:
    play(SUITE, scenario, transport, server_for(scenario, servers))


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS} == written(SUITE)
    assert {transport for scenario in SCENARIOS for transport in scenario.transports} == set(
        TRANSPORTS
    )
