"""Packets that processes of one machine send each other: each whole, with file descriptors."""

import errno
import os
import socket
import sys
from collections.abc import Sequence
from typing import Final, NamedTuple

# macOS has no such sockets. Its datagrams between two processes are as reliable.
PACKETS: Final = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
# When too many descriptors are in sockets that are not read yet.
_CROWDED: Final = (errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM)


class PeerGone(ConnectionError):
    """The process at the other end has closed its end, or died."""


class PeerBehind(ConnectionError):
    """The other end reads too slowly: no packet fits in now. This one was not sent."""

    def __init__(self, why: str, *, is_crowded: bool = False) -> None:
        super().__init__(why)
        # Whether it is not for want of room in this socket: it may be writable all the time.
        self.is_crowded = is_crowded


class PacketRefused(ValueError):
    """A packet is larger than any that its reader takes, or is of another form."""


def close_all(descriptors: list[int]) -> None:
    """Close these descriptors, and forget them."""
    while descriptors:
        os.close(descriptors.pop())


class Packet(NamedTuple):
    """What was received; the descriptors belong to the receiver, who must close them."""

    data: bytes
    descriptors: list[int]
    # Whether some of its descriptors were closed: this process may open no more files.
    lacks_some: bool = False

    def close(self) -> None:
        """Close its descriptors."""
        close_all(self.descriptors)


class PacketSocket:
    """One end of a connection that keeps packets apart; it never waits.

    Where it is readable (`fileno`, for a selector or `loop.add_reader`), call `receive` until it
    returns None.

    Args:
        end: A socket of the kind `PACKETS`, which `close` closes.
        largest: How many bytes a packet that it receives may have.
        most: How many descriptors.
    """

    def __init__(self, end: socket.socket, largest: int, most: int = 1) -> None:
        self._end = end
        self._largest = largest
        self._most = most
        end.setblocking(False)

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, data: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a packet with duplicates of the descriptors; the sender still owns its own.

        Raises `PeerBehind` and `PeerGone`.
        """
        try:
            if descriptors:
                socket.send_fds(self._end, [data], descriptors)
            else:
                self._end.send(data)
        except (BlockingIOError, InterruptedError) as error:
            raise PeerBehind("the other process does not read what is sent to it") from error
        except OSError as error:
            if error.errno in _CROWDED:
                raise PeerBehind(f"{error.strerror}", is_crowded=True) from error
            raise PeerGone(f"the other process has gone: {error.strerror}") from error

    def receive(self) -> Packet | None:
        """Return the next packet, or None if there is none yet.

        Raises `PeerGone` at the end, and `PacketRefused`.
        """
        received = self._received()
        if received is None:
            return None
        data, descriptors, flags = received
        for each in descriptors:
            os.set_inheritable(each, False)
        packet = Packet(data, descriptors, lacks_some=bool(flags & socket.MSG_CTRUNC))
        if data and not flags & socket.MSG_TRUNC:
            return packet
        packet.close()
        if data:
            raise PacketRefused("a packet is larger than any that may be sent")
        raise PeerGone("the other process has gone")

    def _received(self) -> tuple[bytes, list[int], int] | None:
        for is_last in (False, True):
            try:
                data, descriptors, flags, _ = socket.recv_fds(self._end, self._largest, self._most)
            except (BlockingIOError, InterruptedError):
                if is_last:
                    break
                return None
            except ConnectionResetError:
                # The other end went without reading all that we sent. Linux says so ahead of what
                # it had sent before, its last words among them.
                continue
            except OSError as error:
                raise PeerGone(f"the other process has gone: {error.strerror}") from error
            return data, descriptors, flags
        raise PeerGone("the other process has gone without reading all that was sent to it")

    def close(self) -> None:
        self._end.close()
