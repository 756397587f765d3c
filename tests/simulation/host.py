"""A machine that runs no process: an object that receives and sends bytes, such as a store."""

from collections.abc import Callable
from typing import Protocol

from tests.simulation.network import Clockwork, End, Listening, Network, Place

_AT_ONCE = 256 * 1024


class Connection(Protocol):
    """A connection of an object, which answers what it receives."""

    # The machine that it comes from.
    client: str

    def receive(self, data: bytes) -> None:
        """Take bytes that have arrived."""
        ...

    def close(self) -> None:
        """Take note that the connection has ended."""
        ...


class Connect(Protocol):
    """Makes a connection, which sends by the first function, and ends itself by the second.

    Raises `ConnectionRefusedError`.
    """

    def __call__(self, send: Callable[[bytes], None], closed: Callable[[], None]) -> Connection: ...


class HostWorld(Clockwork, Protocol):
    """The world, as such a machine sees it."""

    network: Network


class Host:
    """Connects an object to an address."""

    def __init__(self, world: HostWorld, place: Place, connect: Connect) -> None:
        self._world = world
        self.place = place
        self._connect = connect
        self._listening: Listening | None = None

    def start(self) -> None:
        """Accept connections."""
        if self._listening is None:
            self._world.note(self.place[0], "started")
            self._listening = self._world.network.listen(*self.place)
            self._listening.on_waiting = self._accept

    def stop(self) -> None:
        """Accept no more connections: nothing listens there. Open ones are the object's affair."""
        if self._listening is not None:
            self._world.note(self.place[0], "stopped")
            self._listening.close()
            self._listening = None

    def _accept(self) -> None:
        while self._listening is not None and self._listening.waiting:
            _Visitor(self._listening.waiting.popleft()).begin(self._connect)


class _Visitor:
    """One connection to the object."""

    def __init__(self, end: End) -> None:
        self._end = end
        self._buffer = bytearray()
        self._connection: Connection

    def begin(self, connect: Connect) -> None:
        try:
            self._connection = connect(self._send, self._cut)
        except ConnectionRefusedError:
            self._end.reset()
            return
        self._connection.client = self._end.peer.name[0]
        self._end.reader = self
        self.readable()

    def _send(self, data: bytes) -> None:
        self._buffer += data
        self.writable()

    def _cut(self) -> None:
        self._end.reader = None
        self._end.reset()

    def writable(self) -> None:
        if self._buffer:
            sent = self._end.send(bytes(self._buffer))
            del self._buffer[:sent]

    def readable(self) -> None:
        end = self._end
        while end.is_readable and end.reader is self:
            try:
                data = end.read(_AT_ONCE)
            except OSError:
                data = b""
            if not data:
                end.close()
                end.reader = None
                self._connection.close()
                return
            self._connection.receive(data)
