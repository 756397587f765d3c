"""The socket over which a server that leaves hands its connections to its successor."""

import asyncio
import socket
from collections.abc import Sequence

from holdfast.supervisor.packets import PacketSocket, PeerBehind
from holdfast.web.doors.preface import LONGEST

# When the kernel has too many descriptors on their way: try again after the successor took some.
_RETRY_S = 0.01


class Door:
    """Sends packets to the successor. `close` closes its socket."""

    def __init__(self, link: socket.socket) -> None:
        self._link = PacketSocket(link, LONGEST)
        self._loop = asyncio.get_running_loop()
        self._is_crowded = False

    def try_to_send(self, packet: bytes, descriptors: Sequence[int] = ()) -> bool:
        """Send a packet. Returns False if there is no room now. Raises `OSError` if it broke."""
        try:
            self._link.send(packet, descriptors)
        except PeerBehind as error:
            self._is_crowded = error.is_crowded
            return False
        return True

    async def until_room(self) -> None:
        """Wait until there may be room for a packet."""
        if self._is_crowded:
            self._is_crowded = False
            await asyncio.sleep(_RETRY_S)
            return
        ready = asyncio.Event()
        self._loop.add_writer(self._link, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_writer(self._link)

    async def send(self, packet: bytes) -> None:
        """Send a packet when there is room."""
        while not self.try_to_send(packet):
            await self.until_room()

    def close(self) -> None:
        """Let the successor see that nothing more comes."""
        self._link.close()
