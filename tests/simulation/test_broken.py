"""Servers that are broken on purpose: seeds must find each of them."""

import pytest

from tests.simulation.broken import ALL_BUILDS
from tests.simulation.run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


# Some that a seed finds in a second, and that seed. A night plays all of them, with more seeds:
# `python -m tests.simulation --broken NAME --seeds 1-200`.
FOUND_SOON = {
    "no_server_falls_silent": 7,
    "a_raise_counts_without_a_replica": 9,
    "a_store_is_taken_back_from_any_epoch": 6,
    "acks_do_not_reach_the_store": 3,
    "keys_are_forgotten_at_a_restart": 3,
    "subscribers_are_not_stored": 1,
    "what_crosses_is_appended_afterwards": 6,
    "acks_of_former_clients_count": 1,
    "sessions_of_absent_shards_are_unknown": 2,
}


@pytest.mark.parametrize("build", FOUND_SOON)
def test_a_seed_finds_each_broken_server(build: str) -> None:
    first = FOUND_SOON[build]
    # Any change of a server may change what a seed does.
    code, said = simulate("--broken", build, "--seeds", f"{first}-{first + 40}")
    assert code == 1, said


def test_the_builds_that_are_found_soon_are_some_of_all() -> None:
    assert {*FOUND_SOON} < ALL_BUILDS.keys()
