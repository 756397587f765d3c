"""What tests of several folders share."""

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.serving import Servers

# Servers are under faults for so long: the two runs with everybody in them share this time.
CHAOS_S = 60.0
# Servers are sent nonsense for so long, after a few seconds of what did harm once.
FUZZ_S = 24.0


# Pytest knows options of the folders that it is told of, and this is the one it always is.
def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--chaos-seconds", type=float, default=CHAOS_S, help="how long servers are tormented"
    )
    parser.addoption("--chaos-seed", type=int, default=None, help="the seed of an earlier run")
    parser.addoption(
        "--fuzz-seconds", type=float, default=FUZZ_S, help="how long servers are sent nonsense"
    )
    parser.addoption("--fuzz-seed", type=int, default=None, help="the seed of earlier nonsense")


def pytest_configure() -> None:
    # A machine may think of something else while an example runs.
    settings.register_profile("patient", deadline=None)
    settings.register_profile("quick", deadline=None, max_examples=10)
    settings.load_profile("patient")
    # A shell lets what it starts in the background ignore ctrl-C, and so would all children of it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # What is imported stays until the end: none of it needs to be looked through for garbage.
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    # DuckDB would tell of what is frozen as of leaks.
    gc.unfreeze()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Server processes, one for every set of settings, kept over the whole run."""
    servers = Servers()
    yield servers
    servers.stop()
