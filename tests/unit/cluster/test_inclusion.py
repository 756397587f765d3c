"""A shard that others may have left out expects anything of them, until it reads their facts."""

import pytest

from holdfast.cluster.inclusion import Inclusion
from holdfast.cluster.rows import OthersRows

DOUBTED: tuple[int, ...] = (1, 2)


class Shard:
    """A shard with others, 1 and 2, by a clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.rows = OthersRows([1, 2])
        self.to_read: list[int] = []
        self.inclusion = Inclusion([1, 2], self.rows, lambda: self.now, self.to_read.append)

    def read(self, shard: int, began_at: float) -> None:
        """The facts of a shard were read: it has no durable subscription."""
        self.rows.begin(shard, [])
        self.inclusion.read(shard, began_at)

    def start(self) -> None:
        self.inclusion.shown(self.now)
        for shard in (1, 2):
            self.read(shard, self.now)

    @property
    def expected(self) -> tuple[int, ...]:
        """The shards that may have a durable receiver."""
        self.inclusion.check()
        return self.rows.shards("/a")


@pytest.fixture
def at() -> Shard:
    found = Shard()
    found.start()
    assert found.expected == ()
    return found


def test_at_first_anything_is_expected_whatever_was_read() -> None:
    at = Shard()
    at.read(1, at.now)
    assert at.expected == DOUBTED
    at.inclusion.shown(at.now)
    assert at.to_read == [1, 2]
    assert at.expected == DOUBTED


def test_a_shard_that_shows_that_it_lives_is_left_out_by_none(at: Shard) -> None:
    for _ in range(20):
        at.now += 2.2
        at.inclusion.shown(at.now - 0.3)
        assert at.expected == ()
    assert at.to_read == [1, 2]


def test_what_was_sent_counts_and_not_when_it_was_answered(at: Shard) -> None:
    at.now += 2.6
    at.inclusion.shown(at.now - 2.6)
    assert at.expected == DOUBTED


def test_who_may_be_left_out_reads_all_facts_before_they_count_again(at: Shard) -> None:
    at.to_read.clear()
    at.now += 2.6
    assert at.expected == DOUBTED
    began_at = at.now
    at.now += 0.1
    at.inclusion.shown(at.now)
    assert at.to_read == [1, 2]
    # This read began before the others waited again.
    at.read(1, began_at)
    assert at.expected == DOUBTED
    assert at.to_read == [1, 2, 1]
    at.read(1, at.now)
    assert at.expected == (2,)


def test_a_read_that_took_too_long_does_not_count(at: Shard) -> None:
    at.now += 2.6
    at.inclusion.shown(at.now)
    began_at = at.now
    at.now += 2.6
    at.to_read.clear()
    at.read(1, began_at)
    assert at.expected == DOUBTED
    # It is read again, once the others wait again.
    at.inclusion.shown(at.now)
    assert at.to_read == [1, 2]


def test_a_read_does_not_count_if_the_others_did_not_wait_all_the_while(at: Shard) -> None:
    at.now += 2.6
    at.inclusion.shown(at.now)
    began_at = at.now
    at.now += 2.6
    at.inclusion.shown(at.now)
    at.read(1, began_at)
    assert at.expected == DOUBTED
    at.read(1, at.now)
    assert at.expected == (2,)


def test_each_other_shard_counts_for_itself(at: Shard) -> None:
    at.now += 2.0
    at.inclusion.shown(at.now, 2)
    at.now += 1.0
    assert at.expected == (1,)


def test_whoever_has_shown_nothing_for_a_second_says_on_links_that_it_lives(at: Shard) -> None:
    assert at.inclusion.to_tell() == []
    at.now += 1.1
    assert at.inclusion.to_tell() == [1, 2]
    assert at.inclusion.to_tell() == []
    at.inclusion.shown(at.now, 2)
    at.now += 0.5
    assert at.inclusion.to_tell() == [1]
