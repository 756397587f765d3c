"""Stock clients under traffic do not notice that one server follows another.

With `-s --restarts 20` this is the long form, which shows how long clients were silent.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.deployment import Restart, deployed
from tests.clients.node_client import require_java, written
from tests.clients.packages import Packages, Serving
from tests.clients.story import SCENARIO, SUITES, Story
from tests.serving import Settings
from tests.store.servers import ValkeyServer
from tests.web.certificates import Authority

# Clients get all of it, however slow they are.
SETTINGS: Settings = {"max_queue": 100_000}

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def java() -> None:
    require_java()


@pytest.fixture
def restarts(request: pytest.FixtureRequest) -> int:
    number: int = request.config.getoption("--restarts")
    return number


def test_nobody_notices_restarts_of_several_workers(tmp_path: Path, restarts: int) -> None:
    with deployed(tmp_path, {**SETTINGS, "workers": 3}) as deployment:
        story = Story(deployment, tmp_path)
        story.play([deployment.restart] * restarts)
        sys.stdout.write(f"\n{story.figures()}")
        assert story.noticed(share=1 / 2) == []
        assert deployment.troubles() == []


@pytest.fixture
def external_store() -> Iterator[Settings]:
    with ValkeyServer(appendonly="yes") as valkey:
        yield {"redis": valkey.url}


def test_nobody_notices_a_version_settings_and_extensions_that_change_or_fail(
    external_store: Settings, tmp_path: Path, restarts: int
) -> None:
    packages = Packages(tmp_path)
    own = {**external_store, "timeout": 10_000, "extension": [packages.extension]}
    with deployed(tmp_path, {**SETTINGS, **own}, packages.path) as deployment:

        def fail() -> Restart:
            packages.break_extension()
            restart, said = deployment.fail_to_restart()
            assert "RuntimeError: there is no news today" in said
            assert Serving.at(deployment.url) == Serving("1.0", 1, 10_000)
            return restart

        def change() -> Restart:
            packages.change_extension(2)
            deployment.configure(timeout=20_000)
            restart = deployment.restart()
            assert Serving.at(deployment.url) == Serving("1.0", 2, 20_000)
            return restart

        def update() -> Restart:
            packages.update("2.0")
            restart = deployment.restart()
            assert Serving.at(deployment.url) == Serving("2.0", 2, 20_000)
            return restart

        story = Story(deployment, tmp_path)
        changes = [fail, change, update]
        story.play([*changes, *[deployment.restart] * (restarts - len(changes))])
        sys.stdout.write(f"\n{story.figures()}")
        assert story.noticed() == []


def test_with_tls_clients_connect_again_at_most(tmp_path: Path, restarts: int) -> None:
    chain, key = map(str, Authority(tmp_path).issue("localhost"))
    with deployed(tmp_path, {**SETTINGS, "tls_cert": chain, "tls_key": key}) as deployment:
        story = Story(deployment, tmp_path)
        # Connections are not handed over: a successor of a successor differs in nothing.
        story.play([deployment.restart] * (restarts - 1))
        sys.stdout.write(f"\n{story.figures()}")
        assert story.noticed(may_reconnect=True) == []
        assert deployment.troubles() == []


@pytest.mark.parametrize("suite", SUITES)
def test_no_scenario_is_forgotten(suite: str) -> None:
    assert written(suite) == {SCENARIO}
