"""How long the chaos lasts."""

from collections.abc import Iterator
from itertools import repeat
from random import SystemRandom

import pytest


@pytest.fixture(scope="session")
def chaos_s(request: pytest.FixtureRequest) -> float:
    seconds: float = request.config.getoption("--chaos-seconds")
    return seconds


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> Iterator[int]:
    """One for the dice of each play; or always the same, of an earlier run."""
    given: int | None = request.config.getoption("--chaos-seed")
    if given is not None:
        return repeat(given)
    dice = SystemRandom()
    return iter(lambda: dice.randrange(1_000_000), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What lasts as long as it was told to has that much more time."""
    seconds = config.getoption("--chaos-seconds")
    for item in items:
        if "chaos_s" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(2 * seconds + 120))
