"""A simulated process: real code on a loop of its own, with its own clocks and its own chance."""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from enum import Enum
from math import inf
from random import Random
from typing import Any, Protocol

from tests.simulation.clocks import Clocks
from tests.simulation.coverage import Coverage
from tests.simulation.environment import enter, inside, leave
from tests.simulation.loop import ListeningSocket, SimLoop
from tests.simulation.network import Network

Main = Callable[["Process"], Coroutine[Any, Any, None]]
# The longest time that a callback takes, in seconds.
_STEP_S = 20e-6


class Life(Enum):
    """Whether a process runs."""

    RUNNING = "running"
    FROZEN = "frozen"
    ENDED = "ended"


class ProcessWorld(Protocol):
    """The world, as a process sees it."""

    now: float
    random: Random
    network: Network
    coverage: Coverage

    def note(self, who: str, what: str, data: bytes = b"") -> None: ...
    def next_pid(self) -> int: ...
    def lock(self, process: "Running", file: int) -> None: ...
    def fail(self, process: "Running", context: dict[str, Any]) -> None: ...


class Running:
    """A process of a machine, whatever runs in it: it can be frozen, thawed and killed."""

    def __init__(self, world: ProcessWorld, name: str, host: str, clocks: Clocks) -> None:
        self.world = world
        self.name = name
        self.host = host
        self.clocks = clocks
        self.pid = world.next_pid()
        self.random = Random(world.random.getrandbits(64))
        self.life = Life.RUNNING
        self.began_at, self.ended_at = world.now, inf
        # Its exit code, or the negative number of the signal that has ended it.
        self.code = 0
        # How often it must be thawed before it goes on.
        self._freezes = 0
        # How much longer than usual each callback takes, in seconds.
        self.slowness_s = 0.0
        # The processor time that it has used.
        self.worked_s = 0.0
        # When it was thawed last.
        self.thawed_at = -inf
        # Called when it has ended, in whichever way.
        self.on_ended: Callable[[], None] = _nothing

    # What the world does

    @property
    def can_run(self) -> bool:
        """Whether it would do something now."""
        raise NotImplementedError

    @property
    def next_timer(self) -> float | None:
        """The true time at which it will do something by itself."""
        raise NotImplementedError

    def step(self) -> float:
        """Run a part of it. Returns how long that takes."""
        raise NotImplementedError

    def forget(self) -> None:
        """Leave nothing of it after the simulation."""

    @property
    def _is_awake(self) -> bool:
        return self.life is Life.RUNNING and not self.clocks.are_suspended

    def _took(self) -> float:
        took_s = _STEP_S * self.world.random.random() + self.slowness_s
        self.clocks.worked_s += took_s
        self.worked_s += took_s
        return took_s

    def freeze(self) -> None:
        """Stop it between two callbacks, as SIGSTOP does."""
        if self.life is Life.ENDED:
            return
        self.world.note(self.name, "frozen")
        self.life = Life.FROZEN
        self._freezes += 1

    def thaw(self) -> None:
        """Let it go on, unless it was frozen twice."""
        if self.life is not Life.FROZEN:
            return
        self._freezes -= 1
        if self._freezes == 0:
            self.world.note(self.name, "thawed")
            self.thawed_at = self.world.now
            self.life = Life.RUNNING

    def kill(self) -> None:
        """End it at once. Its connections break."""
        if self.life is not Life.ENDED:
            self.world.note(self.name, "killed")
            self.code = -signal.SIGKILL
            self._drop()

    def _drop(self) -> None:
        """End, with everything that the system has for it."""
        if self.life is not Life.ENDED:
            self.life, self.ended_at = Life.ENDED, self.world.now
            self._let_go()
            self.on_ended()

    def _let_go(self) -> None:
        """Close whatever it has open."""
        raise NotImplementedError

    # What its code asks

    def wall(self) -> float:
        return self.clocks.wall(self.world.now)

    def monotonic(self) -> float:
        return self.clocks.monotonic(self.world.now)

    def boot(self) -> float:
        return self.clocks.boot(self.world.now)

    def work(self) -> float:
        return self.clocks.work()

    def listen(self, host: str, port: int) -> ListeningSocket:
        return ListeningSocket(self.world.network.listen(host, port))

    def lock(self, file: int) -> None:
        self.world.lock(self, os.fstat(file).st_ino)

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process: to itself, if there is no table of processes."""
        assert pid == self.pid
        self.take_signal(number)

    def take_signal(self, number: int) -> None:
        """Do what a signal says."""
        raise NotImplementedError


class Process(Running):
    """A process with an event loop, in which anything happens between two callbacks only."""

    def __init__(self, world: ProcessWorld, name: str, host: str, clocks: Clocks) -> None:
        super().__init__(world, name, host, clocks)
        # Set when somebody asks this process to end.
        self.is_asked_to_end: asyncio.Event
        self.loop = SimLoop(world.network, host, self.monotonic, world.random.shuffle)
        self.loop.set_exception_handler(lambda _, context: self._fail(context))
        self.main: asyncio.Task[None]
        # Returns the metrics of the server that it runs, once there are any.
        self.metrics: Callable[[], str] | None = None

    def begin(self, main: Main) -> None:
        """Run this."""
        with inside(self, self.loop):
            self.is_asked_to_end = asyncio.Event()
            self.main = self.loop.create_task(main(self), name=self.name)
            self.main.add_done_callback(self._ended)

    def _fail(self, context: dict[str, Any]) -> None:
        # What a killed process had begun ends without it.
        if self.life is not Life.ENDED:
            self.world.fail(self, context)

    def _ended(self, main: asyncio.Task[None]) -> None:
        error = None if main.cancelled() else main.exception()
        self.world.note(self.name, f"ended {type(error).__name__ if error else ''}")
        if error is not None:
            self.world.fail(self, {"message": "the process failed", "exception": error})
        self._drop()

    # What the world does

    @property
    def can_run(self) -> bool:
        return self._is_awake and self.loop.has_work

    @property
    def next_timer(self) -> float | None:
        if not self._is_awake or (when := self.loop.next_timer) is None:
            return None
        return self.clocks.when(when)

    def step(self) -> float:
        enter(self, self.loop)
        try:
            handle = self.loop.run_one()
        finally:
            leave()
        if handle is None:
            return 0.0
        self.world.note(self.name, _label(handle))
        return self._took()

    def forget(self) -> None:
        # What cleans up may want to end its process, which is not this one. No loop runs any more.
        with inside(self, None):
            self.loop.forget()

    def terminate(self) -> None:
        """Ask it to end."""
        self.take_signal(signal.SIGTERM)

    def take_signal(self, number: int) -> None:
        if number == signal.SIGTERM:
            self.call(lambda: self.is_asked_to_end.set())

    def keep(self, descriptor: Any) -> None:
        """Close a descriptor when this process ends."""
        self.loop.keep(descriptor)

    def handle(self, descriptor: Any) -> Any:
        """Return a descriptor as this process has it."""
        return descriptor

    def exit(self, code: int) -> None:
        """End here and now, as `os._exit` does."""
        self.world.note(self.name, f"ends with {code}")
        self.code = code
        self._drop()

    def call(self, what: Callable[[], object]) -> None:
        """Do something in it between two callbacks, unless it has ended."""
        if self.life is not Life.ENDED:
            with inside(self, self.loop):
                what()

    def _let_go(self) -> None:
        self.loop.drop()


def _nothing() -> None:
    """Nobody waits for its end."""


def _label(handle: asyncio.Handle) -> str:
    """Name what a callback runs."""
    callback: Any = getattr(handle, "_callback", None)
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return str(getattr(task.get_coro(), "__qualname__", ""))
    return str(getattr(callback, "__qualname__", type(callback).__name__))
