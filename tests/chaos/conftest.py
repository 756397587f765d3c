"""How long the chaos lasts."""

from random import SystemRandom

import pytest


@pytest.fixture(scope="session")
def chaos_s(request: pytest.FixtureRequest) -> float:
    seconds: float = request.config.getoption("--chaos-seconds")
    return seconds


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """Of this test's dice; pytest shows what was printed when a test fails."""
    seed: int | None = request.config.getoption("--chaos-seed")
    if seed is None:
        seed = SystemRandom().randrange(1_000_000)
    print(f"--chaos-seed {seed}")  # noqa: T201
    return seed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What lasts as long as it was told to has that much more time."""
    seconds = config.getoption("--chaos-seconds")
    for item in items:
        if "chaos_s" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(2 * seconds + 120))
