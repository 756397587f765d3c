"""The real server in a simulated process."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from unittest.mock import patch

from jwt import api_jwt

from holdfast.compose import (
    forwarding,
    gates,
    listeners,
    listening,
    running,
    shard_origin,
    sharding,
)
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.data_directory import DataDirectory
from holdfast.compose.listening import ADMIN, MAIN
from holdfast.compose.placement import Placement, data_of
from holdfast.compose.running_server import RunningServer
from holdfast.compose.succession import Succession
from holdfast.offline import tenure
from holdfast.settings import Settings
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.local.home import Home
from holdfast.supervisor import packets
from holdfast.supervisor.control import LINK
from holdfast.web import ticker
from holdfast.web.giving import giver, taker, under_way
from holdfast.web.prometheus.metric_families import MetricFamilies
from holdfast.web.prometheus.metrics import Metrics
from tests.simulation.beside_supervisors import inherited_by, link_of, supervising
from tests.simulation.descriptors import Descriptors, Sockets, bound
from tests.simulation.environment import running_process
from tests.simulation.judges.excuses import Excuses
from tests.simulation.loop import InheritedSocket, ListeningSocket, SimLoop
from tests.simulation.oracle import Oracle
from tests.simulation.process import Life, Main, Process
from tests.simulation.store_site import own_store
from tests.simulation.supervised import Worker
from tests.simulation.tokens import Dates
from tests.simulation.watching import watched
from tests.simulation.world import World

PORT, LINK_PORT = 8080, 8090
# Where operators come.
ADMIN_PORT = 8070
_PORTS = {MAIN: PORT, ADMIN: ADMIN_PORT}
# After how long at most a server ends that crashes again and again.
_CRASH_S = 1.0
# How long an operator takes to start a server that ended without a fault.
_PAUSE_S = 1.0
# How long a server has to stop.
_STOPS_S = 5.0


class Served(Protocol):
    """The place of a server, to faults and clients."""

    # The server that is here, or was last.
    process: Process
    # How long it takes until there is another one, in seconds.
    pause_s: float
    # How often it ends soon after each start.
    crashes: int

    @property
    def name(self) -> str:
        """The address of its machine."""
        ...


class Inherited(Succession):
    """A start without a supervisor that remembers what a successor would inherit."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, int] = {}
        # Waits until all others that leave have settled, too.
        self.rest: Callable[[], Awaitable[None]] | None = None

    async def settled(self) -> None:
        if self.rest is not None:
            await self.rest()

    def keep(self, name: str, descriptor: int) -> None:
        self.kept[name] = descriptor


def serving(
    settings: Settings,
    placement: Placement | None,
    succession: Inherited,
    serves: Callable[[RunningServer], None],
) -> Main:
    """Return the server's main program; it stops in order when it is asked to end."""

    async def serve(process: Process) -> None:
        try:
            async with running(settings, succession, placement) as server:
                process.world.note(process.name, "serves")
                process.world.coverage.serves(process.name)
                serves(server)
                await process.is_asked_to_end.wait()
        except (CannotStart, StoreUnavailable) as error:
            # As the command does, which ends with an error.
            process.world.note(process.name, f"cannot start: {error}")

    return serve


class Post:
    """Where a server belongs: an operator starts another one whenever it has ended.

    Args:
        machine: The machine that it shares with others; by default one of its own.
    """

    def __init__(
        self,
        world: World,
        settings: Settings,
        oracle: Oracle,
        placement: Placement | None = None,
        *,
        machine: str | None = None,
    ) -> None:
        self._world = world
        self.settings = settings
        self._oracle = oracle
        self._placement = placement
        self.name = settings.host
        self._machine = machine
        self.process: Process
        # How long the operator takes the next time, in seconds.
        self.pause_s = _PAUSE_S
        # What runs in the process, once it serves, and what a successor would inherit.
        self.server: RunningServer | None = None
        self.succession = Inherited()
        self.is_restarting = False
        self.taking_back: asyncio.Task[None] | None = None
        self._next: tuple[Inherited, RunningServer] | None = None
        # How often it ends soon after each start, and what that excuses.
        self.crashes = 0
        self.excuses = Excuses()
        # Whether the operator wants no server here, and how often that was so.
        self.is_stopped = False
        self._stops = 0
        if placement is not None:
            # So does a supervisor, and clients and other shards wait there.
            world.network.listen(self.name, PORT)
            world.network.listen(self.name, LINK_PORT)
            if settings.admin is not None:
                world.network.listen(self.name, ADMIN_PORT)
            self.move(placement)

    def move(self, placement: Placement) -> None:
        """Let the servers that are started from now on be this shard, which others find here."""
        self._placement = placement
        places, number = self._world.network.places, placement.number
        places[str(placement.link_of(number))] = (self.name, LINK_PORT)

    def close(self) -> None:
        """Let nobody come here any more."""
        for port in (PORT, LINK_PORT, ADMIN_PORT):
            if (listening := self._world.network.held(self.name, port)) is not None:
                listening.close()

    def start(self) -> None:
        """Start a server now."""
        self.is_stopped = False
        self.server, self.succession = None, Inherited()
        self.process = process = self.begin(self.succession, lambda: None)
        process.on_ended = self.start_again
        if self.crashes:
            self.crashes -= 1
            crashes_in_s = _CRASH_S * self._world.random.random()
            self._world.later(crashes_in_s, process.kill)
            # Others were perhaps killed meanwhile, so the last crash comes behind the fault.
            away_s = crashes_in_s + self.pause_s
            self.excuses.add("crash_server_often", self._world.now, away_s)

    def begin(self, succession: Inherited, serves: Callable[[], None]) -> Process:
        """Start a process, which may take the place of the one here."""

        def serve(server: RunningServer) -> None:
            if succession is self.succession:
                self.server = server
            else:
                self._next = succession, server
            serves()

        main = serving(self.settings, self._placement, succession, serve)
        process = self._world.start(self.name, main, machine=self._machine)
        process.loop.on_write = partial(self._oracle.spoke, process)
        process.loop.on_read = partial(self._oracle.leases.read, process)
        return process

    def take_over(self, process: Process) -> None:
        """Let the process of a restart take the place of the one here."""
        self.is_restarting = False
        self.process, self.server = process, None
        if self._next is not None:
            self.succession, self.server = self._next
        process.on_ended = self.start_again
        if process.life is Life.ENDED:
            self.start_again()

    def start_again(self) -> None:
        """Start a server after a pause."""
        self.server = self._next = None
        self.is_restarting = False
        self._world.later(self.pause_s, partial(self._start_unless_stopped, self._stops))
        if not self.crashes:
            # One that ends by itself after a long fault is started as if there had been none.
            self.pause_s = _PAUSE_S

    def _start_unless_stopped(self, stops: int) -> None:
        if stops == self._stops:
            self.start()

    def stop(self) -> None:
        """End the server, and start none."""
        self.is_stopped = True
        self._stops += 1
        self.process.on_ended = self._stopped
        self.process.terminate()
        self._world.later(_STOPS_S, self.process.kill)

    def _stopped(self) -> None:
        self.server = None


def settings_of(name: str, data: Path, redis: str | None, **given: Any) -> Settings:
    """Return the settings of a server with this address."""
    return Settings(host=name, port=PORT, open=True, data=data, redis=redis, **given)


class _NoCollector:
    """Collects nothing: when objects end must not depend on the real time."""

    def begin(self) -> None:
        pass

    def exempt(self) -> None:
        pass

    def beat(self, queued: int) -> None:
        pass


@contextmanager
def adapted() -> Iterator[None]:
    """Let servers not depend on this machine, and on how long things really take."""

    def name_in(directory: Path) -> str:
        # Several hosts have one for each shard. Where all are differs in each run.
        is_of_shard = directory.parent.name == data_of(directory, 1).parent.name
        host = directory.parent.parent.name if is_of_shard else ""
        return f"lock of {host} {directory.name}"

    def name(directory: DataDirectory) -> str:
        return name_in(directory.path)

    with (
        watched(),
        supervising(),
        patch.object(forwarding, "listen_for_links", _links),
        patch.object(forwarding, "bound", bound),
        patch.object(giver, "socket", Sockets),
        patch.object(taker, "socket", Sockets),
        patch.object(packets, "socket", Sockets),
        patch.object(packets, "os", Descriptors),
        patch.object(under_way, "socket", Sockets),
        patch.object(under_way, "os", Descriptors),
        patch.object(listening, "inherited", _inherited),
        patch.object(listeners, "Metrics", _metrics),
        _timed(),
        patch.object(DataDirectory, "lock_name", property(name)),
        patch.object(gates, "lock_name_in", name_in),
        patch.object(gates, "store_of", _store_of),
        patch.object(sharding, "store_of", _store_of),
        patch.object(shard_origin, "store_of", _store_of),
        patch.object(tenure, "store_of", _store_of),
        patch.object(tenure.Tenure, "_url_of", _url_of),
    ):
        yield


@contextmanager
def _timed() -> Iterator[None]:
    """Let nothing depend on the real time."""
    with (
        patch.object(ticker, "Collector", _NoCollector),
        patch.object(api_jwt, "datetime", Dates),
    ):
        yield


def _store_of(shard: int, placement: Placement, settings: Settings) -> str:
    """Return where a shard has its store, given that of another shard."""
    if settings.redis is None:
        return Home(placement.data_of(shard)).url
    return settings.redis.replace(own_store(placement.number), own_store(shard))


async def _url_of(its: tenure.Tenure, shard: int) -> str:
    return _store_of(shard, its.place(1), its._settings)


def _metrics(*parts: Any) -> Metrics:
    """Return the metrics of the process that runs now, and let others read them."""
    process, found = running_process(), Metrics(*parts)
    assert isinstance(process, Process)
    process.metrics = lambda: MetricFamilies(*parts).of_server().decode()
    return found


def _inherited(name: str, succession: Succession) -> list[ListeningSocket]:
    """Return the sockets for clients that the process that runs now has inherited."""
    if (inherited := inherited_by(name, succession)) is not None:
        return [*inherited]
    process = running_process()
    assert isinstance(process, Process)
    found = process.world.network.held(process.host, _PORTS[name]) if name in _PORTS else None
    return [] if found is None else [InheritedSocket(found)]


def _links(placement: Placement, succession: Succession) -> ListeningSocket:
    """Return the socket for links that the process that runs now has inherited."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    if isinstance(running_process(), Worker):
        place = loop.network.places[str(placement.link_of(placement.number))]
        listening = link_of(place, succession.descriptors.get(LINK))
        succession.keep(LINK, listening.fileno())
        return listening
    return loop.inherited(str(placement.link_of(placement.number)))
