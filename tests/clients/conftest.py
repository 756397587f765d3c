"""What the tests with JavaScript clients need to be there."""

from collections.abc import Iterator

import pytest

from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import require_node


@pytest.fixture(scope="session", autouse=True)
def node() -> None:
    require_node()


@pytest.fixture
def mortal() -> Iterator[MortalServer]:
    mortal = MortalServer()
    yield mortal
    mortal.alive.stop()
