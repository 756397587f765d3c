"""Servers that are broken on purpose: seeds must find each of them."""

import pytest

from tests.simulation.broken import ALL_BUILDS
from tests.simulation.run import simulate

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


# Those that a few seeds find, and the seed to begin with, which has found it in a second or two.
# The others need tens of seeds: `python -m tests.simulation --broken NAME --seeds 1-200`.
FOUND_SOON = {
    "no_server_falls_silent": 7,
    "a_raise_counts_without_a_replica": 9,
    "a_store_is_taken_back_from_any_epoch": 6,
    "publishers_are_answered_before_the_store": 3,
    "subscribers_are_not_stored": 1,
    "acks_do_not_reach_the_store": 3,
    "keys_are_ignored": 2,
    "keys_are_forgotten_at_a_restart": 3,
    "bodies_go_with_their_first_entry": 1,
    "what_crosses_is_appended_afterwards": 6,
    "passing_messages_never_cross": 1,
    "passing_messages_swap_places": 1,
    "logs_are_trimmed_at_once": 3,
    "a_frozen_shard_blocks_agreement": 6,
    "changes_of_presence_are_not_told": 1,
    "work_that_others_have_done_stays": 6,
    "erasures_stay_at_their_home": 6,
    "keys_are_left_behind": 1,
    "given_requests_are_forwarded_too": 4,
    "acks_of_former_clients_count": 1,
    "restarts_forget_sessions_without_names": 1,
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
