"""A machine that runs no process: an object that receives and sends bytes, such as a store."""

from collections.abc import Callable
from typing import Protocol

from tests.simulation.network import Clockwork, End, Listening, Network, Place

_AT_ONCE = 256 * 1024


class Connection(Protocol):
    """A connection of an object, which answers what it receives."""

    def receive(self, data: bytes) -> None:
        """Take bytes that have arrived."""
        ...

    def close(self) -> None:
        """Take note that the connection has ended."""
        ...


# Makes a connection, which sends by the function it is given.
Connect = Callable[[Callable[[bytes], None]], Connection]


class HostWorld(Clockwork, Protocol):
    """The world, as such a machine sees it."""

    network: Network


class Host:
    """Connects an object to an address. It can be frozen, ended, and started again."""

    def __init__(self, world: HostWorld, place: Place, connect: Connect) -> None:
        self._world = world
        self.place = place
        self._connect = connect
        self._listening: Listening | None = None
        self._open: dict[_Visitor, None] = {}
        self.is_frozen = False

    def start(self) -> None:
        """Accept connections."""
        self._world.note(self.place[0], "started")
        self._listening = self._world.network.listen(*self.place)
        self._listening.on_waiting = self._accept

    def freeze(self) -> None:
        """Do nothing until `thaw`."""
        self._world.note(self.place[0], "frozen")
        self.is_frozen = True

    def thaw(self) -> None:
        """Do what was left, connection by connection."""
        self._world.note(self.place[0], "thawed")
        self.is_frozen = False
        self._accept()
        visitors = [*self._open]
        self._world.random.shuffle(visitors)
        for each in visitors:
            each.readable()

    def kill(self) -> None:
        """End at once. All connections break."""
        self._world.note(self.place[0], "killed")
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for each in [*self._open]:
            each.end.reset()
            self._leave(each)

    def _accept(self) -> None:
        while self._listening is not None and self._listening.waiting and not self.is_frozen:
            end = self._listening.waiting.popleft()
            visitor = _Visitor(self, end, self._leave)
            self._open[visitor] = None
            visitor.begin(self._connect)

    def _leave(self, visitor: "_Visitor") -> None:
        if visitor in self._open:
            del self._open[visitor]
            visitor.end.reader = None
            visitor.connection.close()


class _Visitor:
    """One connection to the object."""

    def __init__(self, host: Host, end: End, leave: Callable[["_Visitor"], None]) -> None:
        self._host = host
        self.end = end
        self._leave = leave
        self._buffer = bytearray()
        self.connection: Connection

    def begin(self, connect: Connect) -> None:
        self.connection = connect(self._send)
        self.end.reader = self
        self.readable()

    def _send(self, data: bytes) -> None:
        self._buffer += data
        self.writable()

    def writable(self) -> None:
        if self._buffer:
            sent = self.end.send(bytes(self._buffer))
            del self._buffer[:sent]

    def readable(self) -> None:
        end = self.end
        while end.is_readable and not self._host.is_frozen and end.reader is self:
            try:
                data = end.read(_AT_ONCE)
            except OSError:
                data = b""
            if not data:
                end.close()
                self._leave(self)
                return
            self.connection.receive(data)
