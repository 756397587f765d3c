"""From sockets to the application, through the fast lane or not, and an orderly end."""

import asyncio
import logging
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from app.web import unix_socket
from app.web.endpoint import Endpoint
from app.web.fast_lane import FastLane, Lane, is_supported
from app.web.heads import Heads

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


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: a Unix socket if one is named, else host and port."""

    host: str
    port: int
    unix: Path | None = None
    tls: ssl.SSLContext | None = None


class Listener:
    """Accepts connections for an application."""

    def __init__(
        self, application: web.Application, address: Address, *, shutdown_timeout_s: float
    ) -> None:
        self._address = address
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
        self._server: asyncio.Server | None = None
        self._place: unix_socket.Place | None = None

    async def open(self, endpoint: Endpoint, heads: Heads) -> str:
        """Listen; returns the URL by which the server is reached."""
        await self._runner.setup()
        manager = cast("web.Server", self._runner.server)
        factory: Callable[[], asyncio.BaseProtocol] = manager
        if is_supported():
            factory = Lane(endpoint, heads, manager)
        address = self._address
        if address.unix is not None:
            unix_socket.check_free(address.unix)
            self._server = await asyncio.get_running_loop().create_unix_server(
                factory, str(address.unix), ssl=address.tls, backlog=_BACKLOG
            )
            self._place = unix_socket.Place(address.unix)
            return f"unix:{address.unix}"
        self._server = await self._bind(factory, address.port)
        port = self._server.sockets[0].getsockname()[1]
        if address.port == 0 and len(self._server.sockets) > 1:
            # A name with several addresses has a free port at each, but one URL.
            self._server.close()
            self._server = await self._bind(factory, port)
        host = f"[{address.host}]" if ":" in address.host else address.host
        return f"{'https' if address.tls else 'http'}://{host}:{port}"

    async def _bind(
        self, factory: "Callable[[], asyncio.BaseProtocol]", port: int
    ) -> asyncio.Server:
        address = self._address
        return await asyncio.get_running_loop().create_server(
            factory, address.host, port, ssl=address.tls, backlog=_BACKLOG
        )

    def stop_accepting(self) -> None:
        """Nobody new comes in; those who are here stay."""
        if self._place is not None:
            self._place.give_up()
            self._place = None
        if self._server is not None:
            self._server.close()

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
