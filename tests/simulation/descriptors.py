"""What processes have of connections, and how they give them to others on their machine."""

import asyncio
import socket
from collections import deque
from collections.abc import Callable, Sequence
from errno import ECONNRESET
from pathlib import Path
from typing import Any, Final, Self

from tests.simulation.environment import running_process
from tests.simulation.files import lock_of
from tests.simulation.holdings import Handle, Link
from tests.simulation.network import End

# What the real system is asked about by mistake fails.
_NUMBER: Final = -1


class Descriptor(int):
    """A process's own descriptor of an end, which is closed with the last one."""

    end: End
    is_closed: bool

    def __new__(cls, end: End) -> Self:
        made = super().__new__(cls, _NUMBER)
        made.end = end
        end.holders += 1
        made.is_closed = False
        return made

    def copy(self) -> "Descriptor":
        """Return another one, which no process has yet."""
        return Descriptor(self.end)

    def close(self) -> None:
        self._let_go(self.end.close)

    def reset(self) -> None:
        """Close it as the system does for a process that ended."""
        self._let_go(self.end.reset)

    def _let_go(self, end: Callable[[], None]) -> None:
        if not self.is_closed:
            self.is_closed = True
            self.end.holders -= 1
            if not self.end.holders:
                end()


def keep(descriptor: Descriptor) -> Descriptor:
    """Let a descriptor end with the process that runs now."""
    _loop().keep(descriptor)
    return descriptor


class Connected:
    """The socket of a connection, as far as servers look at it."""

    family = socket.AF_UNIX

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor = descriptor

    def fileno(self) -> Descriptor:
        return self.descriptor

    def getpeername(self) -> tuple[str, int]:
        return self.descriptor.end.peer.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def setblocking(self, _: bool) -> None:
        pass

    def setsockopt(self, *_: int) -> None:
        pass

    def recv(self, most: int) -> bytes:
        """Return a part of what has come that was sent at once. Raises `OSError`."""
        if not self.descriptor.end.is_readable:
            raise BlockingIOError
        return self.descriptor.end.read(most)

    def watch(self, then: Callable[[], None]) -> bool:
        """Call back whenever there is something to read. Returns whether there is now."""
        self.descriptor.end.reader = _Watcher(then)
        return self.descriptor.end.is_readable

    def close(self) -> None:
        self.descriptor.close()


class _Watcher:
    """Reads nothing by itself."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.readable = then

    def writable(self) -> None:
        pass


class Packets:
    """A connected `SOCK_SEQPACKET`: packets are at the other end at once, with descriptors."""

    def __init__(self) -> None:
        self.peer: Packets | None = None
        self._came: deque[tuple[bytes, list[Descriptor]]] = deque()
        self._has_failed = self._is_closed = False
        self._on_readable: Callable[[], None] = unwatched

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def setblocking(self, _: bool) -> None:
        pass

    def connect(self, path: str) -> None:
        network = _network()
        listening = network.packets.get(path)
        is_near = listening is not None and listening.is_near(running_process())
        if listening is None or not is_near or (listening.is_for_clients and not network.gives):
            raise FileNotFoundError(path)
        self.peer = listening.offer(self)

    def send(self, data: bytes, descriptors: Sequence[Descriptor] = ()) -> None:
        peer = self.peer
        if peer is None or peer._is_closed:
            raise BrokenPipeError
        peer._came.append((data, [each.copy() for each in descriptors]))
        peer._on_readable()

    def recv(self, _: int) -> bytes:
        data, descriptors = self.receive()
        assert not descriptors
        return data

    def receive(self) -> tuple[bytes, list[Descriptor]]:
        """Return the next packet with its descriptors; an empty one at the end."""
        if self._has_failed:
            self._has_failed = False
            raise ConnectionResetError(ECONNRESET, "Connection reset by peer")
        if self._came:
            return self._came.popleft()
        if self.peer is None or self.peer._is_closed:
            return b"", []
        raise BlockingIOError

    def watch(self, then: Callable[[], None]) -> bool:
        """Call back whenever there is something to read. Returns whether there is now."""
        self._on_readable = then
        is_over = self.peer is None or self.peer._is_closed
        return bool(self._came) or self._has_failed or is_over

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed, self._on_readable = True, unwatched
        if self.peer is not None:
            self.peer._has_failed = bool(self._came)
            self.peer._on_readable()
        while self._came:
            for each in self._came.popleft()[1]:
                each.close()


class PacketListener:
    """Listens at a path, which only processes of the same machine find."""

    # Whether connections of clients come here, and not those of other hosts.
    is_for_clients = True

    def __init__(self) -> None:
        self._clocks = getattr(running_process(), "clocks", None)
        self._waiting: deque[Packets] = deque()
        self._on_waiting: Callable[[], None] = unwatched
        self._is_closed = False

    def is_near(self, process: object) -> bool:
        """Return whether a process is on this machine."""
        return getattr(process, "clocks", None) is self._clocks

    def offer(self, near: Packets) -> Packets:
        """Let a connection wait; returns its other end. Raises `OSError` if nobody listens."""
        if self._is_closed:
            raise ConnectionRefusedError
        far = Packets()
        far.peer = near
        self._waiting.append(far)
        self._on_waiting()
        return far

    def accept(self) -> tuple[Packets, str]:
        if not self._waiting:
            raise BlockingIOError
        return self._waiting.popleft(), ""

    def setblocking(self, _: bool) -> None:
        pass

    def watch(self, then: Callable[[], None]) -> bool:
        """Call back whenever connections wait. Returns whether some do now."""
        self._on_waiting = then
        return bool(self._waiting)

    def close(self) -> None:
        self._is_closed, self._on_waiting = True, unwatched
        while self._waiting:
            self._waiting.popleft().close()


def bound(path: Path, _: socket.SocketKind) -> PacketListener:
    """Listen at a path, taken from an earlier process."""
    listening = _network().packets[str(path)] = PacketListener()
    return listening


class Sockets:
    """Stands for the module `socket` where processes give connections."""

    AF_UNIX, SOCK_SEQPACKET = socket.AF_UNIX, socket.SOCK_SEQPACKET
    MSG_CTRUNC, MSG_TRUNC = socket.MSG_CTRUNC, socket.MSG_TRUNC

    @staticmethod
    def socket(*_: int, fileno: Descriptor | Handle | None = None) -> Packets | Connected | Link:
        if isinstance(fileno, Handle):
            return Link(fileno)
        return Packets() if fileno is None else Connected(fileno)

    @staticmethod
    def send_fds(
        link: Packets | Link, parts: Sequence[bytes], descriptors: Sequence[Descriptor]
    ) -> None:
        link.send(b"".join(parts), descriptors)

    @staticmethod
    def recv_fds(link: Packets | Link, *_: int) -> tuple[bytes, list[Descriptor], int, None]:
        data, descriptors = link.receive()
        for each in descriptors:
            keep(each)
        return data, descriptors, 0, None


class Descriptors:
    """Stands for the module `os` there."""

    @staticmethod
    def dup(descriptor: int) -> Descriptor | Handle:
        if isinstance(descriptor, Descriptor):
            return keep(descriptor.copy())
        return descriptor.thing.handle() if isinstance(descriptor, Handle) else lock_of(descriptor)

    @staticmethod
    def set_inheritable(descriptor: Descriptor | Handle, _: bool) -> None:
        pass

    @staticmethod
    def close(descriptor: Descriptor | Handle) -> None:
        descriptor.close()


def _network() -> Any:
    return _loop().network


def _loop() -> Any:
    return asyncio.get_running_loop()


def unwatched() -> None:
    """Nobody looks."""
