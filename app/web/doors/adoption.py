"""Takes the connections of the server before this one."""

import asyncio
import logging
import os
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.web.doors.adopted_lane import AdoptedLane
from holdfast.web.doors.preface import PARCEL, decode
from holdfast.web.front.listener import Listener

if TYPE_CHECKING:
    from holdfast.web.front.arrival import Arrival

log = logging.getLogger(__name__)

# How many parcels are taken before other work runs.
_TURN = 32
# With room for the text before the bytes of a connection.
_LONGEST_PARCEL = 4 * PARCEL


async def adopt(link: socket.socket, listeners: Mapping[str, Listener]) -> int:
    """Serve the connections that arrive over `link` until its end; returns their number.

    Closes `link`.
    """
    with link:
        link.setblocking(False)
        adoption = _Adoption(link, listeners)
        loop = asyncio.get_running_loop()
        loop.add_reader(link, adoption.take)
        try:
            await adoption.ended.wait()
        finally:
            loop.remove_reader(link)
            adoption.forget()
    log.info("took over %d connections of the server before", adoption.adopted)
    return adoption.adopted


class _Adoption:
    """The state of an adoption: the connection whose bytes have not all arrived."""

    def __init__(self, link: socket.socket, listeners: Mapping[str, Listener]) -> None:
        self._link = link
        self._listeners = listeners
        self._arrival: Arrival | None = None
        self._connection: socket.socket | None = None
        self._read = bytearray()
        self._missing = 0
        self.adopted = 0
        self.ended = asyncio.Event()

    def take(self) -> None:
        """Take the parcels that have arrived."""
        for _ in range(_TURN):
            try:
                parcel, descriptors, _, _ = socket.recv_fds(self._link, _LONGEST_PARCEL, 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                log.warning("the server before hands over no more connections: %s", error)
                self.ended.set()
                return
            if not parcel:
                self.ended.set()
                return
            self._take(parcel, descriptors)

    def forget(self) -> None:
        """Drop a connection of which not everything has arrived."""
        self._arrival = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _take(self, parcel: bytes, descriptors: Sequence[int]) -> None:
        if self._missing:
            read = parcel
        else:
            self.forget()
            try:
                self._arrival, self._missing, read = decode(parcel)
            except ValueError as error:
                # Of a release that tells other things.
                log.warning("a connection of the server before is lost: %s", error)
                for each in descriptors:
                    os.close(each)
                return
            self._read = bytearray()
            if descriptors:
                self._connection = socket.socket(fileno=descriptors[0])
            else:
                # The limit of open files: the kernel has closed it.
                log.warning("a connection of the server before could not be taken over")
        self._read += read
        self._missing -= len(read)
        if not self._missing:
            self._adopt()

    def _adopt(self) -> None:
        arrival, self._arrival = self._arrival, None
        connection, self._connection = self._connection, None
        if arrival is None or connection is None:
            return
        listener = self._listeners.get(arrival.listener)
        if listener is None or not _is_connected(connection):
            connection.close()
            return
        adopted = listener.adopt(connection, partial(AdoptedLane, arrival, bytes(self._read)))
        if adopted is not None:
            adopted.claim_place()
            self.adopted += 1


def _is_connected(connection: socket.socket) -> bool:
    """Return whether the client is known: without an address it would be taken for this machine."""
    try:
        connection.getpeername()
    except OSError:
        return False
    return True
