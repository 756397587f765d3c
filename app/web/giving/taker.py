"""Takes connections that other workers give, and says which."""

import asyncio
import socket
from contextlib import suppress
from functools import partial
from typing import Final

from holdfast.supervisor.packets import (
    Packet,
    PacketRefused,
    PacketSocket,
    PeerBehind,
    PeerGone,
)
from holdfast.web.doors.adopted_lane import AdoptedLane, GivenLane
from holdfast.web.doors.preface import LONGEST, decode
from holdfast.web.front.arrival import Arrival
from holdfast.web.front.listener import Listener

# How many packets of a worker are taken before other work runs.
_TURN: Final = 32
# What a worker says about each connection, in order.
TAKEN: Final = b"+"
REFUSED: Final = b"-"


def lane_of(arrival: Arrival) -> type[GivenLane]:
    """Return what goes on with a connection."""
    return GivenLane if arrival.socket is None else AdoptedLane


class Taker:
    """Takes connections for a listener, unless it is full or accepts no more."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._listening: socket.socket | None = None
        self._links: set[PacketSocket] = set()

    def open(self, listening: socket.socket) -> None:
        """Take what workers send that connect to this `SOCK_SEQPACKET`, also after another one."""
        self._stop_listening()
        listening.setblocking(False)
        self._listening = listening
        self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Take no more. What was sent and not taken stays with its worker."""
        self._stop_listening()
        for link in [*self._links]:
            self._drop(link)

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            accepted, _ = listening.accept()
            link = PacketSocket(accepted, LONGEST)
            self._links.add(link)
            self._loop.add_reader(link, self._take_all, link)

    def _drop(self, link: PacketSocket) -> None:
        self._links.discard(link)
        self._loop.remove_reader(link)
        link.close()

    def _take_all(self, link: PacketSocket) -> None:
        for _ in range(_TURN):
            try:
                packet = link.receive()
            except PacketRefused:
                self._answer(link, REFUSED)
                continue
            except PeerGone:
                self._drop(link)
                return
            if packet is None:
                return
            self._take(link, packet)

    def _take(self, link: PacketSocket, packet: Packet) -> None:
        try:
            arrival, missing, read = decode(packet.data)
            listener = self._listener
            if not packet.descriptors or missing > len(read) or not listener.has_room:
                raise ValueError
        except ValueError:
            packet.close()
            self._answer(link, REFUSED)
            return
        connection = socket.socket(fileno=packet.descriptors[0])
        # Before anything of it is handled: what is not answered its worker takes back.
        if not self._answer(link, TAKEN):
            connection.close()
            return
        lane = listener.adopt(connection, partial(lane_of(arrival), arrival, read))
        if lane is not None:
            lane.claim_place()

    def _answer(self, link: PacketSocket, answer: bytes) -> bool:
        """Answer. Returns False if the worker cannot hear it, but would go on itself."""
        try:
            link.send(answer)
        except PeerBehind:
            self._drop(link)
            return False
        except PeerGone:
            # It takes nothing back any more.
            pass
        return True
