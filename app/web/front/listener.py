"""Connects sockets to the application, and closes them in order."""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar, cast

from aiohttp import web

from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.answering.heads import Heads
from holdfast.web.front.acceptor import Acceptor
from holdfast.web.front.connection_limit import ConnectionLimit, NoConnectionLimit
from holdfast.web.front.connection_parts import ConnectionParts, GivesFirst
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.front.http_faults import log_of_http
from holdfast.web.http.addresses import Address, SocketFile
from holdfast.web.http.aiohttp_parts import is_supported

# Idle connections are closed after this; browsers reopen them silently.
_KEEPALIVE_S = 75.0
# How long the rest of a refused body is read and dropped, so that the client reads the response.
_LINGER_S = 2.0


Adopted = TypeVar("Adopted", bound=FastLane)


class Listener:
    """Accepts connections for an application, within its connection limit."""

    def __init__(
        self,
        application: web.Application,
        address: Address,
        room: ConnectionLimit,
        *,
        shutdown_timeout_s: float,
    ) -> None:
        self._address = address
        self._room = room
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=log_of_http,
            handler_cancellation=True,
            keepalive_timeout=_KEEPALIVE_S,
            lingering_time=_LINGER_S,
            # The handlers decode bodies themselves, and do not decode what they drop.
            auto_decompress=False,
            shutdown_timeout=shutdown_timeout_s,
        )
        self._is_closed = False
        self._acceptor: Acceptor | None = None
        self._parts: ConnectionParts | None = None
        self._place: SocketFile | None = None

    async def open(
        self,
        sockets: Sequence[socket.socket],
        endpoint: Endpoint,
        heads: Heads,
        *,
        has_bayeux: bool = True,
    ) -> str:
        """Accept connections at these listening sockets; returns the server's URL."""
        await self._runner.setup()
        manager = cast("web.Server", self._runner.server)
        factory: Callable[[], asyncio.Protocol] = manager
        room: ConnectionLimit = NoConnectionLimit()
        if is_supported():
            room = self._room
            parts = ConnectionParts(endpoint, heads, manager, room, has_bayeux=has_bayeux)
            self._parts, factory = parts, partial(FastLane, parts)
        address = self._address
        if address.unix is not None:
            self._place = SocketFile(address.unix)
        self._acceptor = Acceptor(
            sockets,
            factory,
            room,
            tls=address.tls,
            handshake_timeout_s=endpoint.options.request_timeout_s,
        )
        return address.url(sockets[0])

    def pause_accepting(self) -> None:
        """Stop accepting connections for now: clients that connect wait."""
        if self._acceptor is not None:
            self._acceptor.pause()

    def resume_accepting(self) -> None:
        """Accept connections again."""
        if self._acceptor is not None:
            self._acceptor.resume()

    def use_tls(self, tls: ssl.SSLContext) -> None:
        """Use this certificate for connections that are accepted from now on."""
        if self._acceptor is not None and self.has_tls:
            self._acceptor.tls = tls

    def leave_place(self) -> None:
        """Leave the file of a Unix socket at the end, because another process listens there."""
        self._place = None

    @property
    def has_tls(self) -> bool:
        """Whether its connections use TLS."""
        return self._acceptor is not None and self._acceptor.tls is not None

    @property
    def is_settling(self) -> bool:
        """Whether some accepted connections are not set up."""
        return self._acceptor is not None and self._acceptor.is_settling

    async def settled(self) -> None:
        """Wait until all accepted connections are set up, or are lost."""
        if self._acceptor is not None:
            await self._acceptor.settled()

    def adopt(
        self, connection: socket.socket, make: Callable[[ConnectionParts], Adopted]
    ) -> Adopted | None:
        """Serve a connection that another process has accepted; or close it, and return None."""
        if self._acceptor is None or self._parts is None:
            connection.close()
            return None
        made = make(self._parts)
        return made if self._acceptor.adopt(connection, made) else None

    def give_first_by(self, gives_first: GivesFirst) -> None:
        """Ask this about the first bytes of each connection: whether another worker has it now."""
        if self._parts is not None:
            self._parts.gives_first = gives_first

    @property
    def has_room(self) -> bool:
        """Whether it adopts a connection without closing another one."""
        acceptor = self._acceptor
        is_open = acceptor is not None and acceptor.is_accepting and self._parts is not None
        return is_open and self._room.free > 0

    def is_kept(self, connection: FastLane) -> bool:
        """Return whether a connection has a claim to its place."""
        return self._room.is_kept(connection)

    def lanes(self) -> list[FastLane]:
        """Return all open connections."""
        server = self._runner.server
        connections = server.connections if server is not None else []
        return [each for each in connections if isinstance(each, FastLane)]

    def stop_accepting(self) -> None:
        """Stop accepting connections. Open ones stay."""
        if self._place is not None:
            self._place.give_up()
            self._place = None
        if self._acceptor is not None:
            self._acceptor.close()

    async def drain(self) -> None:
        """Wait until everything written has left."""
        await asyncio.gather(*(each.drain() for each in self.lanes()), return_exceptions=True)

    async def close(self) -> None:
        """Give requests in progress a limited time to finish, then close every connection; once."""
        self.stop_accepting()
        if not self._is_closed:
            self._is_closed = True
            await self._runner.cleanup()
