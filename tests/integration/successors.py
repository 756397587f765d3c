"""Servers in one data directory, each of which follows one that was killed."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.serving import Server, kill_orphans_in


class Successors:
    """The servers so far; the last one runs."""

    def __init__(self, data: Path, **settings: object) -> None:
        self._settings = {"data": str(data), **settings}
        self._servers = [Server(self._settings)]

    @property
    def last(self) -> Server:
        return self._servers[-1]

    def kill(self) -> None:
        """Kill the last server, and start the next."""
        self.last.process.kill()
        self.last.process.wait()
        self._servers.append(Server(self._settings))

    def restart(self, **unusable: object) -> None:
        """Stop the last server in order, and start the next; before, one with unusable settings."""
        self.last.stop()
        if unusable:
            with pytest.raises(RuntimeError, match="did not start"):
                Server({**self._settings, **unusable})
        self._servers.append(Server(self._settings))

    def stop(self) -> None:
        # The last server has taken over the store of the others.
        for server in reversed(self._servers):
            server.stop()


@contextmanager
def following(tmp_path: Path, **settings: object) -> Iterator[Successors]:
    servers = Successors(tmp_path / "data", **settings)
    try:
        yield servers
    finally:
        servers.stop()
        kill_orphans_in(tmp_path)
