"""Each shard knows up to when it has learned what others have told."""

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.cluster.places import NOWHERE, Place
from holdfast.sharding.contacts import Contacts
from holdfast.sharding.following import Following
from tests.unit.cluster.test_reading import Reading, frames


class World:
    """The contacts to one shard, by a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.contacts = Contacts((1,), lambda: self.now)

    def read(self, place: Place, shown: Place, *, is_all: bool = True, took_s: float = 1.0) -> None:
        """A read that began before now."""
        self.contacts.begin(1)
        self.now += took_s
        self.contacts.end(1, place, shown, is_all=is_all)

    @property
    def heard_at(self) -> float:
        return self.contacts.heard_at(1)


@pytest.fixture
def world() -> World:
    return World()


def place(n: int) -> Place:
    return Place("aaaaaaaa", 1, n, n)


def test_nothing_is_known_before_the_first_read(world: World) -> None:
    assert world.heard_at == -inf


def test_a_read_has_what_was_told_until_it_began(world: World) -> None:
    world.read(NOWHERE, NOWHERE, took_s=9.0)
    assert world.heard_at == 100.0


def test_what_waits_for_the_store_is_not_known_yet(world: World) -> None:
    world.read(place(2), place(1))
    world.read(place(3), place(1))
    assert world.heard_at == -inf
    world.contacts.show(1, place(2))
    assert world.heard_at == 100.0


def test_a_read_that_had_no_room_for_all_says_nothing(world: World) -> None:
    world.read(place(2), place(2), is_all=False)
    assert world.heard_at == -inf


def test_a_reader_that_is_always_a_little_behind_goes_on_hearing(world: World) -> None:
    for n in range(1, 10):
        world.read(place(n), place(n - 1))
    assert world.heard_at == 106.0


def test_a_read_with_a_frame_that_is_unreadable_says_nothing(world: World) -> None:
    at = Reading()
    member: Any = SimpleNamespace(
        readers={1: at.reader},
        heard=lambda _, after, found: at.reader.heard(after, found, 0.0),
        others=SimpleNamespace(homes=SimpleNamespace(contacts=world.contacts)),
        is_awaited=False,
    )
    no_facts: Any = None
    following = Following(member, {}, no_facts, lambda: 0.0)
    first, second = frames(2, flags=0)
    unreadable = second[0], {**second[1], b"all": b"nonsense"}
    for now, found in ((0.0, [first, unreadable]), (2.0, [second])):
        assert world.heard_at == -inf
        after = at.reader.next_read(now)
        assert after is not None
        world.contacts.begin(1)
        following._heard(1, after, found)
    assert world.heard_at == 100.0
