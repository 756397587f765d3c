"""Takes connections that other workers give, and says which."""

import asyncio
import os
import socket
from contextlib import suppress
from functools import partial
from typing import Final

from holdfast.web.doors.adopted_lane import AdoptedLane, GivenLane
from holdfast.web.doors.preface import PARCEL, decode
from holdfast.web.front.arrival import Arrival
from holdfast.web.front.listener import Listener

# How many parcels of a worker are taken before other work runs.
_TURN: Final = 32
# With room for the text before the bytes of a connection.
_LONGEST_PARCEL: Final = 4 * PARCEL
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
        self._links: set[socket.socket] = set()

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
            link, _ = listening.accept()
            link.setblocking(False)
            self._links.add(link)
            self._loop.add_reader(link, self._take_all, link)

    def _drop(self, link: socket.socket) -> None:
        self._links.discard(link)
        self._loop.remove_reader(link)
        link.close()

    def _take_all(self, link: socket.socket) -> None:
        for _ in range(_TURN):
            try:
                parcel, descriptors, _, _ = socket.recv_fds(link, _LONGEST_PARCEL, 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                parcel, descriptors = b"", []
            if not parcel:
                self._drop(link)
                return
            self._take(link, parcel, descriptors)

    def _take(self, link: socket.socket, parcel: bytes, descriptors: list[int]) -> None:
        try:
            arrival, missing, read = decode(parcel)
            listener = self._listener
            if not descriptors or missing > len(read) or not listener.has_room:
                raise ValueError
        except ValueError:
            for each in descriptors:
                os.close(each)
            self._answer(link, REFUSED)
            return
        connection = socket.socket(fileno=descriptors[0])
        # Before anything of it is handled: what is not answered its worker takes back.
        if not self._answer(link, TAKEN):
            connection.close()
            return
        lane = listener.adopt(connection, partial(lane_of(arrival), arrival, read))
        if lane is not None:
            lane.claim_place()

    def _answer(self, link: socket.socket, answer: bytes) -> bool:
        """Answer. Returns False if the worker cannot hear it, but would go on itself."""
        try:
            link.send(answer)
        except (BrokenPipeError, ConnectionResetError):
            # It has ended, or takes nothing back any more.
            return True
        except OSError:
            self._drop(link)
            return False
        return True
