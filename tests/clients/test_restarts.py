"""After an orderly stop, stock clients are back as soon as the next server is ready."""

import time
from itertools import count
from pathlib import Path
from statistics import median

import pytest

from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import (
    LONG_POLLING,
    WEBSOCKET,
    Scenario,
    cases,
    play,
    require_java,
    written,
)
from tests.serving import Settings
from tests.slowness import times_slower

ROUNDS = 5
BACK_S = 1.0
SCENARIOS = [Scenario("comesBack", (WEBSOCKET, LONG_POLLING), facts={"rounds": ROUNDS})]
SUITES = ["cometd_restarts", "Restarts"]


@pytest.fixture
def mortal_settings(tmp_path: Path) -> Settings:
    return {"data": str(tmp_path)}


class Restarts:
    """A server that restarts in order; it is published to before and after."""

    def __init__(self, mortal: MortalServer, channel: str) -> None:
        self._mortal, self._channel = mortal, channel
        self._numbers = count()
        self._ready_at = 0.0
        # How long after the server was ready each client was back.
        self.returns_s: list[float] = []

    def restart(self) -> None:
        self.publish()
        self._mortal.stop_and_start()
        self._ready_at = time.monotonic()
        self.publish()

    def note_return(self) -> None:
        self.returns_s.append(time.monotonic() - self._ready_at)

    def publish(self) -> None:
        self._mortal.publish(self._channel, next(self._numbers))


@pytest.fixture(params=SUITES)
def suite(request: pytest.FixtureRequest) -> str:
    suite: str = request.param
    if suite == "Restarts":
        require_java()
    return suite


@cases(SCENARIOS)
def test_a_client_is_back_within_a_second_of_an_orderly_restart_and_loses_nothing(
    scenario: Scenario, transport: str, suite: str, mortal: MortalServer
) -> None:
    restarts = Restarts(mortal, f"/{suite}/comesBack/{transport}/restarts")
    services = {
        "restart the server": restarts.restart,
        "somebody is back": restarts.note_return,
        "publish": restarts.publish,
    }
    play(suite, scenario, transport, mortal.alive, services)
    assert len(restarts.returns_s) == 2 * ROUNDS
    # A busy machine delays some, a goodbye that says so delays all.
    back_s = BACK_S * times_slower()
    assert median(restarts.returns_s[::2]) < back_s, "the named session was slow"
    assert median(restarts.returns_s[1::2]) < back_s, "the session without a name was slow"


def test_no_scenario_is_forgotten(suite: str) -> None:
    assert {scenario.name for scenario in SCENARIOS} == written(suite)
