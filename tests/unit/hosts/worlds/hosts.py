"""One host: its claimer, its workers, and who starts and ends them."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.hosts.claims import Claims
from holdfast.hosts.watching import ShardSeen
from tests.unit.hosts.worlds.events import Machine, Process
from tests.unit.hosts.worlds.stores import Opener
from tests.unit.hosts.worlds.workers import Worker

if TYPE_CHECKING:
    from holdfast.hosts.rows import HostRow
    from tests.unit.hosts.worlds.world import World

_LOOK_S, _STEP_S = 0.5, 0.1
# How long a look waits for answers; later ones belong to the next.
_ANSWER_S = 0.1


class Host:
    """A machine, and what runs on it.

    Args:
        names: The list of hosts that it was given.
    """

    def __init__(self, world: "World", name: str, machine: Machine, names: Sequence[str]) -> None:
        self.world, self.name, self.machine = world, name, machine
        self.names = names
        self.capacity: int | None = None
        self.workers: dict[int, Worker] = {}
        self.claimer: Claimer | None = None
        self.nonce = ""
        # The shards whose workers fail here.
        self.cannot_open: set[int] = set()
        self.is_up = False

    def start(self) -> None:
        if not self.is_up:
            self.is_up = True
            self.nonce = self.world.nonce()
            self.start_claimer()

    def start_claimer(self) -> None:
        if self.is_up and (self.claimer is None or not self.claimer.is_alive):
            self.claimer = Claimer(self)
            self.claimer.begin()

    def kill(self) -> None:
        """End everything at once."""
        self.is_up = False
        self.kill_claimer()
        for worker in [*self.workers.values()]:
            self.ended(worker)

    def kill_claimer(self) -> None:
        if self.claimer is not None:
            self.claimer.is_alive = False

    def kill_worker(self, shard: int) -> None:
        """End a worker; its supervisor starts another instead."""
        worker = self.workers.get(shard)
        if worker is None:
            return
        self.ended(worker)
        if worker.epoch:
            self.workers[shard] = successor = worker.successor()
            successor.after(0.1, successor.open)

    def stop(self) -> None:
        """End in an orderly way."""
        self.is_up = False
        if self.claimer is not None:
            self.claimer.end()
        for worker in [*self.workers.values()]:
            worker.release()

    def drain(self) -> None:
        if self.claimer is not None:
            self.claimer.claims.drain()

    def uncordon(self) -> None:
        if self.claimer is not None:
            self.claimer.claims.uncordon()

    def claim(self, shard: int, *, unraised: str, offered: str) -> None:
        """Have a worker for a shard."""
        opener = Opener(self.world.nonce(), self.name, unraised, offered)
        self.workers[shard] = worker = self.world.rules.worker(self, shard, opener)
        worker.after(self.world.start_s(), worker.open)

    def ended(self, worker: Worker, *, has_failed: bool = False) -> None:
        worker.is_alive = False
        self.world.oracle.ends(worker.shard, worker)
        if self.workers.get(worker.shard) is worker:
            del self.workers[worker.shard]
        if has_failed and self.claimer is not None:
            self.claimer.claims.failed(worker.shard)

    def not_given(self, shard: int, host: str) -> None:
        if self.claimer is not None:
            self.claimer.claims.not_given(shard, host)


class Claimer(Process):
    """Looks twice a second, and does what is to be done."""

    def __init__(self, host: Host) -> None:
        super().__init__(host.machine)
        self._host = host
        self._stores = host.world.stores
        self.claims = Claims(
            host.name,
            host.nonce,
            host.names,
            shards=len(self._stores.metas),
            capacity=host.capacity,
            clock=host.machine.clock,
        )
        self._answers: dict[int, ShardSeen | None] = {}
        self._rows: dict[str, HostRow] | None = None
        # What is being read; -1 are the rows.
        self._asked: set[int] = set()

    def begin(self) -> None:
        self._look()
        self._step()

    def end(self) -> None:
        """Remove the row of this host."""
        self.is_alive = False
        nonce, name, rows = self._host.nonce, self._host.name, self._stores.rows

        def remove() -> None:
            if name in rows and rows[name].nonce == nonce:
                del rows[name]

        last = Process(self.machine)
        self._stores.call((last, name), 0, remove, lambda _: None)

    def _look(self) -> None:
        for shard, meta in enumerate(self._stores.metas):
            self._ask(shard, meta.seen)
        self._ask(-1, lambda: {**self._stores.rows})
        self.after(_ANSWER_S, self._see)
        self.after(_LOOK_S, self._look)

    def _ask(self, shard: int, script: Callable[[], object]) -> None:
        if shard in self._asked:
            return
        self._asked.add(shard)

        def answered(reply: object) -> None:
            self._asked.discard(shard)
            if shard >= 0:
                self._answers[shard] = reply if isinstance(reply, ShardSeen) else None
            elif isinstance(reply, dict):
                self._rows = reply

        self._stores.call((self, self._host.name), max(shard, 0), script, answered)

    def _see(self) -> None:
        answers, self._answers = self._answers, {}
        rows, self._rows = self._rows, None
        self.claims.see(answers, rows, self._host.workers.keys())
        row, name, stored = self.claims.row(), self._host.name, self._stores.rows
        if row is not None:
            self._stores.call((self, name), 0, lambda: stored.update({name: row}), lambda _: None)

    def _step(self) -> None:
        self.after(_STEP_S, self._step)
        for claim in self.claims.to_claim():
            if claim.shard not in self._host.workers:
                self._host.claim(claim.shard, unraised=claim.unraised, offered=claim.offered_epoch)
        give = self.claims.to_give()
        if give is not None and give.shard in self._host.workers:
            self._host.workers[give.shard].give(give.host)
