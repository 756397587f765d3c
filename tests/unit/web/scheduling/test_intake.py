"""The intake: the bytes of all incomplete requests together are limited."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.web.scheduling.intake import Intake


def test_room_that_is_given_back_can_be_taken_again() -> None:
    intake = Intake(10)
    intake.take(6)
    intake.take(4)
    intake.give_back(6)
    intake.take(6)
    assert intake.used == 10


def test_a_request_that_does_not_fit_is_refused_and_takes_no_room() -> None:
    intake = Intake(10)
    intake.take(6)
    with pytest.raises(RequestRefused, match="503::server_busy"):
        intake.take(5)
    assert intake.used == 6


ONE, OTHER = "203.0.113.1", "2001:db8::/64"


def test_one_network_takes_half_of_the_room_at_most() -> None:
    intake = Intake(10)
    intake.take(5, ONE)
    with pytest.raises(RequestRefused, match="503::server_busy"):
        intake.take(1, ONE)
    intake.take(5, OTHER)
    assert intake.used == 10
    intake.give_back(2, ONE)
    intake.take(2, ONE)
    assert intake.used == 10


def test_requests_from_this_machine_may_take_all_the_room() -> None:
    intake = Intake(10)
    intake.take(10)
    assert (intake.used, len(intake)) == (10, 0)


@given(st.lists(st.tuples(st.sampled_from(["", ONE, OTHER]), st.integers(0, 8)), max_size=20))
def test_only_networks_that_use_room_have_an_entry(takes: list[tuple[str, int]]) -> None:
    intake, taken = Intake(20), []
    for network, size in takes:
        with suppress(RequestRefused):
            intake.take(size, network)
            taken.append((network, size))
        assert intake.used == sum(size for _, size in taken)
        assert len(intake) == len({network for network, size in taken if network and size})
    for network, size in taken:
        intake.give_back(size, network)
    assert (intake.used, len(intake)) == (0, 0)
