"""A simulated network: addresses, connections, and what goes wrong with both.

Bytes on a connection arrive in order and once, or not at all, as TCP promises.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from errno import ECONNREFUSED, ECONNRESET
from random import Random
from typing import Any, Protocol

Place = tuple[str, int]
# How many bytes a receiver holds that were not read, including those on the way.
_WINDOW = 256 * 1024
# How many connections wait to be accepted.
_BACKLOG = 4096


class Clockwork(Protocol):
    """True time, and what happens later."""

    now: float
    random: Random

    def later(self, delay_s: float, then: Callable[[], None]) -> None: ...
    def note(self, who: str, what: str, data: bytes = b"") -> None: ...


class Reader(Protocol):
    """Who is told that an end has something to read, or room for more to write."""

    def readable(self) -> None: ...
    def writable(self) -> None: ...


@dataclass(slots=True)
class Weather:
    """How long bytes travel, in seconds; and whether they get through."""

    shortest_s: float = 0.0001
    longest_s: float = 0.001

    def delay_s(self, random: Random) -> float:
        return self.shortest_s + (self.longest_s - self.shortest_s) * random.random()


class End:
    """One end of a connection, as the system of its process holds it."""

    def __init__(self, world: Clockwork, name: Place, label: str, weather: Weather) -> None:
        self._world = world
        self.name = name
        self.label = label
        self.weather = weather
        self.peer: End
        self.reader: Reader | None = None
        # How many descriptors processes have of it.
        self.holders = 0
        self._received: deque[bytes] = deque()
        self._unread = 0
        self._on_the_way = 0
        self._arrives_at = 0.0
        # Whether the other end sends no more, and why the connection broke.
        self.is_at_end = False
        self.broken: OSError | None = None
        self._is_closed = False
        # Faults of what this end sends: bytes until it breaks, and whether it is held or lost.
        self.breaks_after: int | None = None
        self._held: list[Callable[[], None]] | None = None
        self._is_lost = False

    # Sending

    def send(self, data: bytes) -> int:
        """Send what the other end has room for; returns the number of bytes."""
        if self._is_closed or self.broken is not None:
            return len(data)
        peer = self.peer
        room = max(0, _WINDOW - peer._unread - self._on_the_way)
        sent = data if len(data) <= room else data[:room]
        if not sent:
            return 0
        if self.breaks_after is not None:
            self.breaks_after -= len(sent)
            if self.breaks_after <= 0:
                kept = sent[: len(sent) + self.breaks_after]
                self.breaks_after = None
                if kept:
                    self._pass(kept)
                self._tear()
                return len(sent)
        self._pass(sent)
        return len(sent)

    def _pass(self, data: bytes) -> None:
        self._on_the_way += len(data)
        self._travel(lambda: self._arrive(data))

    def _arrive(self, data: bytes) -> None:
        self._on_the_way -= len(data)
        self.peer._receive(data)

    def _travel(self, arrive: Callable[[], None]) -> None:
        """Let something happen at the other end, after everything that was sent before."""
        if self._is_lost:
            return
        if self._held is not None:
            self._held.append(arrive)
            return
        world = self._world
        arrives_at = world.now + self.weather.delay_s(world.random)
        self._arrives_at = max(arrives_at, self._arrives_at)
        world.later(self._arrives_at - world.now, lambda: self._land(arrive))

    def _land(self, arrive: Callable[[], None]) -> None:
        if not self._is_lost:
            arrive()

    def finish(self) -> None:
        """Send no more."""
        self._travel(self.peer._end)

    def close(self) -> None:
        """Neither send nor receive any more."""
        if not self._is_closed:
            self._is_closed = True
            self._travel(self.peer._break if self._received else self.peer._end)
            self._received.clear()

    def reset(self) -> None:
        """End at once, as the system does for a process that ended."""
        if not self._is_closed:
            self._is_closed = True
            self._travel(self.peer._break)

    def break_at_last(self) -> None:
        """Break now, if the bytes that it breaks after have not been sent: excuses end, too."""
        if self.breaks_after is not None:
            self.breaks_after = None
            self._tear()

    def _tear(self) -> None:
        self._travel(self.peer._break)
        self._break()

    # Receiving

    def _receive(self, data: bytes) -> None:
        if self._is_closed:
            self._travel(self.peer._break)
            return
        self._world.note(self.label, "<-", data)
        self._received.append(data)
        self._unread += len(data)
        self._tell()

    def _end(self) -> None:
        if not self._is_closed:
            self.is_at_end = True
            self._tell()

    def _break(self) -> None:
        if not self._is_closed and self.broken is None:
            self._world.note(self.label, "reset")
            self.broken = ConnectionResetError(ECONNRESET, "Connection reset by peer")
            self._tell()

    def _tell(self) -> None:
        if self.reader is not None:
            self.reader.readable()

    @property
    def is_readable(self) -> bool:
        """Whether reading returns something now: bytes, the end, or an error."""
        return bool(self._received) or self.is_at_end or self.broken is not None

    def read(self, most: int) -> bytes:
        """Take what has arrived. Raises `OSError` if the connection broke."""
        if self.broken is not None:
            raise self.broken
        if not self._received:
            return b""
        data = self._received.popleft()
        while self._received and len(data) + len(self._received[0]) <= most:
            data += self._received.popleft()
        was_full = self._unread + self.peer._on_the_way >= _WINDOW
        self._unread -= len(data)
        if was_full:
            self._travel(self.peer._make_room)
        return data

    def _make_room(self) -> None:
        if self.reader is not None:
            self.reader.writable()

    # Faults

    def hold(self) -> None:
        """Let nothing that is sent from now on arrive until `let_go`."""
        if self._held is None:
            self._held = []

    def let_go(self) -> None:
        """Let everything arrive that was held."""
        held, self._held = self._held, None
        for arrive in held or ():
            self._travel(arrive)

    def lose(self) -> None:
        """Let nothing arrive any more, and tell nobody: the connection is half open."""
        self._is_lost = True

    def break_both(self) -> None:
        """Break both ends of a connection through which nothing arrives."""
        self._break()
        self.peer._break()


class Listening:
    """A listening socket: connections wait in it until they are accepted."""

    def __init__(self, network: "Network", place: Place) -> None:
        self.place = place
        self._network = network
        self.waiting: deque[End] = deque()
        self.on_waiting: Callable[[], None] = _nothing

    def offer(self, end: End) -> None:
        """Let a connection wait."""
        self.waiting.append(end)
        self.on_waiting()

    @property
    def has_room(self) -> bool:
        return len(self.waiting) < _BACKLOG

    def close(self) -> None:
        """Listen no more. Connections that wait break."""
        self._network.forget(self)
        for end in self.waiting:
            end.reset()
        self.waiting.clear()


class Network:
    """Knows who listens where, and every open connection."""

    def __init__(self, world: Clockwork) -> None:
        self._world = world
        self._listening: dict[Place, Listening] = {}
        # Unix sockets by path. Those who use one may be on different machines nevertheless.
        self.places: dict[str, Place] = {}
        # Those by which processes give connections, and whether any are given.
        self.gives = True
        self.packets: dict[str, Any] = {}
        self._weathers: dict[frozenset[str], Weather] = {}
        self._last_port = 32_768
        self._count = 0
        # Open connections, by both machines: the end that connected.
        self.connections: dict[End, frozenset[str]] = {}
        # Pairs of machines between which no new connection is made.
        self.parted: set[frozenset[str]] = set()

    def listen(self, host: str, port: int) -> Listening:
        """Listen at an address. Raises `OSError` if something listens there."""
        place = (host, port)
        if place in self._listening:
            raise OSError(98, "Address already in use")
        listening = self._listening[place] = Listening(self, place)
        return listening

    def listening_at(self, place: Place) -> Listening:
        """Return what listens at an address."""
        return self._listening[place]

    def held(self, host: str, port: int) -> Listening | None:
        """Return what listens at an address whichever process runs there."""
        return self._listening.get((host, port))

    def forget(self, listening: Listening) -> None:
        """Let nothing connect to it any more."""
        if self._listening.get(listening.place) is listening:
            del self._listening[listening.place]

    def weather(self, one: str, other: str) -> Weather:
        """Return how the network between two machines is; changes hold for all connections."""
        return self._weathers.setdefault(frozenset((one, other)), Weather())

    def connect(self, host: str, place: Place, done: Callable[[End | OSError], None]) -> None:
        """Connect from a machine to an address; the outcome arrives after a while, or never."""
        pair = frozenset((host, place[0]))
        weather = self.weather(host, place[0])
        delay_s = weather.delay_s(self._world.random)
        self._world.later(delay_s, lambda: self._reach(host, place, pair, done))

    def _reach(
        self, host: str, place: Place, pair: frozenset[str], done: Callable[[End | OSError], None]
    ) -> None:
        if pair in self.parted:
            return
        delay_s = self.weather(host, place[0]).delay_s(self._world.random)
        listening = self._listening.get(place)
        if listening is None or not listening.has_room:
            refused = ConnectionRefusedError(ECONNREFUSED, "Connection refused")
            self._world.later(delay_s, lambda: done(refused))
            return
        near, far = self._pair(host, place)
        self.connections[near] = pair
        self._world.later(delay_s, lambda: done(near))
        listening.offer(far)

    def _pair(self, host: str, place: Place) -> tuple[End, End]:
        self._last_port += 1
        self._count += 1
        label, weather = f"{host}>{place[0]}#{self._count}", self.weather(host, place[0])
        near = End(self._world, (host, self._last_port), label, weather)
        far = End(self._world, place, f"{place[0]}<{host}#{self._count}", weather)
        near.peer, far.peer = far, near
        return near, far

    def open_connections(self, one: str, other: str) -> list[End]:
        """Return the connections between two machines, by the end that connected."""
        self.connections = {
            end: pair
            for end, pair in self.connections.items()
            if not (end._is_closed and end.peer._is_closed) and not end._is_lost
        }
        return [end for end, pair in self.connections.items() if pair == {one, other}]


def _nothing() -> None:
    """Nobody waits for connections."""
