"""Connection limits: which connections stay, which are evicted, which are turned away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compose.connection_limits import share
from holdfast.web.front.connection_limit import ConnectionLimit, NoConnectionLimit


class Crowd:
    """Connections by number, and those that were evicted, in order."""

    def __init__(self, limit: int, *, for_operators: bool = False) -> None:
        self.refusals = 0
        self.room = ConnectionLimit(limit, self._count, for_operators=for_operators)
        self.sent_away: list[int] = []

    def _count(self) -> None:
        self.refusals += 1

    def arrive(self, guest: int) -> bool:
        if not self.room.has_place():
            return False
        self.room.enter(guest, lambda: self.sent_away.append(guest))
        return True


def test_the_oldest_connection_without_a_request_is_evicted() -> None:
    crowd = Crowd(3)
    assert all(crowd.arrive(guest) for guest in (1, 2, 3))
    crowd.room.hear(1)
    assert crowd.arrive(4)
    assert crowd.arrive(5)
    assert crowd.sent_away == [2, 3]
    assert len(crowd.room) == 3


def test_new_connections_are_turned_away_if_all_others_have_sent_a_request() -> None:
    crowd = Crowd(2)
    for guest in (1, 2):
        crowd.arrive(guest)
        crowd.room.hear(guest)
    assert not crowd.arrive(3)
    assert (crowd.sent_away, crowd.room.turned_away, crowd.refusals) == ([], 1, 1)
    crowd.room.leave(1)
    assert crowd.arrive(4)


def test_only_a_valid_token_protects_a_connection_of_the_administration() -> None:
    crowd = Crowd(2, for_operators=True)
    for guest in (1, 2):
        crowd.arrive(guest)
        crowd.room.hear(guest)
    crowd.room.keep(1)
    assert crowd.arrive(3)
    crowd.room.keep(3)
    assert not crowd.arrive(4)
    assert crowd.sent_away == [2]


def test_an_evicted_connection_that_leaves_frees_no_other_place() -> None:
    crowd = Crowd(1)
    crowd.arrive(1)
    crowd.arrive(2)
    crowd.room.leave(1)
    assert len(crowd.room) == 1


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["arrive", "hear", "leave"]), st.integers(0, 9))))
def test_the_limit_holds_and_connections_with_a_request_are_never_evicted(
    steps: list[tuple[str, int]],
) -> None:
    crowd = Crowd(4)
    arrived: set[int] = set()
    heard: set[int] = set()
    for number, (what, guest) in enumerate(steps, start=100):
        if what == "arrive":
            if crowd.arrive(number):
                arrived.add(number)
        elif what == "hear":
            crowd.room.hear(100 + guest)
            heard |= {100 + guest} & arrived - {*crowd.sent_away}
        else:
            crowd.room.leave(100 + guest)
        assert len(crowd.room) <= 4
        assert not heard & {*crowd.sent_away}


def test_connections_are_not_tracked_without_a_limit() -> None:
    room = NoConnectionLimit()
    for guest in range(10):
        assert room.has_place()
        room.enter(guest, lambda: None)
    assert (len(room), room.turned_away) == (0, 0)


@given(st.integers(0, 2**30), st.booleans())
def test_descriptors_are_left_for_the_store_and_for_operators(limit: int, apart: bool) -> None:
    main, admin = share(limit, has_admin_apart=apart)
    left = limit - main - (admin if apart else 0)
    assert left == min(128, limit // 4)
    assert main >= limit // 2
    assert 0 <= admin <= 128


def test_a_place_is_kept_from_its_claim_on() -> None:
    room = ConnectionLimit(2)
    room.enter(1, lambda: None)
    assert not room.is_kept(1)
    room.hear(1)
    assert room.is_kept(1)
    room.leave(1)
    assert not room.is_kept(1)
