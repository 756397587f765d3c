"""A simulated world: a seed decides everything that happens in it, in true time."""

import gc
import heapq
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web_app

from tests.simulation.clocks import Clocks
from tests.simulation.coverage import Coverage
from tests.simulation.environment import simulated
from tests.simulation.network import Network
from tests.simulation.process import Life, Main, Process, Running
from tests.simulation.trace import Trace

if TYPE_CHECKING:
    from tests.simulation.holdings import Thing

_FIRST_PID = 100
# The least that time passes where clocks are too coarse to tell.
_INSTANT_S = 1e-6
# What is left of so many worlds, little of each, is kept.
_WORLDS_KEPT = 32
_worlds = count(1)
# How many callbacks a process runs at most before another one may run: its share of a processor.
_SHARES = (1, 8, 32)


class World:
    """Runs processes in true time, one callback at a time.

    Args:
        seed: Decides which process runs next, how long bytes travel, and what goes wrong.
        keeps_trace: Whether the trace can be read, and not only compared.
    """

    def __init__(self, seed: int | str, *, keeps_trace: bool = False) -> None:
        self.seed = seed
        self.random = Random(str(seed))
        self._share = self.random.choice(_SHARES)
        self.now = 0.0
        self.trace = Trace(keeps=keeps_trace)
        self.coverage = Coverage()
        self.network = Network(self)
        self.processes: list[Running] = []
        # Faults of the code: what nobody caught.
        self.failures: list[tuple[float, str, dict[str, Any]]] = []
        self._ended: list[Running] = []
        self._clocks: dict[str, Clocks] = {}
        # Whether wall clocks show the true time until somebody sets one.
        self.has_right_walls = False
        self._locks: dict[int, Running] = {}
        # Locks that processes share.
        self.locked: dict[int, Thing] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._pid = _FIRST_PID
        self._simulated = simulated()

    def __enter__(self) -> Self:
        # When objects end must not depend on what ran before.
        gc.freeze()
        gc.disable()
        self._simulated.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self.processes:
            process.on_ended = lambda: None
            process.kill()
        with _unheard():
            for process in [*self._ended, *self.processes]:
                process.forget()
            self._ended.clear()
            self.processes.clear()
            self._due.clear()
            # It remembers applications, and these everything that was in their worlds.
            web_app._cached_build_middleware.cache_clear()
            # Now and then also what was left of the worlds before: it was used when this one began.
            # To look through all that the process has imported takes longer than many a world.
            if next(_worlds) % _WORLDS_KEPT == 0:
                gc.unfreeze()
            # What is collected cleans up, and that leaves something behind.
            while gc.collect():
                pass
        gc.enable()
        self._simulated.__exit__(kind, error, traceback)

    # What happens

    def start(
        self, name: str, main: Main, *, host: str | None = None, machine: str | None = None
    ) -> Process:
        """Start a process at this address of a machine, whose processes have the same clocks."""
        host = host or name
        process = Process(self, name, host, self.clocks(machine or host))
        self.add(process)
        process.begin(main)
        return process

    def clocks(self, machine: str) -> Clocks:
        """Return the clocks of a machine."""
        if (clocks := self._clocks.get(machine)) is None:
            clocks = self._clocks[machine] = Clocks(self.random)
            if self.has_right_walls:
                clocks.set_right()
        return clocks

    def add(self, process: Running) -> None:
        """Let a process run."""
        self._ended += [each for each in self.processes if each.life is Life.ENDED]
        self.processes = [each for each in self.processes if each.life is not Life.ENDED]
        self.processes.append(process)
        self.note(process.name, "started")

    def ends(self) -> list[tuple[str, float]]:
        """Return the names of all processes that have ended, and when they did."""
        every = [*self._ended, *self.processes]
        return [(each.name, each.ended_at) for each in every if each.life is Life.ENDED]

    def later(self, delay_s: float, then: Callable[[], None]) -> None:
        """Call this at a later true time."""
        self._count += 1
        heapq.heappush(self._due, (self.now + delay_s, self._count, then))

    def run_for(self, seconds: float) -> None:
        """Let true time pass."""
        self.run_until(lambda: False, seconds)

    def run_until(self, is_over: Callable[[], bool], limit_s: float) -> bool:
        """Run until this is true, or for a limited true time. Returns whether it is true."""
        ends_at = self.now + limit_s
        while not (over := is_over()) and self.now < ends_at:
            self._step(ends_at)
        return over

    def _step(self, ends_at: float) -> None:
        due = self._due
        while due and due[0][0] <= self.now:
            heapq.heappop(due)[2]()
        able = [process for process in self.processes if process.can_run]
        if not able:
            self._wait(ends_at)
        else:
            self._run(able[0] if len(able) == 1 else self.random.choice(able))

    def _run(self, process: Running) -> None:
        """Let a process run until its share is used, it has nothing to do, or something happens."""
        due = self._due
        for _ in range(int(self._share * self.random.random()) + 1):
            self.now += process.step()
            if not process.can_run or (due and due[0][0] <= self.now):
                return

    def _wait(self, ends_at: float) -> None:
        """Let time pass until something happens."""
        timers = [when for each in self.processes if (when := each.next_timer) is not None]
        if self._due:
            timers.append(self._due[0][0])
        self.now = min(max(min(timers, default=ends_at), self.now + _INSTANT_S), ends_at)

    # What processes and the network ask

    def note(self, who: str, what: str, data: bytes = b"") -> None:
        """Record what happened."""
        self.trace.note(self.now, who, what, data)

    def next_pid(self) -> int:
        """Return a number for a new process."""
        self._pid += 1
        return self._pid

    def lock(self, process: Running, file: int) -> None:
        """Lock a file for a process. Raises `BlockingIOError` if another one has it."""
        if (shared := self.locked.get(file)) is not None and shared.holders:
            raise BlockingIOError
        holder = self._locks.get(file)
        if holder is not None and holder is not process and holder.life is not Life.ENDED:
            raise BlockingIOError
        self._locks[file] = process

    def unlock(self, process: Running, file: int) -> None:
        """Lock a file no longer, if this process has."""
        if self._locks.get(file) is process:
            del self._locks[file]

    def fail(self, process: Running, context: dict[str, Any]) -> None:
        """Record what nobody caught."""
        self.note(process.name, f"failed: {context['message']}")
        self.failures.append((self.now, process.name, context))


@contextmanager
def _unheard() -> Iterator[None]:
    """Let nobody hear the last words of code that was killed, which leaves much undone."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = hook
