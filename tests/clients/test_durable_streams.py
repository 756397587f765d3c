"""The client of Durable Streams reads channels as they come, whatever happens to the server."""

from itertools import count
from pathlib import Path

import pytest

from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import Scenario, cases, play, written
from tests.serving import Settings

SUITE = "durable_streams"
SCENARIOS = [Scenario("follows", ("long-poll", "sse"))]


@pytest.fixture
def mortal_settings(tmp_path: Path) -> Settings:
    kept = {"history": 100, "durable": True}
    return {"data": str(tmp_path), "timeout": 2000, "channels": {f"/{SUITE}/**": kept}}


@cases(SCENARIOS)
def test_the_client_of_durable_streams_misses_nothing(
    scenario: Scenario, transport: str, mortal: MortalServer
) -> None:
    channel, numbers = f"/{SUITE}/{scenario.name}/{transport}", count()

    def publish() -> None:
        mortal.publish(channel, next(numbers))

    play(SUITE, scenario, transport, mortal.alive, {**mortal.services(), "publish": publish})


def test_no_scenario_is_forgotten() -> None:
    assert {scenario.name for scenario in SCENARIOS} == written(SUITE)
