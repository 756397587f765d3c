"""Over which a worker gives connections to another one."""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.supervisor.packets import PACKETS, PacketRefused, PacketSocket, PeerBehind, PeerGone
from holdfast.web.doors.preface import encode
from holdfast.web.front.arrival import Arrival
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.giving.parting import part
from holdfast.web.giving.taker import TAKEN

# How many connections may be on their way. The answers to all fit the buffer of the socket.
MOST_UNDER_WAY: Final = 64
# How long a worker that does not take connections is left alone.
_PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Given:
    """A connection on its way."""

    # A descriptor of it that stays here until the other worker has answered.
    descriptor: int
    arrival: Arrival
    # What was read and not handled.
    read: bytes


class GivingLink:
    """The way to one other worker, which is made when there is something to give.

    A connection is handled here or there, never at both: what that worker has not answered when it
    ends, it has not touched.

    Args:
        path: Where that worker takes connections.
        take_back: Called with what it has not taken.
    """

    def __init__(self, path: Path, take_back: Callable[[Given], None]) -> None:
        self._path = path
        self._take_back = take_back
        self._loop = asyncio.get_running_loop()
        self._link: PacketSocket | None = None
        self._under_way: deque[Given] = deque()
        self._next_attempt = 0.0
        # How many connections that worker has taken.
        self.taken = 0

    @property
    def is_settled(self) -> bool:
        """Whether everything given is answered."""
        return not self._under_way

    def give(self, connection: FastLane, arrival: Arrival, read: bytes) -> bool:
        """Give a connection, with what was read and not handled. Returns False if it stays."""
        transport = connection.transport
        link = self._link or self._connected()
        if transport is None or link is None or len(self._under_way) >= MOST_UNDER_WAY:
            return False
        first, *later = encode(arrival, read)
        if later:
            return False
        try:
            descriptor = os.dup(transport.get_extra_info("socket").fileno())
        except OSError:
            return False
        try:
            link.send(first, [descriptor])
        except (PeerBehind, PeerGone):
            # Too many are on their way, or that worker has ended, which reading will tell.
            os.close(descriptor)
            return False
        self._under_way.append(Given(descriptor, arrival, read))
        part(connection)
        return True

    def _connected(self) -> PacketSocket | None:
        now = self._loop.time()
        if now < self._next_attempt:
            return None
        self._next_attempt = now + _PAUSE_S
        try:
            end = socket.socket(socket.AF_UNIX, PACKETS)
        except OSError:
            return None
        link = PacketSocket(end, len(TAKEN))
        try:
            end.connect(str(self._path))
        except OSError:
            link.close()
            return None
        self._link = link
        self._loop.add_reader(link, self._hear, link)
        return link

    def _hear(self, link: PacketSocket) -> None:
        try:
            while (answer := link.receive()) is not None:
                if self._under_way:
                    self._settle(self._under_way.popleft(), is_taken=answer.data == TAKEN)
        except (PeerGone, PacketRefused):
            self._lose()

    def _settle(self, given: Given, *, is_taken: bool) -> None:
        if is_taken:
            self.taken += 1
            with suppress(OSError):
                os.close(given.descriptor)
        else:
            self._take_back(given)

    def _lose(self) -> None:
        self._disconnect()
        while self._under_way:
            self._take_back(self._under_way.popleft())

    def _disconnect(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._loop.remove_reader(link)
            link.close()

    def close(self) -> None:
        """Give nothing more. What is on its way belongs to the other worker, if it takes it."""
        self._disconnect()
        while self._under_way:
            os.close(self._under_way.popleft().descriptor)
