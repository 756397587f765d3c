"""A simulated system below the real supervisor and its importers, whose code waits in one place."""

import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from typing import NoReturn, Protocol

from holdfast.supervisor.control import Channel
from holdfast.supervisor.system import Signs
from tests.simulation.clocks import Clocks
from tests.simulation.environment import inside
from tests.simulation.holdings import Handle, SimChannel, pair
from tests.simulation.process import Life, ProcessWorld, Running
from tests.simulation.strands import Strand

# How long an import takes at most, in seconds.
_IMPORT_S = 0.5
# What ends a process that does not hear it.
_DEADLY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)


class Ended(BaseException):
    """The program ends here."""


class Becomes(BaseException):
    """The program goes on as another one, with this state and these descriptors."""

    def __init__(self, state: str, kept: Mapping[int, Handle]) -> None:
        super().__init__()
        self.state = state
        self.kept = kept


class Family(Protocol):
    """The processes of a machine below one supervisor."""

    def start_importer(self, parent: "Threaded", channel: Handle) -> Running:
        """Start an importer with this channel. Raises `OSError`."""
        ...

    def start_server(self, parent: "Threaded", channel: Handle) -> Running:
        """Start a server with this channel."""
        ...

    def process(self, pid: int) -> Running | None:
        """Return a process that has not ended."""
        ...


class Threaded(Running):
    """A process whose code waits in `SimSystem.wait`, and nowhere else.

    Args:
        run: The program, with a system; with a state, the one that it becomes. Returns its exit
            code.
    """

    def __init__(
        self,
        world: ProcessWorld,
        name: str,
        host: str,
        clocks: Clocks,
        family: Family,
        run: Callable[["SimSystem", str], int],
    ) -> None:
        super().__init__(world, name, host, clocks)
        self._program = run
        self._family = family
        self._strand = Strand(self._run)
        self._handles: list[Handle] = []
        self.system = SimSystem(self, family)
        # Its children that have not ended, and those that have, each with its code.
        self.children: dict[int, Running] = {}
        self.zombies: dict[int, int] = {}
        # Whether orphans become its children.
        self.adopts = False
        # What it listens to until when, by its own clock.
        self.heard: list[SimChannel] = []
        self.until = -inf
        self.signals: list[int] = []
        self.hears_signals = False
        # Whether it may fail.
        self.is_excused = False

    def keep(self, handle: Handle) -> None:
        """Close a descriptor when this process ends."""
        self._handles = [each for each in self._handles if not each.is_closed]
        self._handles.append(handle)

    def handle(self, number: int) -> Handle:
        """Return the descriptor with this number."""
        if isinstance(number, Handle):
            return number
        return next(each for each in self._handles if int(each) == number and not each.is_closed)

    def _run(self) -> None:
        """Run the program and what it becomes, in the thread."""
        state = ""
        while True:
            try:
                self.code = self._program(self.system, state)
                return
            except Ended:
                return
            except Becomes as other:
                state = other.state
                for each in self._handles:
                    if each not in other.kept.values():
                        each.close()
                self.system = SimSystem(self, self._family)
                self.world.note(self.name, "runs other code")

    def wait(self, limit_s: float | None, heard: Sequence[SimChannel]) -> None:
        """Wait until there is something to hear, or for so long."""
        self.heard = [*heard]
        self.until = inf if limit_s is None else self.monotonic() + limit_s
        self._strand.wait()

    # What the world does

    @property
    def can_run(self) -> bool:
        if not self._is_awake:
            return False
        if self.signals or self.monotonic() >= self.until:
            return True
        return any(each.is_readable for each in self.heard)

    @property
    def next_timer(self) -> float | None:
        if not self._is_awake or self.until == inf:
            return None
        return self.clocks.when(self.until)

    def step(self) -> float:
        with inside(self, None):
            try:
                self._strand.go_on()
            except Exception as error:
                self.code = 1
                self.world.note(self.name, f"ended by {type(error).__name__}: {error}")
                if not self.is_excused:
                    self.world.fail(self, {"message": "the process failed", "exception": error})
        self.world.note(self.name, "a turn")
        if self._strand.is_over:
            self.world.note(self.name, f"ended with {self.code}")
            self._drop()
        return self._took()

    def _let_go(self) -> None:
        for each in self._handles:
            each.close()
        self._handles.clear()
        with inside(self, None):
            self._strand.kill()

    def take_signal(self, number: int) -> None:
        if self.life is Life.ENDED:
            return
        if number == signal.SIGKILL or (number in _DEADLY and not self.hears_signals):
            self.kill()
            self.code = -number
        else:
            self.signals.append(number)

    def lost(self, child: Running) -> None:
        """Note that a child has ended."""
        if self.children.pop(child.pid, None) is not None:
            self.zombies[child.pid] = child.code
            self.signals.append(signal.SIGCHLD)


class SimSystem:
    """What the supervisor or an importer asks for."""

    def __init__(self, process: Threaded, family: Family) -> None:
        self._process = process
        self._family = family
        self._listening: dict[SimChannel, Callable[[], None]] = {}
        # How long an import takes, and whether it fails.
        self.import_s = process.random.uniform(0.0, _IMPORT_S)

    def now(self) -> float:
        return self._process.monotonic()

    def wait(self, limit_s: float | None = None) -> None:
        self._process.wait(limit_s, [*self._listening])
        for channel, hear in [*self._listening.items()]:
            if channel.is_readable:
                hear()

    # Signals

    def hear_signals(self) -> None:
        self._process.hears_signals = True

    def signals(self) -> Sequence[int]:
        found, self._process.signals = self._process.signals, []
        return found

    @contextmanager
    def signals_held(self) -> Iterator[None]:
        # They wait anyway.
        yield

    def has_terminal(self) -> bool:
        return False

    # Processes

    def start(self, _: Sequence[str]) -> tuple[Channel, int]:
        ours, theirs = pair()
        importer = self._family.start_importer(self._process, theirs.copy())
        theirs.close()
        return SimChannel(ours), importer.pid

    def become(
        self, _: Sequence[str], state: Mapping[str, object], descriptors: Iterable[int]
    ) -> None:
        kept = {int(each): self._process.handle(each) for each in descriptors}
        raise Becomes(json.dumps(state), kept)

    def prepare_forks(self) -> None:
        self._process.wait(self.import_s, [])

    def fork(self, descriptor: int) -> int:
        channel = self._process.handle(descriptor)
        return self._family.start_server(self._process, channel.copy()).pid

    def signal(self, pid: int, number: int) -> None:
        if (process := self._family.process(pid)) is not None:
            process.take_signal(number)

    def signs(self, pid: int) -> Signs | None:
        process = self._family.process(pid)
        if process is None:
            return None
        return Signs(is_runnable=process.can_run, used=(0, round(process.worked_s * 1e9)))

    def adopt_orphans(self) -> None:
        self._process.adopts = True

    def ended(self) -> Iterator[tuple[int, int]]:
        zombies = self._process.zombies
        while zombies:
            pid = next(iter(zombies))
            yield pid, zombies.pop(pid)

    def code_of(self, pid: int) -> int | None:
        if pid in self._process.zombies:
            return self._process.zombies.pop(pid)
        return None if self._family.process(pid) is not None else 0

    def end(self) -> NoReturn:
        raise Ended

    # Channels and descriptors

    def channel_pair(self) -> tuple[Channel, Channel]:
        ours, theirs = pair()
        return SimChannel(ours), SimChannel(theirs)

    def channel(self, descriptor: int) -> Channel:
        return SimChannel(self._process.handle(descriptor))

    def listen(self, channel: Channel, hear: Callable[[], None]) -> None:
        assert isinstance(channel, SimChannel)
        self._listening[channel] = hear

    def forget(self, channel: Channel) -> None:
        assert isinstance(channel, SimChannel)
        self._listening.pop(channel, None)
        channel.close()

    def copy(self, descriptor: int) -> int:
        return self._process.handle(descriptor).thing.handle()

    def close(self, descriptor: int) -> None:
        self._process.handle(descriptor).close()

    def keep_to_itself(self, descriptor: int) -> None:
        pass
