"""Relays the bytes of TLS connections between their clients and the successor.

The keys of such a connection cannot leave the process. So the successor gets one end of a pair of
sockets in its place.
"""

import asyncio
import logging
import socket
from contextlib import suppress
from typing import cast

from holdfast.web.front.fast_lane import FastLane

log = logging.getLogger(__name__)


class Relays:
    """The relayed connections of a server that leaves."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open: set[_Side] = set()
        self._making: set[asyncio.Task[None]] = set()
        self._none_left = asyncio.Event()
        self._none_left.set()
        self.count = 0

    def begin(self, connection: FastLane, link: socket.socket) -> None:
        """Relay a connection over `link` to the process that has its other end."""
        client = connection.transport
        if client is None:
            link.close()
            return
        self.count += 1
        self._none_left.clear()
        side = _Side(self)
        self._open.add(side)
        side.connection_made(client)
        client.set_protocol(side)
        # Its former protocol must not close it.
        connection.transport = None
        connection.connection_lost(None)
        making = self._loop.create_task(self._connect(side, link))
        self._making.add(making)
        making.add_done_callback(self._making.discard)

    async def ended(self, limit_s: float) -> None:
        """Wait until no relay is left; after this time, end them."""
        with suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                await self._none_left.wait()
        for each in list(self._open):
            each.end()

    def note_ended(self, side: "_Side") -> None:
        """Record that a client's connection is over."""
        self._open.discard(side)
        if not self._open:
            self._none_left.set()

    async def _connect(self, client: "_Side", link: socket.socket) -> None:
        link.setblocking(False)
        server = _Side(None)
        # What the successor has written by now may be read before this continues.
        server.lead_to(client)
        try:
            await self._loop.connect_accepted_socket(lambda: server, link)
        except OSError as error:
            log.warning("a connection cannot be relayed: %s", error)
            link.close()
            client.end()
            return
        client.join(server)


class _Side(asyncio.Protocol):
    """One side of a relay."""

    def __init__(self, relays: Relays | None) -> None:
        self._relays = relays
        self._transport: asyncio.Transport | None = None
        self._other: _Side | None = None
        self._is_lost = False

    def lead_to(self, other: "_Side") -> None:
        """Pass on to the other side what is read from now on."""
        self._other = other

    def join(self, other: "_Side") -> None:
        """Relay between this side, which is not read yet, and another one, which leads to it."""
        self.lead_to(other)
        if self._is_lost or other._is_lost:
            self.end()
            other.end()
        elif self._transport is not None:
            self._transport.resume_reading()

    def end(self) -> None:
        """Close this side when it has read everything."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's are no subclasses.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.write(data)

    def pause_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None and self._other._transport is not None:
            self._other._transport.resume_reading()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._is_lost = True
        if self._other is not None:
            self._other.end()
        if self._relays is not None:
            self._relays.note_ended(self)
