"""Servers that are broken on purpose: seeds must find each of them."""

import pytest

from tests.simulation.broken import BUILDS
from tests.simulation.broken_shards import BUILDS_OF_SHARDS
from tests.simulation.run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


# Those that a few seeds find, in a few seconds of processor time. The others need tens of seeds:
# `python -m tests.simulation --broken NAME --seeds 1-200`.
FOUND_SOON = [
    "no_server_falls_silent",
    "publishers_are_answered_before_the_store",
    "subscribers_are_not_stored",
    "acks_do_not_reach_the_store",
    "keys_are_ignored",
    "keys_are_forgotten_at_a_restart",
    "bodies_go_with_their_first_entry",
    "what_crosses_is_appended_afterwards",
    "logs_are_trimmed_at_once",
    "changes_of_presence_are_not_told",
]


@pytest.mark.parametrize("build", FOUND_SOON)
def test_a_seed_finds_each_broken_server(build: str) -> None:
    code, said = simulate("--broken", build, "--seeds", "1-40")
    assert code == 1, said


def test_the_builds_that_are_found_soon_are_some_of_all() -> None:
    assert {*FOUND_SOON} < {*BUILDS, *BUILDS_OF_SHARDS}
