"""What tests of several folders share."""

from collections.abc import Iterator

import pytest

from tests.serving import Servers


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Server processes, one for every set of settings, kept over the whole run."""
    servers = Servers()
    yield servers
    servers.stop()
