"""The world of `interest_world.py` with an embedded store for each shard, and links between them.

No other process can open that store, so one speaks although it could not raise its lease.
"""

from collections.abc import Callable
from typing import cast

from holdfast.cluster.inclusion import Inclusion
from holdfast.cluster.places import NOWHERE, Place
from tests.unit.cluster.interest_world import RAISE_S, Process, World


class Embedded(Process):
    """A process that shows others by a counter, or over links, that it lives."""

    world: "EmbeddedWorld"

    def __init__(self, world: "EmbeddedWorld", number: int) -> None:
        super().__init__(world, number)
        self.wanted: set[int] = set()
        self.inclusion = Inclusion(self.others, self.interest, lambda: world.now, self.wanted.add)
        # What is on its way: raises by when they were sent, facts that are read, and what others
        # have said and answered on links.
        self.raising: list[float] = []
        self.reading: dict[int, tuple[float, dict[str, str], Place]] = {}
        self.said: list[tuple[int, float]] = []
        self.answered: list[tuple[int, float]] = []
        self.asked: dict[int, Place] = {}

    @property
    def may_speak(self) -> bool:
        return self.is_serving and not self.is_frozen

    def raise_first(self) -> None:
        if self.store.takes_raises:
            self.store.lease += 1
            self.inclusion.shown(self.world.now)

    def read_facts(self, other: int) -> None:
        self.begin_to_read(other)
        if other in self.reading:
            self.finish(other)
        else:
            self.interest.lose(other)
            self.at[other] = NOWHERE
            self.wanted.add(other)

    def begin_to_read(self, other: int) -> None:
        store = self.world.stores[other]
        if store.is_readable and other not in self.reading:
            self.reading[other] = self.world.now, {**store.facts}, store.facts_at

    def finish(self, other: int) -> None:
        began_at, facts, self.at[other] = self.reading.pop(other)
        self.wanted.discard(other)
        self.interest.begin(other, facts)
        self.inclusion.read(other, began_at)

    def live(self) -> None:
        now = self.world.now
        if self.store.takes_raises and now - self.raised_at >= RAISE_S:
            self.store.lease += 1
            self.raised_at = now
            self.raising.append(now)
        self.agreements.tick(now)
        self.look()
        self.world.check(self)
        for other in self.inclusion.to_tell():
            if self.world.is_linked(self.number, other):
                self.world.at(other).said.append((self.number, now))
        for other, place in self.agreements.to_ask(now).items():
            if self.world.is_linked(self.number, other):
                self.world.at(other).asked[self.number] = place

    def talk(self) -> None:
        """Hear and answer something of each kind, and read facts that are wanted."""
        if self.raising:
            self.inclusion.shown(self.raising.pop(0))
        if self.said:
            other, sent_at = self.said.pop(0)
            self.world.hear_life(self, other)
            if self.world.is_linked(self.number, other):
                self.world.at(other).answered.append((self.number, sent_at))
        if self.answered:
            other, sent_at = self.answered.pop(0)
            self.inclusion.shown(sent_at, other)
        for other, place in [*self.asked.items()]:
            at = self.at.get(other, NOWHERE)
            if at.nonce == place.nonce and at.n >= place.n:
                del self.asked[other]
                self.world.processes[other].told.append((self.number, place))
            else:
                self.wanted.add(other)

    def read_wanted(self) -> None:
        for other in sorted(self.reading):
            self.finish(other)
            return
        for other in sorted(self.wanted):
            self.begin_to_read(other)

    def read(self) -> None:
        # One connection reads both, one after the other.
        if not self.reading:
            super().read()

    def publish(self) -> None:
        self.world.check(self)
        super().publish()


class EmbeddedWorld(World):
    """Stores may take no raises, and links may be cut; broken variants override single parts."""

    def __init__(self, seed: int) -> None:
        self.cut: set[frozenset[int]] = set()
        super().__init__(seed)

    def make(self, number: int) -> Process:
        return Embedded(self, number)

    def at(self, number: int) -> Embedded:
        return cast("Embedded", self.processes[number])

    def is_linked(self, one: int, other: int) -> bool:
        return frozenset((one, other)) not in self.cut

    def check(self, process: Embedded) -> None:
        """See whether others may have left this process out."""
        process.inclusion.check()

    def hear_life(self, process: Embedded, other: int) -> None:
        process.agreements.lives(other, self.now)

    def opening_steps(self, process: Process) -> list[Callable[[], None]]:
        opening, *reading = super().opening_steps(process)
        return [opening, cast("Embedded", process).raise_first, *reading]

    def ordinary(self, process: Process) -> list[Callable[[], None]]:
        found = super().ordinary(process)
        embedded = cast("Embedded", process)
        if process.is_serving:
            found += [embedded.talk, embedded.talk, embedded.talk, embedded.read_wanted]
        return found

    def faults(self, process: Process) -> list[Callable[[], None]]:
        def be(name: str, *, is_so: bool) -> Callable[[], None]:
            return lambda: setattr(process.store, name, is_so)

        pair = frozenset((process.number, self.random.choice(process.others)))
        return [
            *super().faults(process),
            be("takes_raises", is_so=False),
            be("takes_raises", is_so=True),
            lambda: self.cut.add(pair),
            lambda: self.cut.discard(pair),
        ]
