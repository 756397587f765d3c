"""Servers that share an external store, and their clients."""

from contextlib import AsyncExitStack
from pathlib import Path

from tests.chaos.processes import SERVER, Processes
from tests.chaos.talker import Talker
from tests.store.servers import ValkeyServer

TIMEOUT_S = 60.0


class Stage:
    """One store, and a server in a home of its own for each name."""

    def __init__(self, home: Path, stack: AsyncExitStack) -> None:
        self._home = home
        self._stack = stack
        self.store = stack.enter_context(ValkeyServer())

    def server(
        self,
        name: str,
        program: tuple[str, ...] = SERVER,
        kind: type[Processes] = Processes,
        **settings: object,
    ) -> Processes:
        """A server that was not started yet."""
        home = self._home / name
        home.mkdir()
        given = {"redis": self.store.url, "node": name, **settings}
        server = kind(home, given, program)
        self._stack.push_async_callback(server.close)
        return server

    async def started(self, name: str, program: tuple[str, ...] = SERVER) -> Processes:
        server = self.server(name, program)
        await server.start()
        return server

    def talker(self, server: Processes) -> Talker:
        talker = Talker(server.url, timeout_s=TIMEOUT_S)
        self._stack.push_async_callback(talker.close)
        return talker
