"""What the tests with JavaScript clients need to be there."""

from collections.abc import Iterator

import pytest

from tests.clients.mortal_server import MortalServer
from tests.clients.node_client import SWITCHED_ON, require_node
from tests.serving import Settings


@pytest.fixture(scope="session", autouse=True)
def node() -> None:
    require_node()


@pytest.fixture
def mortal_settings() -> Settings:
    """Modules whose server keeps something over its deaths override these."""
    return SWITCHED_ON


@pytest.fixture
def mortal(mortal_settings: Settings) -> Iterator[MortalServer]:
    mortal = MortalServer(mortal_settings)
    yield mortal
    mortal.stop()
