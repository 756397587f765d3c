"""A supervisor that a test plays: it says when a server leaves, and when the next opens."""

import os
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from select import select
from typing import Any, Self

from holdfast.supervisor.control import VARIABLE, Channel, Do, Say, channel_pair
from tests.forking import Forked, start
from tests.serving import ROOT, Settings, as_toml, environment, kill_orphans_in

LIMIT_S = 60.0
_ANNOUNCED = (Say.PREPARED, Say.READY, Say.LEFT, Say.BACK, Say.FAILED)


class PlayedServer:
    """A server process below the played supervisor."""

    def __init__(self, process: Forked, channel: Channel) -> None:
        self.process = process
        self.channel = channel

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class PlayedSupervisor:
    """Starts servers in one data directory, and tells them what a supervisor would."""

    def __init__(self, home: Path, settings: Settings) -> None:
        self._home = home
        self._settings: Settings = {"port": 0, "data": str(home / "data"), **settings}
        self._kept: dict[str, int] = {}
        self._servers: list[PlayedServer] = []
        self._opened = ExitStack()
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._servers:
            if each.process.poll() is None:
                each.kill()
            assert each.process.stdout is not None
            each.process.stdout.close()
            each.channel.close()
        self._opened.close()
        self._let_go()
        kill_orphans_in(self._home)

    def _let_go(self) -> None:
        for kept in self._kept.values():
            os.close(kept)

    def start(self) -> None:
        """Start a server that succeeds no other."""
        self.server = self._start(self._settings)
        self.url: str = self.hear(self.server)["url"]

    def stop_and_start(self) -> int:
        """Stop the server in order, and start another. Returns the exit code of the former."""
        self.server.process.terminate()
        code = self.server.process.wait(LIMIT_S)
        self.start()
        return code

    def prepare(self, **changed: Any) -> tuple[PlayedServer, dict[str, Any]]:
        """Start a successor, with changed settings. Returns it, and what it says."""
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._opened.enter_context(self._door)
        with theirs:
            successor = self._start({**self._settings, **changed}, theirs.fileno())
        return successor, self.hear(successor)

    def send_leave(self) -> None:
        with self._door:
            self.server.channel.send([self._door.fileno()], do=Do.LEAVE)

    def leave(self) -> dict[str, Any]:
        self.send_leave()
        return self.hear(self.server)

    def open(self, successor: PlayedServer) -> dict[str, Any]:
        successor.channel.send(do=Do.OPEN)
        return self.hear(successor)

    def take_back(self) -> dict[str, Any]:
        self.server.channel.send(do=Do.TAKE_BACK)
        return self.hear(self.server)

    def go(self, successor: PlayedServer) -> int:
        """The successor serves. Returns the exit code of the former server."""
        self.server.channel.send(do=Do.GO)
        former, self.server = self.server, successor
        return former.process.wait(LIMIT_S)

    def restart(self, **changed: Any) -> None:
        """All steps of a restart that succeeds."""
        successor, _ = self.prepare(**changed)
        said = self.leave()
        assert said["say"] == Say.LEFT, said
        said = self.open(successor)
        assert said["say"] == Say.READY, said
        assert said["url"] == self.url
        assert self.go(successor) == 0

    def hear(self, server: PlayedServer) -> dict[str, Any]:
        """Return the next thing that the server announces."""
        ends_at = time.monotonic() + LIMIT_S
        while (left_s := ends_at - time.monotonic()) > 0:
            select([server.channel], [], [], left_s)
            parcel = server.channel.receive()
            if parcel is None:
                continue
            if parcel.fields["say"] == Say.READY:
                self._let_go()
                self._kept = dict(zip(parcel.fields["names"], parcel.descriptors, strict=True))
            if parcel.fields["say"] in _ANNOUNCED:
                return parcel.fields
        raise TimeoutError("the server says nothing")

    def _start(self, settings: Settings, door: int | None = None) -> PlayedServer:
        ours, theirs = channel_pair()
        descriptor, name = tempfile.mkstemp(suffix=".toml", dir=self._home)
        os.close(descriptor)
        Path(name).write_text(as_toml(settings), "utf-8")
        with open(os.devnull, "wb") as nothing:
            process = start(
                *("tests.web.played_server", "serve", "--config", name),
                environment=environment(),
                cwd=ROOT,
                errors=nothing,
                given={VARIABLE: theirs.fileno()},
            )
        theirs.close()
        given = self._kept if door is None else {**self._kept, "door": door}
        about = {"names": [*given], "successor": door is not None, "first": True}
        about["stand_in"] = False
        ours.send([*given.values()], do=Do.START, **about)
        self._servers.append(server := PlayedServer(process, ours))
        return server
