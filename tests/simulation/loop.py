"""The event loop of a simulated process: asyncio's own, without a selector, a step at a time."""

import asyncio
import heapq
import signal
import socket
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Self, cast

from holdfast.supervisor.packets import PacketSocket
from tests.simulation.descriptors import (
    Connected,
    Descriptor,
    PacketListener,
    Packets,
    keep,
    unwatched,
)
from tests.simulation.holdings import Handle
from tests.simulation.network import End, Listening, Network, Place
from tests.simulation.transport import SimTransport, is_simulated

_RESOLUTION_S = 1e-6
# When to look again for room in a socket, and how long work in a thread takes.
_ROOM_S = 0.002
_IN_THREAD_S = 0.0005
_MANY_CANCELLED = 100
# How often code that was killed may wait before it ends.
_MOST_WAITS = 100


class ListeningSocket:
    """A listening socket, as far as servers look at theirs."""

    family = socket.AF_INET

    def __init__(self, listening: Listening) -> None:
        self._listening = listening

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def accept(self) -> tuple[Connected, tuple[str, int]]:
        if not self._listening.waiting:
            raise BlockingIOError
        end = self._listening.waiting.popleft()
        return Connected(keep(Descriptor(end))), end.peer.name

    def getsockname(self) -> tuple[str, int]:
        return self._listening.place

    def setblocking(self, _: bool) -> None:
        pass

    def fileno(self) -> int:
        return -1

    def dup(self) -> "ListeningSocket":
        """Return a copy, which its holder closes without the other."""
        return InheritedSocket(self._listening)

    def watch(self, then: Callable[[], None]) -> bool:
        """Call back whenever connections wait. Returns whether some do now."""
        self._listening.on_waiting = then
        return bool(self._listening.waiting)

    def close(self) -> None:
        self._listening.close()

    async def wait_closed(self) -> None:
        pass


class InheritedSocket(ListeningSocket):
    """A listening socket that others hold, too: connections wait in it without this one."""

    def __init__(self, listening: Listening) -> None:
        super().__init__(listening)
        self._then: Callable[[], None] = unwatched

    def watch(self, then: Callable[[], None]) -> bool:
        self._then = then
        return super().watch(then)

    def close(self) -> None:
        # Another process may watch it by now.
        if self._listening.on_waiting is self._then:
            self._listening.on_waiting = unwatched


_Watched = ListeningSocket | PacketListener | Packets | Handle | Connected


def _end_of(fd: _Watched | PacketSocket) -> _Watched:
    """Return the simulated socket."""
    return cast("_Watched", fd._end) if isinstance(fd, PacketSocket) else fd


class _Task(asyncio.Task[Any]):
    """A task that has the same place in a set of tasks in each run: groups cancel them so."""

    def __init__(self, number: int, *args: Any, **options: Any) -> None:
        self._number = number
        super().__init__(*args, **options)

    def __hash__(self) -> int:
        return self._number


class SimLoop(asyncio.BaseEventLoop):
    """Runs a callback at a time, when the world says so.

    As asyncio's loops do, it works in turns: what has arrived from the network, then timers that
    are due, then what earlier turns left; what is scheduled meanwhile waits for the next turn.
    """

    # Parts of asyncio that its types do not show.
    _ready: deque[Any]
    _scheduled: list[Any]
    _thread_id: int | None

    def __init__(
        self,
        network: Network,
        host: str,
        time: Callable[[], float],
        shuffle: Callable[[list[Any]], None],
    ) -> None:
        super().__init__()
        self.set_debug(False)
        self._numbers = count()
        self.set_task_factory(self._new_task)
        self.network = network
        # Those that may have no transport.
        self._descriptors: list[Descriptor] = []
        self._host = host
        self._time = time
        self._shuffle = shuffle
        self._left = 0
        # What to do about the network in the next turn.
        self._arrived: dict[Callable[[], None], None] = {}
        self._watched: dict[_Watched, Callable[[], None]] = {}
        self._transports: list[SimTransport] = []
        # Called with everything that this process writes to a connection.
        self.on_write: Callable[[End, bytes], None] = _unobserved
        # Called with everything that it reads.
        self.on_read: Callable[[End, bytes], None] = _unobserved
        self._thread_id = 1
        self._handlers: dict[int, Callable[[], None]] = {}
        # Those that wait for a handler.
        self._signals: list[int] = []

    def _new_task(self, _: object, *args: Any, **options: Any) -> _Task:
        return _Task(next(self._numbers), *args, loop=self, **options)

    def time(self) -> float:
        return self._time()

    # Turns

    @property
    def next_timer(self) -> float | None:
        """When the next timer is due, by the clock of this loop."""
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
            self._timer_cancelled_count -= 1
        return float(scheduled[0]._when) if scheduled else None

    @property
    def has_work(self) -> bool:
        """Whether a callback can run now."""
        if self._ready or self._arrived:
            return True
        when = self.next_timer
        return when is not None and when <= self._time() + _RESOLUTION_S

    def run_one(self) -> asyncio.Handle | None:
        """Run the next callback. Returns it; None if it was cancelled."""
        if not self._left:
            self._begin_turn()
            if not self._left:
                return None
        self._left -= 1
        handle: asyncio.Handle = self._ready.popleft()
        if handle._cancelled:
            return None
        handle._run()
        return handle

    def _begin_turn(self) -> None:
        if self._arrived:
            arrived, self._arrived = [*self._arrived], {}
            if len(arrived) > 1:
                self._shuffle(arrived)
            for each in arrived:
                self._ready.append(asyncio.Handle(each, (), self))
        end = self._time() + _RESOLUTION_S
        if self._timer_cancelled_count > _MANY_CANCELLED:
            self._drop_cancelled()
        while (when := self.next_timer) is not None and when <= end:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            self._ready.append(handle)
        self._left = len(self._ready)

    def _drop_cancelled(self) -> None:
        for each in self._scheduled:
            each._scheduled = not each._cancelled
        self._scheduled = [each for each in self._scheduled if not each._cancelled]
        heapq.heapify(self._scheduled)
        self._timer_cancelled_count = 0

    def wake(self, then: Callable[[], None]) -> None:
        """Call this in the next turn, once, because of the network."""
        self._arrived[then] = None

    def _write_to_self(self) -> None:
        pass

    # The network

    def keep(self, descriptor: Descriptor) -> None:
        """Close a descriptor when this process ends, whoever has it then."""
        if len(self._descriptors) >= _MANY_CANCELLED:
            self._descriptors = [each for each in self._descriptors if not each.is_closed]
        self._descriptors.append(descriptor)

    async def create_connection(  # type: ignore[override] # only what servers use
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: object = None,
        **_: object,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        assert ssl is None, "TLS begins behind some plain bytes"
        return await self._begin_at((host, port), protocol_factory())

    async def start_tls(  # type: ignore[override] # of a simulated transport
        self,
        transport: SimTransport,
        protocol: asyncio.BaseProtocol,
        sslcontext: object,
        **_: object,
    ) -> SimTransport:
        assert is_simulated(sslcontext)
        transport.begin_tls(protocol)
        return transport

    async def create_unix_connection(  # type: ignore[override] # only what servers use
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], path: str
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to the server whose socket this is, which may be at another address."""
        if (place := self.network.places.get(path)) is None:
            raise FileNotFoundError(path)
        return await self._begin_at(place, protocol_factory())

    async def _begin_at(
        self, place: Place, protocol: asyncio.BaseProtocol
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        return self._begin(Connected(Descriptor(await self._connect(place))), protocol)

    def _connect(self, place: Place) -> "asyncio.Future[End]":
        made: asyncio.Future[End] = self.create_future()

        def report(outcome: End | OSError) -> None:
            if made.done():
                if isinstance(outcome, End):
                    outcome.close()
            elif isinstance(outcome, End):
                made.set_result(outcome)
            else:
                made.set_exception(outcome)

        self.network.connect(
            *(self._host, place, lambda outcome: self.wake(lambda: report(outcome)))
        )
        return made

    async def connect_accepted_socket(  # type: ignore[override] # of a simulated one
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        sock: Connected,
        *,
        ssl: object = None,
        **_: object,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        made = self._begin(sock, protocol := protocol_factory())
        if is_simulated(ssl):
            made[0].begin_tls(protocol)
        return made

    def _begin(
        self, connected: Connected, protocol: asyncio.BaseProtocol
    ) -> tuple[SimTransport, asyncio.BaseProtocol]:
        transport = SimTransport(self, connected, protocol)
        self._transports.append(transport)
        transport.begin()
        return transport, protocol

    async def create_server(  # type: ignore[override] # only what tests use
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str = "",
        port: int = 0,
        *,
        sock: ListeningSocket | None = None,
        **_: object,
    ) -> ListeningSocket:
        """Accept connections, without a limit."""
        server = ListeningSocket(self.network.listen(host, port)) if sock is None else sock

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except BlockingIOError:
                    return
                self._begin(connection, protocol_factory())

        self.add_reader(server, accept)
        return server

    async def create_unix_server(  # type: ignore[override] # only what servers use
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], *, sock: ListeningSocket
    ) -> ListeningSocket:
        return await self.create_server(protocol_factory, sock=sock)

    def inherited(self, path: str) -> InheritedSocket:
        """Return a listening Unix socket that was there before this process."""
        return InheritedSocket(self.network.listening_at(self.network.places[path]))

    def add_reader(  # type: ignore[override] # of a simulated socket
        self, fd: _Watched | PacketSocket, callback: Callable[..., Any], *args: Any
    ) -> None:
        fd = _end_of(fd)

        def call() -> None:
            if self._watched.get(fd) is call:
                callback(*args)
                if self._watched.get(fd) is call and fd.watch(lambda: self.wake(call)):
                    self.wake(call)

        self._watched[fd] = call
        if fd.watch(lambda: self.wake(call)):
            self.wake(call)

    def remove_reader(self, fd: _Watched | PacketSocket) -> bool:  # type: ignore[override] # as above
        return self._watched.pop(_end_of(fd), None) is not None

    async def getaddrinfo(  # type: ignore[override] # every name is an address
        self, host: str | None, port: int, **_: object
    ) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host or self._host, port))]

    def add_writer(  # type: ignore[override] # of a simulated socket
        self, _: Any, callback: Callable[..., Any], *args: Any
    ) -> None:
        """Call back when there may be room: nobody tells."""
        self.call_later(_ROOM_S, callback, *args)

    def remove_writer(self, _: Any) -> bool:
        return True

    # Signals

    def add_signal_handler(  # type: ignore[override] # with any arguments
        self, sig: int, callback: Callable[..., Any], *args: Any
    ) -> None:
        self._handlers[sig] = lambda: callback(*args)
        if sig in self._signals:
            self._signals.remove(sig)
            self.wake(self._handlers[sig])

    def take_signal(self, number: int, kill: Callable[[], None]) -> None:
        """Handle a signal, which waits until there is a handler for it."""
        if number == signal.SIGKILL:
            kill()
        elif (handler := self._handlers.get(number)) is not None:
            self.wake(handler)
        else:
            self._signals.append(number)

    # Threads

    def run_in_executor(  # type: ignore[override] # there are none
        self, executor: object, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        done: asyncio.Future[Any] = self.create_future()

        def work() -> None:
            if done.done():
                return
            try:
                done.set_result(func(*args))
            except Exception as error:
                done.set_exception(error)

        self.call_later(_IN_THREAD_S, work)
        return done

    # The end

    def drop(self) -> None:
        """End without running anything any more. Its connections break."""
        for transport in self._transports:
            transport.drop()
        for descriptor in self._descriptors:
            descriptor.reset()
        for each in [*self._watched]:
            each.close()
        self._ready.clear()
        self._scheduled.clear()
        self._arrived.clear()
        self._left = 0

    def forget(self) -> None:
        """Close it after the simulation, with everything that runs on it."""
        self.set_exception_handler(_ignore)
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined] # it was killed
            _end(task.get_coro())
        self.drop()
        self._thread_id = None
        self.close()


def _end(coroutine: Any) -> None:
    """End a coroutine, which may wait while it cleans up: it was killed."""
    for _ in range(_MOST_WAITS):
        try:
            coroutine.close()
        except BaseException:
            continue
        return


def _unobserved(_: End, __: bytes) -> None:
    """Nobody looks at what is written or read."""


def _ignore(_: asyncio.AbstractEventLoop, __: dict[str, Any]) -> None:
    """Ignore the faults of what was killed."""
