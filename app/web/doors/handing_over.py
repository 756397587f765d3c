"""Hands connections over, each as soon as it is between two requests or frames."""

import asyncio
import socket
from collections.abc import Mapping

from holdfast.web.doors.door import Door
from holdfast.web.doors.preface import encode
from holdfast.web.doors.relays import Relays
from holdfast.web.doors.unhandled import unhandled_of_request, unhandled_of_socket
from holdfast.web.front.arrival import Arrival, OpenSocket, RelayedClient
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.front.listener import Listener
from holdfast.web.http.peers import subject_of
from holdfast.web.websockets.socket_response import SocketResponse
from holdfast.web.websockets.websocket import WebSocketFrontEnd

# How many connections are handed over before other work runs.
_SLICE = 16
# How often to look whether late connections can be handed over.
_LOOK_S = 0.02
# More bytes of one connection are not sent along.
_MOST_READ = 16 * 1024 * 1024


class HandOver:
    """One hand-over of all connections."""

    def __init__(self, door: Door, websockets: WebSocketFrontEnd, relays: Relays) -> None:
        self._door = door
        self._websockets = websockets
        self._relays = relays
        self._sockets: Mapping[object, SocketResponse] = {}
        # Packets of two connections must not mix.
        self._turn = asyncio.Lock()
        self.passed = 0

    async def run(self, listeners: Mapping[str, Listener]) -> None:
        """Hand over all connections. Raises `OSError` if the successor does not take them."""
        async with asyncio.TaskGroup() as group:
            for name, listener in listeners.items():
                group.create_task(self._hand_over_all(name, listener))

    async def _hand_over_all(self, name: str, listener: Listener) -> None:
        while True:
            has_late = await self._sweep(name, listener)
            if not has_late and not listener.is_settling:
                return
            # Clients read what was written, readers of sockets find that nothing is handled any
            # more, and TLS handshakes end.
            await asyncio.sleep(_LOOK_S)

    async def _sweep(self, name: str, listener: Listener) -> bool:
        """Hand over all connections that can be now; returns whether others are left."""
        self._sockets = self._websockets.by_connection()
        has_late = False
        for place, each in enumerate(listener.lanes()):
            if not await self._hand_over(name, listener, each):
                has_late = True
            if place % _SLICE == 0:
                await asyncio.sleep(0)
        return has_late

    async def _hand_over(self, name: str, listener: Listener, connection: FastLane) -> bool:
        """Hand a connection over. Returns False if that is not possible now."""
        async with self._turn:
            while (packets := self._packets(name, listener, connection)) is not None:
                is_sent = self._send(connection, packets[0])
                if is_sent is None:
                    return False
                if is_sent:
                    self.passed += 1
                    for packet in packets[1:]:
                        await self._door.send(packet)
                    return True
                # Meanwhile the connection may be lost, and its descriptor another's.
                await self._door.until_room()
        return connection.is_lost()

    def _send(self, connection: FastLane, packet: bytes) -> bool | None:
        """Send a connection. Returns False if the door is full, None if descriptors are short."""
        transport = connection.transport
        if transport is not None and connection.has_tls():
            try:
                ours, theirs = socket.socketpair()
            except OSError:
                # They are fewer soon.
                return None
            with theirs:
                if not self._door.try_to_send(packet, [theirs.fileno()]):
                    ours.close()
                    return False
            self._relays.begin(connection, ours)
        elif transport is not None:
            if not self._door.try_to_send(packet, [transport.get_extra_info("socket").fileno()]):
                return False
            # The successor has the connection: this closes only this process's descriptor of it.
            transport.abort()
        return True

    def _packets(self, name: str, listener: Listener, connection: FastLane) -> list[bytes] | None:
        response = self._sockets.get(connection)
        opened = None
        if response is None or response.socket is None:
            read = unhandled_of_request(connection)
        else:
            read = unhandled_of_socket(connection, response, response.socket)
            opened = _opened(response)
        if read is None or len(read) > _MOST_READ:
            return None
        arrival = Arrival(
            name,
            is_used=connection.unused_since is None,
            is_kept=listener.is_kept(connection),
            relayed=_relayed(connection),
            socket=opened,
        )
        return encode(arrival, read)


def _relayed_before(connection: FastLane) -> RelayedClient | None:
    """Return the client if the server before this one relays its bytes."""
    return None if connection.arrival is None else connection.arrival.relayed


def _opened(response: SocketResponse) -> OpenSocket | None:
    socket_ = response.socket
    if socket_ is None:
        return None
    session = socket_.session
    is_attached = session is not None and session.pipe is socket_
    client_id = session.client_id if session is not None and is_attached else None
    return OpenSocket(socket_.speaker.browsers, client_id)


def _relayed(connection: FastLane) -> RelayedClient | None:
    if not connection.has_tls():
        return _relayed_before(connection)
    transport = connection.transport
    name = None if transport is None else transport.get_extra_info("peername")
    peer = (name[0], name[1]) if isinstance(name, tuple) else None
    return RelayedClient(peer, subject_of(transport))
