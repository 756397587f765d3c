"""The client of Durable Streams reads channels as they come, whatever happens to the server."""

from pathlib import Path

import pytest

from tests.clients.following import SUITE, WAYS, services, settings_in
from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import Scenario, cases, play, written
from tests.serving import Settings

SCENARIOS = [Scenario("follows", WAYS)]


@pytest.fixture
def mortal_settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@cases(SCENARIOS)
def test_the_client_of_durable_streams_misses_nothing(
    scenario: Scenario, transport: str, mortal: MortalServer
) -> None:
    channel = f"/{SUITE}/{scenario.name}/{transport}"
    play(SUITE, scenario, transport, mortal.alive, services(mortal, channel))


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS} == written(SUITE)
