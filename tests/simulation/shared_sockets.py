"""Listening sockets that several processes of a machine have."""

from collections.abc import Callable

from tests.simulation.holdings import Handle, Thing
from tests.simulation.loop import ListeningSocket
from tests.simulation.network import Listening


class Bound(Thing):
    """A place where somebody listens, as long as a process has the socket."""

    def __init__(self, listening: Listening) -> None:
        super().__init__()
        self.listening = listening
        listening.on_waiting = self.tell

    @property
    def is_readable(self) -> bool:
        return bool(self.listening.waiting)

    def end(self) -> None:
        self.listening.close()


class SharedSocket(ListeningSocket):
    """A listening socket that several processes may have: who is first takes a connection."""

    def __init__(self, handle: Handle) -> None:
        assert isinstance(handle.thing, Bound)
        super().__init__(handle.thing.listening)
        self._handle = handle

    def dup(self) -> "SharedSocket":
        return SharedSocket(self._handle.thing.handle())

    def fileno(self) -> int:
        return self._handle

    def watch(self, then: Callable[[], None]) -> bool:
        return self._handle.watch(then)

    def close(self) -> None:
        self._handle.close()
