"""Servers for the conversations, kept over the whole run."""

from collections.abc import Iterator

import pytest

from tests.serving import Servers


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    servers.stop()
