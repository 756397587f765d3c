"""The duration and the seed of the fuzz tests."""

from collections.abc import Iterator
from random import SystemRandom

import pytest

from tests.abuse.target import Target
from tests.serving import Servers

# Waits that requests can cause are short, so that each request is answered soon.
SETTINGS = {
    "timeout": 200,
    "max_interval": 2000,
    "request_timeout": 10_000,
    "max_request_size": 256 * 1024,
    "callback_parameter": "jsonp",
    "transports": ["websocket", "long-polling", "callback-polling"],
    "channels": {"/kept/**": {"history": 100}},
}


@pytest.fixture(scope="session")
def fuzz_s(request: pytest.FixtureRequest) -> float:
    """The duration of each test: they share the time."""
    seconds: float = request.config.getoption("--fuzz-seconds")
    return seconds / 7


@pytest.fixture(scope="session")
def fuzz_seed(request: pytest.FixtureRequest) -> int:
    given: int | None = request.config.getoption("--fuzz-seed")
    return SystemRandom().randrange(1_000_000) if given is None else given


@pytest.fixture(params=[True, False], ids=["fast lane", "ordinary front end"])
def either_front_end(servers: Servers, request: pytest.FixtureRequest) -> Iterator[Target]:
    target = Target(servers.with_settings({**SETTINGS, "fast_lane": request.param}))
    yield target
    target.check_unharmed()


@pytest.fixture
def target(servers: Servers) -> Iterator[Target]:
    target = Target(servers.with_settings(SETTINGS))
    yield target
    target.check_unharmed()


@pytest.fixture
def token(servers: Servers) -> str:
    """The operators' token of the target."""
    return (servers.with_settings(SETTINGS).data / "admin-token").read_text().strip()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the duration of the fuzz tests to their time limits."""
    seconds = config.getoption("--fuzz-seconds")
    for item in items:
        if "fuzz_s" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(2 * seconds + 60))
