"""From sockets to the application, through the fast lane or not, and an orderly end."""

import asyncio
import logging
from typing import TYPE_CHECKING, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from app.web import unix_socket
from app.web.acceptor import Acceptor, listen_at
from app.web.addresses import Address
from app.web.endpoint import Endpoint
from app.web.fast_lane import FastLane, Lane, is_supported
from app.web.heads import Heads
from app.web.room import Boundless, Room

if TYPE_CHECKING:
    from collections.abc import Callable

# Idle connections are closed after this; browsers open a new one without a word.
_KEEPALIVE_S = 75.0
# How long the rest of a refused body is read and thrown away, so that the client sees the answer.
_LINGER_S = 2.0
_BACKLOG = 4096


_OF_CLIENTS = (
    HttpProcessingError,
    web.RequestPayloadError,
    ConnectionResetError,
    BrokenPipeError,
)


class _OurFaults(logging.Filter):
    """Faults of ours alone: a client's are answered, and may have a cookie in them.

    Who is gone before the answer has done nothing wrong.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        fault = record.exc_info[1] if record.exc_info else None
        return not isinstance(fault, _OF_CLIENTS)


_log = logging.getLogger("app.web.http")
_log.addFilter(_OurFaults())


class Listener:
    """Accepts connections for an application, as many as its room has places for."""

    def __init__(
        self,
        application: web.Application,
        address: Address,
        room: Room,
        *,
        shutdown_timeout_s: float,
    ) -> None:
        self._address = address
        self._room = room
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_log,
            handler_cancellation=True,
            keepalive_timeout=_KEEPALIVE_S,
            lingering_time=_LINGER_S,
            # Whoever reads a body decodes it; nobody reads what is thrown away.
            auto_decompress=False,
            shutdown_timeout=shutdown_timeout_s,
        )
        self._acceptor: Acceptor | None = None
        self._place: unix_socket.Place | None = None

    async def open(self, endpoint: Endpoint, heads: Heads, *, has_bayeux: bool = True) -> str:
        """Listen; returns the URL by which the server is reached."""
        await self._runner.setup()
        manager = cast("web.Server", self._runner.server)
        factory: Callable[[], asyncio.Protocol] = manager
        room: Room = Boundless()
        if is_supported():
            room = self._room
            factory = Lane(endpoint, heads, manager, room, has_bayeux=has_bayeux)
        address = self._address
        if address.unix is None:
            sockets = listen_at(address.ips or [address.host], address.port, _BACKLOG)
        else:
            sockets = [unix_socket.listen_at(address.unix, _BACKLOG)]
            self._place = unix_socket.Place(address.unix)
        self._acceptor = Acceptor(
            sockets,
            factory,
            room,
            tls=address.tls,
            handshake_timeout_s=endpoint.options.request_timeout_s,
        )
        if address.unix is not None:
            return f"unix:{address.unix}"
        scheme, port = "https" if address.tls else "http", sockets[0].getsockname()[1]
        return f"{scheme}://{address.url_host}:{port}"

    def stop_accepting(self) -> None:
        """Nobody new comes in; those who are here stay."""
        if self._place is not None:
            self._place.give_up()
            self._place = None
        if self._acceptor is not None:
            self._acceptor.close()

    async def drain(self) -> None:
        """Wait until all that was said has left."""
        server = self._runner.server
        connections = server.connections if server is not None else []
        lanes = [each for each in connections if isinstance(each, FastLane)]
        await asyncio.gather(*(each.drain() for each in lanes), return_exceptions=True)

    async def close(self) -> None:
        """Let what is under way end, but not for ever; then close every connection."""
        self.stop_accepting()
        await self._runner.cleanup()
