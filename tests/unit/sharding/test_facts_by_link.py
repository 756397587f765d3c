"""Over links, shards ask each other what they know, and say that they live."""

from typing import TYPE_CHECKING, cast

import pytest

from holdfast.cluster.agreement import Agreements
from holdfast.cluster.places import Place
from holdfast.sharding.facts_by_link import FactsByLink

if TYPE_CHECKING:
    from holdfast.sharding.other_shards import OtherShards


class Way:
    """The link to the other shard, and what was said there."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.said: list[int] = []

    def ask(self, place: str) -> None:
        self.asked.append(place)

    def say_alive(self, number: int) -> None:
        self.said.append(number)


class Known:
    def __init__(self) -> None:
        self.wanted: set[int] = set()


class Shard:
    """A shard whose log is answered at once, and which reads nothing by itself."""

    def __init__(self) -> None:
        self.now = 10.0
        self.agreed: list[bool] = []
        self.known = Known()
        self.readers: dict[int, object] = {}
        self.agreements = Agreements([1], lambda _, stated: stated(place(7)))
        self.facts = FactsByLink(cast("OtherShards", self), None, lambda: self.now)
        self.way = Way()
        self.facts.outlets = {1: self.way}

    def wait(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.facts.tick()
            self.agreements.tick(self.now)


def place(n: int, nonce: str = "xxxxxxxx") -> Place:
    return Place(nonce, 1, n, n)


@pytest.fixture
def at() -> Shard:
    return Shard()


def test_a_shard_that_says_nothing_in_its_log_is_asked_again_and_again(at: Shard) -> None:
    at.agreements.agree({"/a": "1"}, at.now, at.agreed.append)
    at.wait(2.0)
    assert {*at.way.asked} == {str(place(7))}
    assert 3 <= len(at.way.asked) <= 5
    at.facts.known(1, str(place(7)))
    assert at.agreed == [True]
    at.way.asked.clear()
    at.wait(2.0)
    assert at.way.asked == []


def test_who_is_asked_reads_the_facts_and_answers_then(at: Shard) -> None:
    answers: list[str] = []
    at.facts.asked(1, str(place(7)), answers.append)
    assert at.known.wanted == {1}
    at.facts.has_read(1, place(6), 0.0)
    at.facts.tick()
    assert answers == []
    at.facts.has_read(1, place(9), 0.0)
    at.facts.tick()
    assert answers == [str(place(7))]
    # It knows by now.
    at.facts.asked(1, str(place(8)), answers.append)
    assert answers[1:] == [str(place(8))]


def test_what_is_known_of_an_earlier_opening_is_no_answer(at: Shard) -> None:
    answers: list[str] = []
    at.facts.has_read(1, place(9), 0.0)
    at.facts.asked(1, str(place(1, "yyyyyyyy")), answers.append)
    assert answers == []


def test_a_place_that_is_none_is_known_by_none(at: Shard) -> None:
    at.agreements.agree({"/a": "1"}, at.now, at.agreed.append)
    at.facts.known(1, "nowhere")
    assert at.agreed == []
