"""Some hosts with clocks that are all wrong, their stores, and what a seed lets go wrong."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from holdfast.hosts.preference import targets
from tests.unit.hosts.worlds.events import Events, Machine
from tests.unit.hosts.worlds.faults import Faults
from tests.unit.hosts.worlds.hosts import Host
from tests.unit.hosts.worlds.oracle import Oracle
from tests.unit.hosts.worlds.stores import Meta, Stores
from tests.unit.hosts.worlds.workers import Worker

# Clocks run by so much too fast or too slow.
_WRONG = 0.1
# When everything is started, and stops going wrong.
_BEGIN_S, _TROUBLE_S = 10.0, 60.0
# How long after that each shard has an owner again, and is on its target.
_OWNED_S, _BALANCED_S = 10.0, 100.0
# A shard that moves is silent for no longer, if nothing goes wrong meanwhile.
MOVE_S = 2.5


@dataclass(frozen=True)
class Rules:
    """What a broken build does differently."""

    worker: type[Worker] = Worker
    meta: type[Meta] = Meta


class World:
    """Hosts and stores."""

    def __init__(
        self,
        seed: int,
        rules: Rules | None = None,
        *,
        hosts: int | None = None,
        shards: int | None = None,
    ) -> None:
        self.rules = rules or Rules()
        self.random = random = Random(seed)
        self.events = events = Events()
        self.oracle = Oracle(lambda: events.now)
        metas = [self.rules.meta() for _ in range(shards or random.randint(2, 5))]
        self.stores = Stores(events, random, metas)
        self._nonces = 0
        names = [f"host-{number}" for number in range(hosts or random.choice([3, 3, 4, 5]))]
        self.hosts = [Host(self, name, self._machine(), names) for name in names]
        self.faults = 0
        self.is_troubled = False

    def _machine(self) -> Machine:
        wrong = self.random.choice([-_WRONG, _WRONG, self.random.uniform(-_WRONG, _WRONG)])
        rate = 1 + wrong
        return Machine(self.events, rate=rate, offset=self.random.uniform(0, 1000))

    def nonce(self) -> str:
        self._nonces += 1
        return f"n{self.random.getrandbits(24):06x}{self._nonces}"

    def start_s(self) -> float:
        """Return how long a worker needs to start: longer on machines that are in trouble."""
        is_slow = self.is_troubled and self.random.random() < 0.25
        # An offer is taken back after five seconds.
        return self.random.choice([1.0, 3.0, 4.8, 5.2, 6.5]) if is_slow else 0.05

    @property
    def moves(self) -> int:
        """How many offers were opened."""
        return sum(meta.moves for meta in self.stores.metas)

    def begin(self) -> None:
        """Start all hosts, in the course of some seconds."""
        for host in self.hosts:
            self.events.at(self.random.uniform(0, 2.5), host.start)
        self.run(_BEGIN_S)

    def run(self, seconds: float) -> None:
        self.events.run(self.events.now + seconds)

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something later, by true time."""
        self.events.at(self.events.now + seconds, act)

    def aims(self) -> dict[int, str]:
        """Where each shard is to be."""
        up = [host.name for host in self.hosts if host.is_up]
        return dict(targets(len(self.stores.metas), self.hosts[0].names, up, None))

    def recover(self) -> list[str]:
        """Let time pass without faults; return what is wrong afterwards."""
        self.run(_OWNED_S)
        for _ in range(round(_BALANCED_S - _OWNED_S)):
            for shard in range(len(self.stores.metas)):
                if self.oracle.silence_s(shard) > MOVE_S:
                    self.oracle.wrong.append(f"{self.events.now:.2f}: shard {shard} has no owner")
            if self.oracle.wrong:
                return self.oracle.wrong
            self.run(1.0)
        found = {shard: meta.host for shard, meta in enumerate(self.stores.metas)}
        aims = self.aims()
        if found != aims:
            self.oracle.wrong.append(f"shards are on {found}, not on {aims}")
        return self.oracle.wrong


def play(seed: int, rules: Rules | None = None, *, recovers: bool = True) -> World:
    """Let a seed decide what goes wrong, and judge what came of it.

    Args:
        recovers: Whether it goes on until all must be well again.
    """
    world = World(seed, rules)
    world.begin()
    world.is_troubled = True
    Faults(world).plan(_TROUBLE_S)
    world.run(_TROUBLE_S)
    world.is_troubled = False
    if recovers and not world.oracle.wrong:
        world.recover()
    return world
