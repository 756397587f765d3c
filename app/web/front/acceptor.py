"""Accepts connections while the listener has room for them."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial

from holdfast.web.front.connection_limit import ConnectionLimit

log = logging.getLogger(__name__)

# How many connections are accepted from one socket before other work runs: to set one up takes a
# tenth of a millisecond, most of it in the next turn.
_TURN = 24
# The same at the limit, where each connection evicts another: descriptors are freed some turns
# later.
_CROWD = 8
# How long to stop accepting after the system has run out of resources for connections.
_PAUSE_S = 0.1

_Making = asyncio.Task[tuple[asyncio.Transport, asyncio.Protocol]]


class Acceptor:
    """Accepts the connections of one listener, within its connection limit.

    asyncio's server has no limit: a connection in its TLS handshake holds a descriptor before the
    protocol knows about it.
    """

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        make: Callable[[], asyncio.Protocol],
        room: ConnectionLimit,
        *,
        tls: ssl.SSLContext | None,
        handshake_timeout_s: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sockets = sockets
        self._make = make
        self._room = room
        # May be replaced: connections that are accepted later use it.
        self.tls = tls
        self._handshake_timeout_s = handshake_timeout_s
        # Connections whose transport is being set up.
        self._making: dict[_Making, asyncio.Protocol] = {}
        self._is_closed = self._is_paused = False
        for each in sockets:
            each.setblocking(False)
            self._listen(each)

    def pause(self) -> None:
        """Stop accepting for now. Clients that connect wait."""
        self._is_paused = True
        for each in self._sockets:
            self._loop.remove_reader(each)

    def resume(self) -> None:
        """Accept again."""
        self._is_paused = False
        for each in self._sockets:
            self._listen(each)

    @property
    def is_accepting(self) -> bool:
        """Whether connections of clients are accepted now."""
        return not (self._is_closed or self._is_paused)

    @property
    def is_settling(self) -> bool:
        """Whether some accepted connections are not set up."""
        return bool(self._making)

    async def settled(self) -> None:
        """Wait until all accepted connections are set up, or are lost."""
        if self._making:
            await asyncio.wait(self._making)

    def adopt(self, connection: socket.socket, guest: asyncio.Protocol) -> bool:
        """Let in a connection that another process has accepted. Returns False without room."""
        if not self._room.has_place():
            connection.close()
            return False
        connection.setblocking(False)
        self._let_in(connection, guest, tls=None)
        return True

    def close(self) -> None:
        """Stop accepting. Open connections stay."""
        if not self._is_closed:
            self._is_closed = True
            for each in self._sockets:
                self._loop.remove_reader(each)
                each.close()
            for making, guest in self._making.items():
                if _transport_of(guest) is None:
                    making.cancel()

    def _listen(self, listening: socket.socket) -> None:
        if not self._is_closed and not self._is_paused:
            self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(min(_TURN, max(self._room.free, _CROWD))):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                # They stay in the backlog, so the loop would report the socket again and again.
                log.warning("cannot accept connections: %s", error.strerror)
                self._loop.remove_reader(listening)
                self._loop.call_later(_PAUSE_S, self._listen, listening)
                return
            if self._room.has_place():
                connection.setblocking(False)
                self._let_in(connection, self._make(), tls=self.tls)
            else:
                connection.close()

    def _let_in(
        self, connection: socket.socket, guest: asyncio.Protocol, *, tls: ssl.SSLContext | None
    ) -> None:
        making = self._loop.create_task(
            self._loop.connect_accepted_socket(
                lambda: guest,
                connection,
                ssl=tls,
                ssl_handshake_timeout=None if tls is None else self._handshake_timeout_s,
            )
        )
        self._making[making] = guest
        making.add_done_callback(partial(self._note_made, guest, connection))
        self._room.enter(guest, partial(_send_away, guest, making))

    def _note_made(
        self, guest: asyncio.Protocol, connection: socket.socket, making: _Making
    ) -> None:
        del self._making[making]
        error = None if making.cancelled() else making.exception()
        if error is None and not making.cancelled():
            return
        # The TLS handshake failed or timed out, the client left, or it was evicted.
        self._room.leave(guest)
        connection.close()
        if error is not None and not isinstance(error, OSError):
            log.error("a connection could not be set up", exc_info=error)


def _send_away(guest: asyncio.Protocol, making: _Making) -> None:
    transport = _transport_of(guest)
    if transport is None:
        making.cancel()
    else:
        transport.abort()


def _transport_of(guest: asyncio.Protocol) -> asyncio.WriteTransport | None:
    """Return the transport that a guest already has.

    Such a guest may have begun to answer. Cancelling its task would close the transport under it,
    and uvloop would not even report that: it neither calls `connection_lost` nor is `is_closing`
    true.
    """
    return getattr(guest, "transport", None)
