"""How long the chaos lasts."""

from collections.abc import Iterator
from itertools import repeat
from random import SystemRandom

import pytest

# Most start several servers, whose imports alone take 5 to 10 s of a processor, of which a test may
# have a tenth.
LIMIT_S = 300.0
# As long as a hundred moves of shards may take, with something that dies in each.
_EVERY_STEP_S = 4 * 3600.0


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
        if config.getoption("--every-step"):
            item.add_marker(pytest.mark.timeout(_EVERY_STEP_S))
        elif "chaos_s" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(2 * seconds + LIMIT_S))
        elif item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LIMIT_S))
