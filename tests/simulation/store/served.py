"""The fake store at a Unix socket, for tests of the real one."""

import asyncio
import time
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, TypeVar, cast

from tests.simulation.store.history import History
from tests.simulation.store.keyspace import Keyspace
from tests.simulation.store.node import Node
from tests.store.servers import ValkeyServer

if TYPE_CHECKING:
    from tests.simulation.store.connection import Connection

T = TypeVar("T")


class _Socket(asyncio.Protocol):
    """A connection of a client to the node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._connection: Connection | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        socket = cast("asyncio.Transport", transport)
        self._connection = self._node.connect(socket.write, socket.abort)

    def data_received(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.receive(data)

    def connection_lost(self, _: Exception | None) -> None:
        if self._connection is not None:
            self._connection.close()


class ServedStore(ValkeyServer):
    """A fake server that its tests take for a real one. It runs in another thread."""

    def __init__(self, **config: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: asyncio.Server | None = None
        self.node = Node(time.time, self._loop.call_later)
        super().__init__(**config)

    def _do(self, work: Callable[[], T]) -> T:
        """Do it in the thread of the server."""

        async def done() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(10)

    def launch(self, **config: str) -> None:
        self._config |= {name.replace("_", "-"): value for name, value in config.items()}
        self._do(self._begin)
        listening = self._loop.create_unix_server(lambda: _Socket(self.node), self.directory / "s")
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result(10)

    def _begin(self) -> None:
        for name, value in self._config.items():
            self.node.settings.set(name, value)
        if not self.node.is_running:
            # What a process has written stays with the system when it is killed.
            self.node.start(self.node.history.end if self.node.settings.has_file else None)

    def reset(self) -> None:
        """Begin a new history, with no data."""
        self._do(self._forget)

    def _forget(self) -> None:
        self.node.empty()
        self.node.scripts.clear()
        self.node.history = History(Keyspace(time.time))

    def check(self) -> None:
        """Refuse a history that would give a replica other data."""
        self._do(self._check)

    def _check(self) -> None:
        history = self.node.history
        assert history.at(history.end).shown() == self.node.keyspace.shown()

    def start(self, **config: str) -> None:
        self.launch(**config)

    def kill(self) -> None:
        self._client.close()
        for connection in self._kept_busy:
            connection.disconnect()
        if self._server is not None:
            self._do(self._server.close)
            self._server = None
            self._do(self.node.crash)
            (self.directory / "s").unlink(missing_ok=True)

    def close(self) -> None:
        super().close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def freeze(self) -> None:
        self._do(self.node.freeze)

    def thaw(self) -> None:
        self._do(self.node.thaw)

    @property
    def is_running(self) -> bool:
        return self.node.is_running
