"""Takes connections from sockets that listen, as long as there is room for them."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial

from app.web.room import Room

log = logging.getLogger(__name__)

# So many are taken from one socket before others have their turn.
_TURN = 64
# So many of those for which others have to leave: these keep their descriptors for a few turns.
_CROWD = 8
# How long nobody is taken when the system has nothing left for a connection.
_PAUSE_S = 0.1

_Making = asyncio.Task[tuple[asyncio.Transport, asyncio.Protocol]]


class Acceptor:
    """Connections of one listener: each gets a protocol, if the room has a place for it.

    asyncio's own server would take all that come, also those that never finish their TLS
    handshake: each holds a descriptor before its protocol hears of it.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make: Callable[[], asyncio.Protocol],
        room: Room,
        *,
        tls: ssl.SSLContext | None,
        handshake_timeout_s: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._make = make
        self._room = room
        self._tls = tls
        self._handshake_timeout_s = None if tls is None else handshake_timeout_s
        # Connections that are being made.
        self._making: set[_Making] = set()
        self._is_closed = False
        for each in sockets:
            each.setblocking(False)
            self._listen(each)

    def close(self) -> None:
        """Take nobody any more; who is in stays."""
        if not self._is_closed:
            self._is_closed = True
            for each in self._sockets:
                self._loop.remove_reader(each)
                each.close()
            for task in self._making:
                task.cancel()

    def _listen(self, listening: socket.socket) -> None:
        if not self._is_closed:
            self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(min(_TURN, max(self._room.free, _CROWD))):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # They stay where they are, and the loop would be told of them again and again.
                log.warning("no connection can be taken: %s", error.strerror)
                self._loop.remove_reader(listening)
                self._loop.call_later(_PAUSE_S, self._listen, listening)
                return
            if self._room.has_place():
                connection.setblocking(False)
                self._let_in(connection)
            else:
                connection.close()

    def _let_in(self, connection: socket.socket) -> None:
        guest = self._make()
        making = self._loop.create_task(
            self._loop.connect_accepted_socket(
                lambda: guest,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=self._handshake_timeout_s,
            )
        )
        self._making.add(making)
        making.add_done_callback(partial(self._note_made, guest, connection))
        self._room.enter(guest, partial(_send_away, guest, making))

    def _note_made(
        self, guest: asyncio.Protocol, connection: socket.socket, making: _Making
    ) -> None:
        self._making.discard(making)
        error = None if making.cancelled() else making.exception()
        if error is None and not making.cancelled():
            return
        # It does not speak TLS, takes too long for it, is gone, or was sent away.
        self._room.leave(guest)
        connection.close()
        if error is not None and not isinstance(error, OSError):
            log.error("a connection could not be made", exc_info=error)


def _send_away(guest: asyncio.Protocol, making: _Making) -> None:
    making.cancel()
    transport = getattr(guest, "transport", None)
    if transport is not None:
        transport.abort()


def listen_at(ips: Sequence[str], port: int, backlog: int) -> list[socket.socket]:
    """A socket for each address, all with the same port; raises `OSError`."""
    sockets: list[socket.socket] = []
    try:
        for ip in ips:
            family = socket.AF_INET6 if ":" in ip else socket.AF_INET
            # A name with several addresses has a free port at each, but one URL.
            port = sockets[0].getsockname()[1] if sockets else port
            sockets.append(socket.create_server((ip, port), family=family, backlog=backlog))
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets
