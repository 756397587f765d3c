"""A server with a store, for browsers to lose and to find again."""

from pathlib import Path

from tests.serving import Server, Settings, end_whoever_lives_in


class Mortal:
    """A server that is killed and comes back with what its store has."""

    def __init__(self, data: Path, settings: Settings) -> None:
        self._settings = {**settings, "data": str(data), "durability": "always"}
        self._data = data
        self.alive = Server(self._settings)

    def kill(self) -> None:
        self.alive.process.kill()
        self.alive.process.wait()

    def start(self) -> None:
        port = int(self.alive.url.rsplit(":", 1)[1])
        self.alive.stop()
        self.alive = Server({**self._settings, "port": port})

    def stop(self) -> None:
        self.alive.stop()
        end_whoever_lives_in(self._data)
