"""The socket over which a server that leaves hands its connections to its successor."""

import asyncio
import errno
import socket
from collections.abc import Sequence

# When the kernel has too many descriptors on their way: try again after the successor took some.
_RETRY_S = 0.01
_CROWDED = (errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM)


class Door:
    """Sends parcels over a `SOCK_SEQPACKET`, which `close` closes."""

    def __init__(self, link: socket.socket) -> None:
        link.setblocking(False)
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._is_crowded = False

    def try_to_send(self, parcel: bytes, descriptors: Sequence[int] = ()) -> bool:
        """Send a parcel. Returns False if there is no room now. Raises `OSError` if it broke."""
        try:
            if descriptors:
                socket.send_fds(self._link, [parcel], descriptors)
            else:
                self._link.send(parcel)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._is_crowded = error.errno in _CROWDED
            if self._is_crowded:
                return False
            raise
        return True

    async def until_room(self) -> None:
        """Wait until there may be room for a parcel."""
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

    async def send(self, parcel: bytes) -> None:
        """Send a parcel when there is room."""
        while not self.try_to_send(parcel):
            await self.until_room()

    def close(self) -> None:
        """Let the successor see that nothing more comes."""
        self._link.close()
