"""Takes the connections of the server before this one."""

import asyncio
import logging
import socket
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from holdfast.supervisor.packets import Packet, PacketRefused, PacketSocket, PeerGone
from holdfast.web.doors.adopted_lane import AdoptedLane
from holdfast.web.doors.preface import LONGEST, decode
from holdfast.web.front.listener import Listener
from holdfast.web.tasks import cancel

if TYPE_CHECKING:
    from holdfast.web.front.arrival import Arrival

log = logging.getLogger(__name__)

# How many packets are taken before other work runs.
_TURN = 32


async def adopt(link: socket.socket, listeners: Mapping[str, Listener]) -> int:
    """Serve the connections that arrive over `link` until its end; returns their number.

    Closes `link`.
    """
    packets = PacketSocket(link, LONGEST)
    adoption = _Adoption(packets, listeners)
    loop = asyncio.get_running_loop()
    loop.add_reader(packets, adoption.take)
    try:
        await adoption.ended.wait()
    finally:
        loop.remove_reader(packets)
        adoption.forget()
        packets.close()
    log.info("took over %d connections of the server before", adoption.adopted)
    return adoption.adopted


class Adopting:
    """Takes the connections of other processes of this host, each of which has a link."""

    def __init__(self, listeners: Mapping[str, Listener]) -> None:
        self._listeners = listeners
        self._tasks = set[asyncio.Task[int]]()

    def begin(self, link: socket.socket) -> None:
        """Take those that arrive over `link`."""
        task = asyncio.create_task(adopt(link, self._listeners))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Take no more."""
        for task in [*self._tasks]:
            await cancel(task)


class _Adoption:
    """The state of an adoption: the connection whose bytes have not all arrived."""

    def __init__(self, link: PacketSocket, listeners: Mapping[str, Listener]) -> None:
        self._link = link
        self._listeners = listeners
        self._arrival: Arrival | None = None
        self._connection: socket.socket | None = None
        self._read = bytearray()
        self._missing = 0
        self.adopted = 0
        self.ended = asyncio.Event()

    def take(self) -> None:
        """Take the packets that have arrived."""
        for _ in range(_TURN):
            try:
                packet = self._link.receive()
            except PeerGone:
                self.ended.set()
                return
            except PacketRefused as error:
                # Of a release that tells more.
                log.warning("a connection of the server before is lost: %s", error)
                self._missing = 0
                continue
            if packet is None:
                return
            self._take(packet)

    def forget(self) -> None:
        """Drop a connection of which not everything has arrived."""
        self._arrival = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _take(self, packet: Packet) -> None:
        if self._missing:
            read = packet.data
        else:
            self.forget()
            try:
                self._arrival, self._missing, read = decode(packet.data)
            except ValueError as error:
                # Of a release that tells other things.
                log.warning("a connection of the server before is lost: %s", error)
                packet.close()
                return
            self._read = bytearray()
            if packet.descriptors:
                self._connection = socket.socket(fileno=packet.descriptors[0])
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
