"""Servers that are broken on purpose: seeds must find each of them."""

import pytest

from tests.simulation.broken import ALL_BUILDS
from tests.simulation.run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


# Those that every third seed finds at least, and most in a second. A night plays all:
# `python -m tests.simulation --broken NAME --seeds 1-200`.
FOUND_SOON = (
    "no_server_falls_silent",
    "a_lease_counts_from_the_answer",
    "acks_do_not_reach_the_store",
    "acks_of_former_clients_count",
    "subscribers_are_not_stored",
    "what_crosses_is_appended_afterwards",
)


@pytest.mark.parametrize("build", FOUND_SOON)
def test_a_seed_finds_each_broken_server(build: str) -> None:
    # Any change of a server may change what a seed does.
    code, said = simulate("--broken", build, "--seeds", "1-40")
    assert code == 1, said


def test_the_builds_that_are_found_soon_are_some_of_all() -> None:
    assert {*FOUND_SOON} < ALL_BUILDS.keys()
