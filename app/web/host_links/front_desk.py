"""Accepts connections of other hosts, and passes each on to the worker of the shard it is for.

It speaks no TLS: it has no more than the two bytes that come before, which it reads and no further.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast.supervisor.packets import PACKETS, PacketSocket
from holdfast.web.host_links import preamble

log = logging.getLogger(__name__)

# How many connections are accepted before other work runs.
_TURN: Final = 32
# How long a connection may take to say what it is for.
_SAYING_S: Final = 1.0
# How many may be about to. Beyond that, the oldest is closed: others say it at once.
_MOST_SILENT: Final = 256
# How long to stop accepting after the system has run out of resources.
_PAUSE_S: Final = 0.1


class FrontDesk:
    """Has the port of this host for links.

    Args:
        sockets: Listen there.
        place_of: Where the worker of a shard takes connections, if it is on this host.
        shards: How many shards the deployment has.
    """

    def __init__(
        self, sockets: Sequence[socket.socket], place_of: Callable[[int], Path], shards: int
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sockets, self._place_of, self._shards = sockets, place_of, shards
        # What has not said enough, oldest first: what it said, and when it is closed.
        self._silent: dict[socket.socket, tuple[bytes, asyncio.TimerHandle]] = {}
        self._is_accepting = False
        for each in sockets:
            each.setblocking(False)
        self.resume()

    def resume(self) -> None:
        """Accept connections, again after `pause`."""
        self._is_accepting = True
        for each in self._sockets:
            self._listen(each)

    def pause(self) -> None:
        """Accept no more: who connects waits for the process that accepts next."""
        self._is_accepting = False
        for each in self._sockets:
            self._loop.remove_reader(each)
        for each in [*self._silent]:
            self._drop(each)

    def close(self) -> None:
        """Accept no more, and close the sockets."""
        self.pause()
        for each in self._sockets:
            each.close()

    def _listen(self, listening: socket.socket) -> None:
        if self._is_accepting:
            self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_TURN):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # They stay in the backlog, so the loop would report the socket again and again.
                log.warning("cannot accept connections of other hosts: %s", error.strerror)
                self._loop.remove_reader(listening)
                self._loop.call_later(_PAUSE_S, self._listen, listening)
                return
            self._wait_for(connection)

    def _wait_for(self, connection: socket.socket) -> None:
        if len(self._silent) >= _MOST_SILENT:
            self._drop(next(iter(self._silent)))
        connection.setblocking(False)
        timer = self._loop.call_later(_SAYING_S, self._drop, connection)
        self._silent[connection] = b"", timer
        self._loop.add_reader(connection, self._read, connection)

    def _forget(self, connection: socket.socket) -> None:
        _, timer = self._silent.pop(connection)
        timer.cancel()
        self._loop.remove_reader(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._forget(connection)
        connection.close()

    def _read(self, connection: socket.socket) -> None:
        said, timer = self._silent[connection]
        try:
            data = connection.recv(preamble.SIZE - len(said))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        said += data
        if not data:
            self._drop(connection)
        elif len(said) < preamble.SIZE:
            self._silent[connection] = said, timer
        else:
            self._forget(connection)
            self._pass_on(connection, said)

    def _pass_on(self, connection: socket.socket, said: bytes) -> None:
        """Leave a connection to the worker. Without one, it is closed, and its door tries again."""
        with connection:
            shard = preamble.unpack(said)
            if shard >= self._shards:
                return
            with socket.socket(socket.AF_UNIX, PACKETS) as end, suppress(OSError):
                worker = PacketSocket(end, preamble.SIZE)
                end.connect(str(self._place_of(shard)))
                worker.send(said, [connection.fileno()])
