"""Fixtures for pytest with pytest-asyncio: name this module in `pytest_plugins` to have them."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from holdfast.testing.local_server import LocalServer, local_server


@pytest.fixture
def holdfast_settings() -> Mapping[str, Any]:
    """The settings of the server in which a test differs from the defaults. Override it."""
    return {}


@pytest_asyncio.fixture
async def holdfast(holdfast_settings: Mapping[str, Any]) -> AsyncIterator[LocalServer]:
    """A server of this test alone."""
    async with local_server(**holdfast_settings) as server:
        yield server
