"""What a shard tells others about its rows, in the order of its log, beside a naive model."""

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from holdfast.cluster.agreement import Agreements, Stated
from holdfast.cluster.frames import Facts
from holdfast.cluster.places import Place
from holdfast.cluster.rows import UNTOLD, OthersRows
from holdfast.delivery.basics.channels import HELD_ROW, TOPIC_ROW
from holdfast.delivery.basics.ignoring import ignore
from holdfast.sharding.own_rows import OwnRows

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = ["/a", "/a/b", "/a/*", "/**", TOPIC_ROW + "/a", TOPIC_ROW + "/b", HELD_ROW + "/a"]
# The patterns that match each channel.
MATCHING = {"/a": ("/a", "/**"), "/a/b": ("/a/b", "/a/*", "/**"), "/b": ("/**",)}
TELLER, READER = 0, 1


class World:
    """A shard that tells its rows, its store, and a shard that reads its log."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.log: list[Facts] = []
        # What the store has: as a division has left it.
        self.stored = {UNTOLD: "1", "/gone": "1"}
        # The model: how often each row was added, and the rows of which others certainly know.
        self.counts: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.promised: set[str] = set()
        self.read_to, self.is_lost, self.is_woken = 0, False, False
        self.topics: set[str] = set()
        self.others = OthersRows([TELLER])
        self.start()

    def start(self) -> None:
        """A process begins with the sessions that the one before it had."""
        self.unanswered = 0
        self.agreements = Agreements([READER], self._state)
        self.own = OwnRows(self.agreements, lambda facts: self._state(facts, ignore), self._wake)
        for row in self.counts.elements():
            self.own.add(row)
        self.own.begin(self.stored, 0.0)

    def _wake(self) -> None:
        self.is_woken = True

    def _state(self, facts: Facts, stated: Stated) -> None:
        self.log.append(facts)
        self.stored = {name: each for name, each in {**self.stored, **facts}.items() if each}
        stated(Place("xxxxxxxx", 1, len(self.log), 0))

    def add(self) -> None:
        row = self.random.choice(ROWS)
        self.counts[row] += 1
        self.own.add(row)

    def remove(self) -> None:
        if rows := sorted(self.counts):
            row = self.random.choice(rows)
            self.counts[row] -= 1
            if not self.counts[row]:
                del self.counts[row]
                self.ended[row] += 1
                self.promised.discard(row)
            self.own.remove(row)

    def ask(self) -> None:
        row, own = self.random.choice(ROWS), self.own
        ended = self.ended[row]

        def known(is_known: bool) -> None:
            assert is_known
            self.unanswered -= own is self.own
            # What ended meanwhile, and began again, is not what was asked about.
            if own is self.own and self.counts[row] and self.ended[row] == ended:
                self.promised.add(row)

        if self.counts[row]:
            self.unanswered += 1
            self.own.when_known([row], known)

    def flush(self) -> None:
        if self.is_woken:
            self.is_woken = False
            self.own.flush(0.0)

    def read(self) -> None:
        """The other shard takes a frame; one that has lost some takes everything instead."""
        if self.is_lost:
            self.others.begin(TELLER, self.stored)
            self.read_to, self.is_lost = len(self.log), False
        elif self.read_to < len(self.log):
            self.others.learn(TELLER, self.log[self.read_to])
            self.read_to += 1
        self.topics |= {*self.others.take_new_topics()}
        self.agreements.saw(READER, Place("xxxxxxxx", 1, self.read_to, 0))

    def lose(self) -> None:
        self.is_lost = True
        self.others.lose(TELLER)

    def check(self) -> None:
        assert all(self.others.stands(row) is not False for row in self.promised)
        assert self.others.topics <= self.topics
        if self.is_lost:
            assert self.others.shards("/any") == (TELLER,)
            assert self.others.stands(HELD_ROW + "/b") is None

    def check_at_rest(self) -> None:
        """The other shard knows exactly the rows that stand, and so does the store."""
        self.flush()
        while self.is_lost or self.read_to < len(self.log):
            self.read()
        assert self.unanswered == 0
        assert self.stored == dict.fromkeys(self.counts, "1")
        for channel, matching in MATCHING.items():
            stands = any(each in self.counts for each in matching)
            assert self.others.shards(channel) == ((TELLER,) if stands else ())
        assert self.others.stands(HELD_ROW + "/a") is (HELD_ROW + "/a" in self.counts)
        assert self.others.topics == {
            each.removeprefix(TOPIC_ROW) for each in self.counts if each.startswith(TOPIC_ROW)
        }


@pytest.mark.parametrize("seed", range(60))
def test_others_know_the_rows_that_stand_and_those_of_which_it_was_said_so(seed: int) -> None:
    world = World(seed)
    steps: list[Callable[[], None]] = [
        *(world.add, world.remove, world.ask, world.ask, world.flush, world.flush, world.read)
    ]
    for number in range(200):
        world.random.choice(steps)()
        if number % 40 == seed % 40:
            world.lose()
        if number % 60 == seed % 60:
            world.start()
        world.check()
        if not number % 50:
            world.check_at_rest()
    world.check_at_rest()


def test_anything_is_expected_of_a_shard_that_has_told_nothing_since_a_division() -> None:
    others = OthersRows([TELLER])
    others.begin(TELLER, [UNTOLD])
    others.learn(TELLER, {"/b": "1"})
    assert (others.shards("/a"), others.stands(HELD_ROW + "/a")) == ((TELLER,), None)
    others.learn(TELLER, {UNTOLD: ""})
    assert (others.shards("/a"), others.shards("/b")) == ((), (TELLER,))
