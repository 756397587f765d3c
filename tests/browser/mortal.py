"""A server with a store, which tests kill and start again."""

from contextlib import ExitStack
from pathlib import Path

from bench.processes import reserved_port
from tests.serving import Server, Settings, kill_orphans_in


class Mortal:
    """A server that is killed and comes back with what its store has."""

    def __init__(self, data: Path, settings: Settings) -> None:
        self._reserved = ExitStack()
        port = self._reserved.enter_context(reserved_port())
        always = {"data": str(data), "durability": "always", "port": port}
        self._settings = {**settings, **always}
        self._data = data
        self.alive = Server(self._settings)

    def kill(self) -> None:
        self.alive.process.kill()
        self.alive.process.wait()

    def start(self) -> None:
        self.alive.stop()
        self.alive = Server(self._settings)

    def stop(self) -> None:
        self.alive.stop()
        kill_orphans_in(self._data)
        self._reserved.close()
