"""What stands for the real system where hosts of several speak to each other, and claim shards."""

import socket
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from holdfast.compose import forwarding, host_links
from holdfast.compose.succession import Succession
from holdfast.supervisor import titles
from holdfast.web.host_links import front_desk, receiver
from tests.simulation.descriptors import Packets, Sockets
from tests.simulation.environment import running_process
from tests.simulation.holdings import Handle, Thing
from tests.simulation.process import Process
from tests.simulation.supervised import Worker
from tests.simulation.transport import SimTls


class _Tls:
    """How a host speaks with others."""

    client = server = SimTls()


class _Certificates:
    """Instead of files with certificates: each host knows the names of all others."""

    now = _Tls()

    def __init__(self, *_: object) -> None:
        pass


class Desk(Thing):
    """A path at which the worker of a shard takes links, as long as a process has the socket."""

    is_for_clients = False

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._clocks = process.clocks
        self.waiting: deque[Packets] = deque()

    @property
    def is_readable(self) -> bool:
        return bool(self.waiting)

    def is_near(self, process: object) -> bool:
        """Return whether a process is on this machine."""
        return getattr(process, "clocks", None) is self._clocks

    def offer(self, near: Packets) -> Packets:
        """Let a connection wait; returns its other end. Raises `OSError` if nobody listens."""
        if not self.holders:
            raise ConnectionRefusedError
        far = Packets()
        far.peer = near
        self.waiting.append(far)
        self.tell()
        return far

    def end(self) -> None:
        while self.waiting:
            self.waiting.popleft().close()


class _SharedDesk:
    """A socket at such a path."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def accept(self) -> tuple[Packets, str]:
        desk = self._handle.thing
        assert isinstance(desk, Desk)
        if not desk.waiting:
            raise BlockingIOError
        return desk.waiting.popleft(), ""

    def setblocking(self, _: bool) -> None:
        pass

    def fileno(self) -> Handle:
        return self._handle

    def watch(self, then: Any) -> bool:
        return self._handle.watch(then)

    def close(self) -> None:
        self._handle.close()


def _kept(name: str, path: Path, succession: Succession, _: socket.SocketKind) -> _SharedDesk:
    """Return the socket for links of other hosts, which an earlier worker may have had."""
    process = running_process()
    assert isinstance(process, Worker)
    found: Any = succession.descriptors.get(name)
    if isinstance(found, Handle):
        handle = found.thing.handle()
    else:
        desk = process.world.network.packets[str(path)] = Desk(process)
        handle = desk.handle()
    succession.keep(name, handle)
    return _SharedDesk(handle)


def _name_process(name: str) -> None:
    process = running_process()
    if name == titles.CLAIMER and isinstance(process, Worker):
        process.name = f"{process.host} claimer"
        process.unit.claimer = process
    if name == titles.DOOR and isinstance(process, Worker):
        process.name = f"{process.host} door"
        process.world.coverage.mark("a host without a shard has a door")


@contextmanager
def linking() -> Iterator[None]:
    """Let simulated hosts claim shards, and have links to each other."""
    with ExitStack() as stack:
        for owner, name, replaced in _REPLACED:
            stack.enter_context(patch.object(owner, name, replaced))
        yield


_REPLACED: tuple[tuple[object, str, object], ...] = (
    (forwarding, "kept", _kept),
    (host_links, "LinkCertificates", _Certificates),
    (front_desk, "socket", Sockets),
    (receiver, "socket", Sockets),
    (titles, "name_process", _name_process),
)
