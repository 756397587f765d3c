"""What goes wrong in a world."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.hosts.worlds.hosts import Host
    from tests.unit.hosts.worlds.world import World


class Faults:
    """Faults of one world, each of which begins and ends before trouble does."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._random = world.random
        self._stores = world.stores
        self._ends_at = 0.0

    def plan(self, seconds: float) -> None:
        """Let some faults happen, all of which have ended after so many seconds."""
        now = self._world.events.now
        self._ends_at = now + seconds
        kinds = [
            *(self.kill_host, self.kill_worker, self.kill_claimer, self.freeze_host),
            *(self.freeze_process, self.cut, self.cut_all, self.away, self.slow),
            *(self.drain, self.update, self.fail),
        ]
        if self._random.random() < 0.5:
            # Shards move to and fro, which they do not while worse happens.
            kinds = [self.drain, self.drain, self.update, self.kill_worker, self.slow]
        for _ in range(self._random.randint(1, 14)):
            kind = self._random.choice(kinds)
            self._world.faults += 1
            self._world.events.at(now + self._random.uniform(0, seconds - 1.0), kind)

    def _rest_s(self, most_s: float) -> float:
        """Return how long a fault lasts."""
        rest_s = self._ends_at - self._world.events.now
        return min(self._random.choice([0.4, 1.5, 3.0, 5.0, most_s]), rest_s)

    def _host(self) -> "Host":
        return self._random.choice(self._world.hosts)

    def _shard(self) -> int:
        return self._random.randrange(len(self._stores.metas))

    def _then(self, most_s: float, act: Callable[[], None]) -> None:
        self._world.later(self._rest_s(most_s), act)

    def kill_host(self) -> None:
        host = self._host()
        host.kill()
        is_last = sum(each.is_up for each in self._world.hosts) < 2
        if is_last or self._random.random() < 0.7:
            self._then(30.0, host.start)

    def kill_worker(self) -> None:
        self._host().kill_worker(self._shard())

    def kill_claimer(self) -> None:
        host = self._host()
        host.kill_claimer()
        self._then(5.0, host.start_claimer)

    def freeze_host(self) -> None:
        self._host().machine.frozen_until = self._world.events.now + self._rest_s(20.0)

    def freeze_process(self) -> None:
        host = self._host()
        workers = [*host.workers.values()]
        process = self._random.choice([host.claimer, *workers])
        if process is not None:
            process.frozen_until = self._world.events.now + self._rest_s(20.0)

    def cut(self) -> None:
        until = self._world.events.now + self._rest_s(20.0)
        self._stores.cut_until[self._host().name, self._shard()] = until

    def cut_all(self) -> None:
        until = self._world.events.now + self._rest_s(20.0)
        host = self._host().name
        for shard in range(len(self._stores.metas)):
            self._stores.cut_until[host, shard] = until

    def away(self) -> None:
        until = self._world.events.now + self._rest_s(8.0)
        self._stores.away_until[self._shard()] = until

    def slow(self) -> None:
        self._stores.slow_s = self._random.choice([0.1, 0.25, 0.9])
        self._then(20.0, self._fast)

    def _fast(self) -> None:
        self._stores.slow_s = 0.005

    def drain(self) -> None:
        host = self._host()
        host.drain()
        self._then(30.0, host.uncordon)

    def update(self) -> None:
        """Stop a host when it is drained, and start it again."""
        host = self._host()
        if host.is_up:
            host.drain()
            self._world.later(min(self._rest_s(20.0), 20.0), lambda: self._restart(host))

    def _restart(self, host: "Host") -> None:
        if host.is_up:
            host.stop()
            self._then(3.0, host.start)

    def fail(self) -> None:
        """Let workers of some shards fail on a host."""
        host = self._host()
        host.cannot_open = {self._shard(), self._shard()}
        self._then(30.0, host.cannot_open.clear)
