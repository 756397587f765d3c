"""Servers below the real supervisor of a simulated machine, and the operator who starts that."""

import json
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from holdfast.cli import serve
from holdfast.compose import (
    running,
)
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.placement import Placement, placed
from holdfast.compose.running_server import RunningServer
from holdfast.compose.succession import Succession
from holdfast.settings import Settings
from holdfast.supervisor.control import CONTROL_FILE, Do
from holdfast.supervisor.importer import serve_forks
from holdfast.supervisor.packets import PeerGone
from holdfast.supervisor.replacing import supervise
from tests.simulation.embedded import Stores
from tests.simulation.environment import inside, running_process
from tests.simulation.holdings import Handle, Inbox, SimChannel, pair
from tests.simulation.judges.excuses import Excuses
from tests.simulation.loop import ListeningSocket
from tests.simulation.oracle import Oracle
from tests.simulation.process import Life, Main, Process, Running
from tests.simulation.shared_sockets import Bound, SharedSocket
from tests.simulation.system import SimSystem, Threaded
from tests.simulation.world import World

LINK_PORT = 8090
# After how long at most a server ends that crashes again and again.
_CRASH_S = 1.0
_WORDS = ["serve"]

T = TypeVar("T")


class Gone(BaseException):
    """A server ends without closing what its successor uses."""


class Worker(Process):
    """A server that an importer has forked."""

    unit: "Unit"
    # Which shard it serves, or is about to.
    shard: int | None = None

    def listen(self, host: str, port: int) -> ListeningSocket:
        with inside(self, self.loop):
            return SharedSocket(Bound(self.world.network.listen(host, port)).handle())

    def take_signal(self, number: int) -> None:
        self.loop.take_signal(number, self.kill)

    def signal(self, pid: int, number: int) -> None:
        process = self.unit.process(pid) or self.unit.stores.process(pid)
        if process is not None:
            process.take_signal(number)


class SupervisedPost:
    """The place of one server: what faults and clients take for the server there.

    With several hosts, it is wherever the shard was last.
    """

    def __init__(self, unit: "Unit", number: int, process: Process) -> None:
        self.unit = unit
        self.number = number
        self.process = process
        # Its supervisor starts the next one at once.
        self.pause_s = 0.0
        self.server: RunningServer | None = None
        # Since when there is none, because it was killed.
        self._killed_at: float | None = None
        self.crashes = 0
        self.is_stopped = self.is_restarting = False

    @property
    def name(self) -> str:
        """The address of its machine."""
        return self.unit.host

    def begins(self, process: "Worker") -> None:
        """Note a process that is to serve here."""
        if self.process.life is Life.ENDED:
            self.process, self.server, self.unit = process, None, process.unit
        if self.crashes:
            self.crashes -= 1
            world = self.unit.world
            crashes_in_s = _CRASH_S * world.random.random()
            world.later(crashes_in_s, process.kill)
            # A supervisor pauses before it starts another one, which may also be that of a restart.
            self.unit.excuses.add("crash_server_often", world.now, crashes_in_s)

    def serves(self, process: "Worker", server: RunningServer) -> None:
        """Note that a process serves here."""
        if process.unit is not self.unit:
            process.world.coverage.mark("a shard has moved to another host")
        self.process, self.server, self.unit = process, server, process.unit
        if self._killed_at is not None:
            # The supervisor pauses after several.
            now = self.unit.world.now
            self.unit.excuses.add("kill_server", self._killed_at, now - self._killed_at)
            self._killed_at = None

    def ended(self, process: Process) -> None:
        """Note that the process here has ended."""
        if process is self.process and process.code == -signal.SIGKILL and not self._killed_at:
            self._killed_at = self.unit.world.now

    @property
    def is_serving(self) -> bool:
        """Whether a server is here that serves, and is not about to crash."""
        return self.server is not None and self.process.life is Life.RUNNING and not self.crashes


class Unit:
    """A machine with a supervisor, which an operator starts again when it has ended.

    Args:
        settings: Returns what the server of a shard is told.
        posts: The places of all shards, if other machines have them, too.
    """

    def __init__(
        self,
        world: World,
        oracle: Oracle,
        *,
        host: str,
        machine: str,
        count: int,
        settings: Callable[[int], Settings],
        stores: Stores,
        posts: Sequence[SupervisedPost] = (),
    ) -> None:
        self.world = world
        # Knows when servers were away because others were killed.
        self.excuses = Excuses()
        # The process that claims shards, where there are several hosts.
        self.claimer: Process | None = None
        self.host = host
        self.count = count
        self._oracle = oracle
        self._settings = settings
        self.stores = stores
        self._clocks = world.clocks(machine)
        self._processes: dict[int, Running] = {}
        # Who each process is a child of.
        self._parents: dict[int, Threaded] = {}
        self.supervisor: Threaded
        self.importers: list[Threaded] = []
        # How long the operator takes to start a supervisor, in seconds.
        self.pause_s = 1.0
        # The socket for commands at each path.
        self.commands: dict[str, Inbox] = {}
        # How many more starts fail because of settings, and how many because of the code.
        self.bad_settings = self.bad_code = 0
        # What operators were told about restarts.
        self.answers: list[dict[str, Any]] = []
        for number in range(count):
            self._place(number)
        self.posts = [*posts] or [self._post(number) for number in range(count)]

    def _place(self, number: int) -> None:
        place = self.placement(number)
        if self._settings(number).redis is None:
            self.stores.place(place.data, number)
        places = self.world.network.places
        places[str(place.link_of(number))] = (self.host, LINK_PORT + number)

    def _post(self, number: int) -> SupervisedPost:
        before = Worker(self.world, f"{self.host}/{number}", self.host, self._clocks)
        before.life = Life.ENDED
        return SupervisedPost(self, number, before)

    def placement(self, number: int) -> Placement:
        return placed(self._settings(number), number, self.count)

    @property
    def data(self) -> Path:
        """The data directory of its servers."""
        return self._settings(0).data

    # The operator

    def start(self) -> None:
        """Start the supervisor."""

        def run(system: SimSystem, state: str) -> int:
            return supervise([*_WORDS], state, system)

        self.supervisor = supervisor = self._threaded("supervisor", run)
        supervisor.on_ended = partial(self._supervisor_ended, supervisor)
        self.world.add(supervisor)

    def _threaded(self, title: str, run: Callable[[SimSystem, str], int]) -> Threaded:
        name = f"{self.host} {title}"
        made = Threaded(self.world, name, self.host, self._clocks, self, run)
        self._processes[made.pid] = made
        return made

    def _supervisor_ended(self, supervisor: Threaded) -> None:
        self.world.coverage.mark("a supervisor ended")
        self._ended(supervisor)
        self.world.later(self.pause_s, self.start)

    def ask_restart(self) -> None:
        """Ask for a restart, as the command does; note what is said about it."""
        inbox = self.commands.get(str(self.data / CONTROL_FILE))
        if inbox is None or not inbox.holders:
            return
        operator = Worker(self.world, "operator", self.host, self._clocks)
        with inside(operator, operator.loop):
            ours, theirs = pair()
            channel = SimChannel(ours)
            inbox.put(json.dumps({"do": Do.RESTART}).encode(), [theirs])
            theirs.close()
            ours.watch(lambda: self._hear(operator, channel))

    def _hear(self, operator: Process, channel: SimChannel) -> None:
        if channel.handle.is_closed:
            return
        with inside(operator, operator.loop):
            try:
                while (parcel := channel.receive()) is not None:
                    self._heard(parcel.fields)
            except PeerGone:
                channel.close()

    def _heard(self, said: dict[str, Any]) -> None:
        mark = self.world.coverage.mark
        self.world.note("operator", f"hears {[*said]}")
        if "done" in said:
            mark("a supervisor has replaced its servers")
        elif "failed" in said:
            mark("a restart of a supervisor failed")
        self.answers.append(said)

    @property
    def living(self) -> list[Running]:
        """All processes that have not ended."""
        return [each for each in self._processes.values() if each.life is not Life.ENDED]

    @property
    def workers(self) -> list["Worker"]:
        """The processes that have a shard, or are about to, and have not ended."""
        return [each for each in self.living if isinstance(each, Worker) and each.shard is not None]

    # The family

    def process(self, pid: int) -> Running | None:
        found = self._processes.get(pid)
        return None if found is None or found.life is Life.ENDED else found

    def start_importer(self, parent: Threaded, channel: Handle) -> Running:
        def run(system: SimSystem, _: str) -> int:
            importer.keep(channel)
            serve_forks(SimChannel(channel), self._load, system)
            raise AssertionError("a server begins elsewhere")

        importer = self._threaded("importer", run)
        self.importers = [each for each in self.importers if each.life is not Life.ENDED]
        self.importers.append(importer)
        self._adopt(parent, importer)
        self.world.add(importer)
        return importer

    def _load(self, _: int) -> None:
        if self.bad_code:
            self.bad_code -= 1
            importer = running_process()
            assert isinstance(importer, Threaded)
            importer.is_excused = True
            raise ImportError("the new code is bad")

    def start_server(self, parent: Threaded, channel: Handle) -> Running:
        server = Worker(self.world, f"{self.host} server", self.host, self._clocks)
        server.unit = self
        self._processes[server.pid] = server
        self._adopt(parent, server)
        server.keep(channel)
        server.loop.on_write = partial(self._oracle.spoke, server)
        server.loop.on_read = partial(self._oracle.leases.read, server)
        self.world.add(server)
        server.begin(self._main(SimChannel(channel)))
        return server

    def _main(self, channel: SimChannel) -> Main:
        async def run(process: Process) -> None:
            try:
                with serve.telling_failures(channel):
                    if self.bad_settings:
                        self.bad_settings -= 1
                        raise CannotStart("the new settings are bad")
                    await serve._serve_supervised(self._settings(0), channel)
            except SystemExit as end:
                process.code = end.code if isinstance(end.code, int) else 1

        return run

    def _adopt(self, parent: Threaded, child: Running) -> None:
        parent.children[child.pid] = child
        self._parents[child.pid] = parent
        child.on_ended = partial(self._ended, child)

    def _ended(self, process: Running) -> None:
        """Tell its parent, and have its children become those of the supervisor."""
        parent = self._parents.pop(process.pid, None)
        if parent is not None and parent.life is not Life.ENDED:
            parent.lost(process)
        if isinstance(process, Process):
            for post in self.posts:
                post.ended(process)
        if not isinstance(process, Threaded):
            return
        heir = self.supervisor if self.supervisor.life is not Life.ENDED else None
        for child in [*process.children.values()]:
            if heir is None:
                self._parents.pop(child.pid, None)
            else:
                heir.children[child.pid] = child
                self._parents[child.pid] = heir
        if heir is not None and process.zombies:
            heir.zombies |= process.zombies
            heir.signals.append(signal.SIGCHLD)

    # What its servers say

    @asynccontextmanager
    async def running(
        self, process: Worker, succession: Succession, placement: Placement
    ) -> AsyncIterator[RunningServer]:
        post = self.posts[placement.number]
        process.name, process.shard = f"{self.host}/{placement.number}", placement.number
        post.begins(process)
        served = running(self._settings(placement.number), succession, placement)
        async with staying(process, served) as server:
            self.world.note(process.name, "serves")
            self.world.coverage.serves(self.host)
            post.serves(process, server)
            yield server


@asynccontextmanager
async def staying(process: Process, served: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """Run a server whose process may end at once."""
    server = await served.__aenter__()
    try:
        yield server
    except Gone:
        # Nothing is closed: it stays here.
        process.exit(0)
        await process.loop.create_future()
    except BaseException:
        if not await served.__aexit__(*sys.exc_info()):
            raise
    else:
        await served.__aexit__(None, None, None)
