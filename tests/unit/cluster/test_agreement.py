"""When all shards know a fact."""

from typing import TYPE_CHECKING

import pytest

from holdfast.cluster.agreement import Agreements, Stated
from holdfast.cluster.places import Place

if TYPE_CHECKING:
    from holdfast.cluster.frames import Facts

FACT = {"/a": "1"}


def place(n: int, nonce: str = "xxxxxxxx") -> Place:
    return Place(nonce, 1, n, n)


class Shard:
    """A shard with others, 1 and 2; its log is answered by the test."""

    def __init__(self) -> None:
        self.stated: list[tuple[Facts, Stated]] = []
        self.answers: list[bool] = []
        self.agreements = Agreements([1, 2], lambda facts, done: self.stated.append((facts, done)))

    def agree(self, now: float = 0.0) -> None:
        self.agreements.agree(FACT, now, self.answers.append)

    def confirm(self, n: int, nonce: str = "xxxxxxxx") -> None:
        self.stated.pop(0)[1](place(n, nonce))

    def look(self, lease: str | None, now: float) -> None:
        """Look at the holder of shard 2, if it is time."""
        if 2 in self.agreements.holders_to_read(now):
            self.agreements.read(2, lease, now)


def test_a_fact_is_agreed_when_all_shards_have_read_its_frame() -> None:
    at = Shard()
    at.agree()
    assert at.stated[0][0] == FACT
    at.agreements.saw(1, place(9))
    at.confirm(5)
    at.agreements.saw(2, place(4))
    assert at.answers == []
    at.agreements.saw(2, place(5))
    assert at.answers == [True]
    assert len(at.agreements) == 0


def test_places_in_an_earlier_opening_say_nothing_about_a_later_one() -> None:
    at = Shard()
    at.agree()
    at.confirm(5)
    at.agreements.saw(1, place(5))
    at.agreements.begin_again()
    for shard in (1, 2):
        at.agreements.saw(shard, place(5))
    at.confirm(1, "yyyyyyyy")
    assert at.answers == []
    for shard in (1, 2):
        at.agreements.saw(shard, place(1, "yyyyyyyy"))
    assert at.answers == [True]


def test_a_fact_that_some_shard_does_not_know_is_refused_after_five_seconds() -> None:
    at = Shard()
    at.agree(now=1.0)
    at.confirm(5)
    at.agreements.saw(1, place(5))
    at.agreements.tick(5.9)
    assert at.answers == []
    at.agreements.tick(6.0)
    assert at.answers == [False]


def test_a_shard_whose_store_names_no_holder_is_left_out() -> None:
    at = Shard()
    at.agree()
    at.confirm(5)
    at.agreements.saw(1, place(5))
    at.look("", 0.05)
    assert at.answers == []
    at.look("", 0.3)
    assert at.answers == [True]


@pytest.mark.parametrize(
    ("looks", "answers"),
    [
        # The lease stands for three seconds.
        ([(0.3 + n / 4, "7 1") for n in range(14)], [True]),
        # It is raised once.
        ([(0.3 + n / 4, "7 1" if n < 5 else "7 2") for n in range(14)], []),
        # It cannot be read once.
        ([(0.3 + n / 4, None if n == 5 else "7 1") for n in range(14)], []),
        # It is not looked at for a while.
        ([(0.3 + n / 4, "7 1") for n in range(14) if not 4 < n < 9], []),
    ],
)
def test_a_shard_is_left_out_only_if_its_lease_stood_for_three_seconds(
    looks: list[tuple[float, str | None]], answers: list[bool]
) -> None:
    at = Shard()
    at.agree()
    at.confirm(5)
    at.agreements.saw(1, place(5))
    for now, lease in looks:
        at.look(lease, now)
    assert at.answers == answers


def test_a_shard_is_not_looked_at_before_the_fact_is_in_the_log() -> None:
    at = Shard()
    at.agree()
    at.look("", 2.0)
    at.confirm(5)
    at.agreements.saw(1, place(5))
    assert at.answers == []


def test_a_shard_that_says_that_it_lives_is_not_left_out_although_its_lease_stands() -> None:
    at = Shard()
    at.agree()
    at.confirm(5)
    at.agreements.saw(1, place(5))
    for n in range(40):
        now = 0.3 + n / 10
        at.look("7 1", now)
        if n % 10 == 5:
            at.agreements.lives(2, now)
    assert at.answers == []
    for n in range(31):
        at.look("7 1", 4.3 + n / 10)
    assert at.answers == [True]


def test_while_a_lease_stands_later_facts_need_no_three_seconds_each() -> None:
    at = Shard()
    at.agree()
    at.confirm(5)
    at.agreements.saw(1, place(5))
    for n in range(34):
        at.look("7 1", 0.3 + n / 10)
    assert at.answers == [True]
    at.agree(now=3.7)
    at.look("7 1", 3.75)
    at.confirm(6)
    at.agreements.saw(1, place(6))
    at.look("7 1", 4.0)
    assert at.answers == [True, True]


def test_a_look_that_began_before_a_fact_was_in_the_log_says_nothing_about_it() -> None:
    at = Shard()
    at.agree()
    at.confirm(5)
    at.agreements.saw(1, place(5))
    for n in range(34):
        at.look("7 1", 0.3 + n / 10)
    at.agree(now=4.0)
    assert at.agreements.holders_to_read(4.0) == [2]
    at.confirm(6)
    at.agreements.saw(1, place(6))
    at.agreements.read(2, "7 1", 4.2)
    assert at.answers == [True]


def test_shards_are_asked_about_the_last_place_that_they_must_know() -> None:
    at = Shard()
    for n in (5, 6):
        at.agree()
        at.confirm(n)
    at.agreements.saw(1, place(6))
    assert at.agreements.to_ask(0.05) == {}
    assert at.agreements.to_ask(0.2) == {2: place(6)}
    assert at.agreements.to_ask(0.6) == {}
    assert at.agreements.to_ask(0.8) == {2: place(6)}
