"""Shards that tell each other rows by calls, some of which are lost, beside a naive model."""

import random
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from logging import getLogger
from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.bayeux.state import shared
from holdfast.bayeux.state.calls import Calls
from holdfast.bayeux.state.shared import Row, Shared
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.shard_call import ShardCall

# A constant is replaced here, which compiled code has built in.
pytestmark = pytest.mark.interpreted

NAMES = [f"/{number}" for number in range(7)]
# A call that is no row: all that was hurried stands before it.
MARK = "mark"


class Shard:
    """A shard with one neighbour; `Rows`, and what it needs of the rest."""

    def __init__(self, world: "World", number: int) -> None:
        self.world, self.number = world, number
        # The model: by name, how often the row has changed, 0 while there is none.
        self.rows: Counter[str] = Counter()
        self.heard: dict[str, int] = {}
        # Whether a call of the neighbour was lost: the next ones say nothing until one begins.
        self.lacks_some = True
        # Calls to the neighbour, in its log, each with what hears the answer.
        self.log: deque[tuple[str, bytes, Callable[[bytes | None], None]]] = deque()
        self.turn: list[Callable[[float], None]] = []
        self.is_open = self.is_near = True
        self.others = [1 - number]
        self.start()

    def start(self) -> None:
        """A process begins. It has the rows of the one before it, and has heard nothing."""
        self.heard.clear()
        self.lacks_some, self.has_hurried = True, False
        self.turn.clear()
        self.log = deque((what, data, ignore) for what, data, _ in self.log)
        port: Any = self
        self.calls = Calls(port, getLogger(__name__))
        state: Any = SimpleNamespace(
            calls=self.calls,
            backlog=SimpleNamespace(at_turn_end=self.turn.append),
            node=SimpleNamespace(stamp=lambda: next(self.world.stamps)),
        )
        self.shared: Shared[str] = Shared(self, state, port, port, what="rows")

    def may_send(self, _: int) -> bool:
        return self.is_open

    def is_away(self, _: int) -> bool:
        return not self.is_near

    def send(self, _: int, what: str, data: bytes, done: Callable[[bytes | None], None]) -> None:
        assert self.is_open
        # One call waits for the answer to the one before it.
        assert self.has_hurried or all(heard is ignore for _, _, heard in self.log)
        self.log.append((what, data, done))

    def answer(self, _: ShardCall, answer: bytes) -> None:
        self.world.answer = answer

    # Rows

    def everything_for(self, _: int) -> Iterator[str]:
        return iter([*self.rows])

    def row_of(self, name: str) -> Row:
        return [name, self.rows[name]]

    def is_nothing(self, row: Row) -> bool:
        return not row[1]

    def replace(self, shard: int, rows: Sequence[Row]) -> None:
        assert shard == 1 - self.number
        self.heard = {row[0]: row[1] for row in rows}
        assert len(self.heard) == len(rows)
        self.lacks_some = False

    def take(self, shard: int, row: Row) -> None:
        assert shard == 1 - self.number
        assert not self.lacks_some
        self.heard[row[0]] = row[1]

    @property
    def known(self) -> dict[str, int]:
        """What it knows of the other one."""
        return {name: each for name, each in sorted(self.heard.items()) if each}

    @property
    def known_here(self) -> dict[str, int]:
        """What that one should know of this one."""
        return {name: each for name, each in sorted(self.rows.items()) if each}


class World:
    """Two shards, and what happens between them. The seed decides that."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.stamps = count(1000, 1000)
        self.now = 0.0
        self.answer: bytes | None = None
        self.shards = [Shard(self, 0), Shard(self, 1)]

    def change(self, at: Shard) -> None:
        name = self.random.choice(NAMES)
        at.rows[name] = 0 if self.random.random() < 0.3 else next(self.stamps)
        at.shared.note(1 - at.number, name)
        if self.random.random() < 0.5:
            at.shared.tell_soon()

    def end_turn(self, at: Shard) -> None:
        turn, at.turn = at.turn, []
        for each in turn:
            each(self.now)

    def tick(self, at: Shard) -> None:
        self.now += 0.3
        at.shared.tick(self.now)

    def deliver(self, at: Shard, *, may_fail: bool = False) -> None:
        """Take a call of a shard; it may be lost, or its answer."""
        if not at.log:
            return
        what, data, done = at.log.popleft()
        other, self.answer = self.shards[1 - at.number], None
        fate = self.random.random() if may_fail else 1.0
        if what == MARK:
            assert repr(other.known).encode() == data
        elif fate > 0.05:
            other.calls.do(ShardCall(at.number, 0, "", what, data), self.now)
        else:
            other.lacks_some = True
        done(self.answer if fate > 0.1 else None)

    def mark(self, at: Shard) -> None:
        """Let what follows be behind all that has changed."""
        at.has_hurried = True
        at.shared.hurry(1 - at.number)
        at.send(1 - at.number, MARK, repr(at.known_here).encode(), ignore)

    def start(self, at: Shard) -> None:
        """A process is killed, and another one begins."""
        if self.random.random() < 0.1:
            at.start()

    def leave(self, at: Shard) -> None:
        """A store is away, or back; the other shard cannot be reached, or can."""
        at.is_open = not at.is_open if self.random.random() < 0.3 else at.is_open
        at.is_near = not at.is_near if self.random.random() < 0.3 else at.is_near

    def lose(self, at: Shard) -> None:
        """A shard gives up its neighbour, and asks again when that is back."""
        if self.random.random() < 0.1:
            at.shared.lose(1 - at.number)
            assert at.known == {}
            at.lacks_some = True
            at.shared.ask(1 - at.number)

    def rest(self) -> None:
        """Nothing fails any more: then both know what the other one has, and are still."""
        for shard in self.shards:
            shard.is_open = shard.is_near = True
        for _ in range(30):
            for shard in self.shards:
                self.tick(shard)
                self.end_turn(shard)
                while shard.log:
                    self.deliver(shard)
        for shard in self.shards:
            assert shard.known == self.shards[1 - shard.number].known_here
            self.tick(shard)
            assert not shard.log


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything takes several calls."""
    monkeypatch.setattr(shared, "_MOST", 2)


@pytest.mark.parametrize("seed", range(40))
def test_shards_know_the_rows_of_others_whatever_is_lost(seed: int) -> None:
    world = World(seed)
    take = partial(world.deliver, may_fail=True)
    steps: list[Callable[[Shard], None]] = [world.change, world.change, take, take]
    steps += [world.end_turn, world.tick, world.start, world.leave, world.lose]
    for _ in range(5):
        for _ in range(60):
            world.random.choice(steps)(world.random.choice(world.shards))
        world.rest()


@pytest.mark.parametrize("seed", range(20))
def test_what_follows_rows_that_are_hurried_finds_them_all(seed: int) -> None:
    world = World(seed)
    world.rest()
    steps = [world.change, world.change, world.end_turn, world.tick, world.deliver, world.mark]
    for _ in range(200):
        world.random.choice(steps)(world.random.choice(world.shards))
