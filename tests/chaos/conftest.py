"""How long the chaos lasts."""

from collections.abc import Iterator
from itertools import repeat
from random import SystemRandom

import pytest

# Most start several servers, whose imports alone take 5 to 10 s of a processor, of which a test may
# have a tenth.
LIMIT_S = 300.0


@pytest.fixture(scope="session")
def chaos_s(request: pytest.FixtureRequest) -> float:
    seconds: float = request.config.getoption("--chaos-seconds")
    return seconds


@pytest.fixture(scope="session")
def seeds(request: pytest.FixtureRequest) -> Iterator[int]:
    """Random seeds, one for each play; or always the seed of an earlier run."""
    given: int | None = request.config.getoption("--chaos-seed")
    if given is not None:
        return repeat(given)
    dice = SystemRandom()
    return iter(lambda: dice.randrange(1_000_000), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give these tests more time than others, and those of the chaos its duration, too."""
    seconds = config.getoption("--chaos-seconds")
    for item in items:
        if "tests/chaos" not in str(item.path):
            continue
        if "chaos_s" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(2 * seconds + LIMIT_S))
        elif item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
