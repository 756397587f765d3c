"""Shards that subscribe, publish, fail and are opened again, with stores in memory.

What must hold: after the answer to a durable subscribe, in any shard, every publish that any shard
accepts on that channel is known there to have a durable receiver.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from holdfast.cluster.agreement import Agreements, Stated
from holdfast.cluster.facts import OthersInterest, OwnInterest
from holdfast.cluster.frames import Facts
from holdfast.cluster.places import NOWHERE, Place

PATTERNS = ["/a", "/b", "/c/*", "/**"]
CHANNELS = ["/a", "/b", "/c/d", "/e"]
MATCHING = {"/a": {"/a"}, "/b": {"/b"}, "/c/*": {"/c/d"}, "/**": {*CHANNELS}}
# A process that could not raise its lease for so long accepts nothing.
SPEAKING_S = 2.5
RAISE_S = 0.5


@dataclass
class Store:
    """What the store of a shard has."""

    log: list[tuple[Place, Facts]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)
    facts_at: Place = NOWHERE
    epoch: str = ""
    lease: int = 0
    is_readable: bool = True
    takes_raises: bool = True

    @property
    def end(self) -> Place:
        return self.log[-1][0] if self.log else NOWHERE


class Process:
    """A shard's process; it serves once it has opened the store and read all facts."""

    def __init__(self, world: "World", number: int) -> None:
        self.world = world
        self.number = number
        self.store = world.stores[number]
        self.others = [each for each in world.stores if each != number]
        self.own = OwnInterest()
        self.interest = OthersInterest(self.others)
        self.agreements = Agreements(self.others, self._state)
        self.at: dict[int, Place] = {}
        self.answers: list[tuple[Stated, Place]] = []
        # What others have told, and is on its way.
        self.told: list[tuple[int, Place]] = []
        self.looks: list[tuple[int, str | None]] = []
        self.is_frozen = False
        self.raised_at = world.now
        self.n = 0
        self.epoch = ""
        self.steps = world.opening_steps(self)

    def open(self) -> None:
        self.world.openings += 1
        self.store.epoch = f"{self.world.openings:08d}"
        self.epoch = self.store.epoch
        self.raised_at = self.world.now
        # The subscriptions are in its store.
        for name in self.store.facts:
            self.own.add(name.removeprefix("durable "))

    def read_facts(self, other: int) -> None:
        store = self.world.stores[other]
        self.interest.begin(other, store.facts)
        self.at[other] = store.facts_at

    @property
    def is_serving(self) -> bool:
        return not self.steps

    @property
    def may_speak(self) -> bool:
        is_holder = self.world.now - self.raised_at < SPEAKING_S
        return self.is_serving and is_holder and not self.is_frozen

    def _state(self, facts: Facts, done: Stated) -> None:
        if self.store.epoch != self.epoch:
            return
        self.n += 1
        place = Place(self.epoch, int(self.epoch), self.n, self.store.end.total + len(facts))
        self.store.log.append((place, facts))
        for name, value in facts.items():
            if value:
                self.store.facts[name] = value
            else:
                self.store.facts.pop(name, None)
        self.store.facts_at = place
        self.answers.append((done, place))

    # What happens

    def step(self) -> None:
        if self.steps:
            self.steps.pop(0)()

    def subscribe(self) -> None:
        pattern = self.world.random.choice(PATTERNS)
        if not self.may_speak or pattern in self.world.subscribed[self.number]:
            return
        facts = self.own.add(pattern)
        assert facts
        self.world.subscribed[self.number].add(pattern)

        def done(is_agreed: bool) -> None:
            if is_agreed and self.may_speak:
                self.world.answered[self.number].add(pattern)
                self.world.agreed += 1
            self.world.refused += not is_agreed

        self.world.agree(self.agreements, facts, done)

    def unsubscribe(self) -> None:
        for pattern in sorted(self.world.answered[self.number])[:1]:
            if self.may_speak:
                self.world.answered[self.number].discard(pattern)
                self.world.subscribed[self.number].discard(pattern)
                self._state(self.own.remove(pattern), lambda _: None)

    def answer(self) -> None:
        if self.answers:
            done, place = self.answers.pop(0)
            done(place)

    def read(self) -> None:
        """Read a frame of another log, and tell the other shard."""
        if not self.is_serving:
            return
        other = self.world.random.choice(self.others)
        log = self.world.stores[other].log
        at = self.at[other]
        following = [each for each in log if (each[0].fence, each[0].n) > (at.fence, at.n)]
        if following:
            self.at[other], facts = following[0]
            self.interest.learn(other, facts)
        self.world.processes[other].told.append((self.number, self.at[other]))

    def hear(self) -> None:
        if self.told:
            self.agreements.saw(*self.told.pop(0))

    def look(self) -> None:
        if self.looks:
            self.agreements.read(*self.looks.pop(0), self.world.now)
        for other in self.agreements.holders_to_read(self.world.now):
            store = self.world.stores[other]
            lease = f"{store.epoch} {store.lease}" if store.epoch else ""
            self.looks.append((other, lease if store.is_readable else None))

    def live(self) -> None:
        """What a process does all the time, unless it is frozen."""
        if self.store.epoch == self.epoch and self.world.now - self.raised_at >= RAISE_S:
            self.store.lease += 1
            if self.world.now - self.raised_at >= SPEAKING_S:
                # Others may have left it out meanwhile.
                self.steps = self.world.after_silence(self)
            self.raised_at = self.world.now
        self.agreements.tick(self.world.now)
        self.look()

    def publish(self) -> None:
        if not self.may_speak:
            return
        channel = self.world.random.choice(CHANNELS)
        known = self.interest.shards(channel)
        for other in self.others:
            for pattern in self.world.answered[other]:
                assert other in known or channel not in MATCHING[pattern], "unknown subscription"


class World:
    """All shards; broken variants override single parts."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.openings = self.agreed = self.refused = 0
        count = self.random.randint(2, 4)
        self.stores = {number: Store() for number in range(count)}
        self.subscribed: dict[int, set[str]] = {number: set() for number in self.stores}
        self.answered: dict[int, set[str]] = {number: set() for number in self.stores}
        self.processes = {number: self.make(number) for number in self.stores}
        for process in self.processes.values():
            process.open()
            process.steps.pop(0)

    def make(self, number: int) -> Process:
        return Process(self, number)

    def opening_steps(self, process: Process) -> list[Callable[[], None]]:
        def read(other: int) -> Callable[[], None]:
            return lambda: process.read_facts(other)

        return [process.open, *map(read, process.others)]

    def after_silence(self, process: Process) -> list[Callable[[], None]]:
        """What a process does before it speaks again."""
        return self.opening_steps(process)[1:]

    def agree(self, agreements: Agreements, facts: Facts, done: Callable[[bool], None]) -> None:
        agreements.agree(facts, self.now, done)

    def run(self, steps: int = 1500) -> None:
        for _ in range(steps):
            self.now += self.random.random() * 0.05
            for process in self.processes.values():
                if process.is_serving and not process.is_frozen:
                    process.live()
            self._step(self.random.choice([*self.processes.values()]))

    def _step(self, process: Process) -> None:
        if self.random.random() < 0.02:
            self._fail(process)
        if process.is_frozen:
            process.is_frozen = self.random.random() > 0.02
            return
        self.random.choice(self.ordinary(process))()

    def ordinary(self, process: Process) -> list[Callable[[], None]]:
        """What a process does next, one of these."""
        found = [process.step, process.subscribe, process.answer, process.hear]
        found += [process.read, process.read, process.publish, process.publish]
        return [*found, process.unsubscribe]

    def _fail(self, process: Process) -> None:
        self.random.choice(self.faults(process))()

    def faults(self, process: Process) -> list[Callable[[], None]]:
        """What fails, or works again, one of these."""

        def freeze() -> None:
            process.is_frozen = True

        def be_readable(is_so: bool) -> Callable[[], None]:
            return lambda: setattr(process.store, "is_readable", is_so)

        kill = partial(self.replace, process.number)
        return [kill, freeze, freeze, be_readable(False), be_readable(True)]

    def replace(self, number: int) -> None:
        """Start another process. What the one before it had not answered is unknown."""
        self.processes[number] = self.make(number)
        kept = {name.removeprefix("durable ") for name in self.stores[number].facts}
        self.subscribed[number] = kept
        self.answered[number] &= kept
