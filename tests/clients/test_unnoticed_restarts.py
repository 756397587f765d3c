"""Stock clients under traffic do not notice that one server follows another.

With `-s --restarts 20` this is the long form, which shows how long clients were silent.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.deployment import Deployment, deployed
from tests.clients.node_client import require_java, written
from tests.clients.story import SCENARIO, SUITES, Story
from tests.serving import Settings
from tests.store.servers import ValkeyServer

# Clients get all of it, however slow they are.
SETTINGS: Settings = {"max_queue": 100_000}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(params=["embedded", "external"])
def deployment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Deployment]:
    require_java()
    with ExitStack() as stack:
        settings = SETTINGS
        if request.param == "external":
            settings = {**settings, "redis": stack.enter_context(ValkeyServer()).url}
        yield stack.enter_context(deployed(tmp_path, settings))


def test_nobody_notices_restarts(
    deployment: Deployment, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    story = Story(deployment, tmp_path)
    story.play([deployment.restart] * request.config.getoption("--restarts"))
    sys.stdout.write(f"\n{story.figures()}")
    assert story.noticed() == []


@pytest.mark.parametrize("suite", SUITES)
def test_no_scenario_is_forgotten(suite: str) -> None:
    assert written(suite) == {SCENARIO}
