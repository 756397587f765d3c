"""Takes connections of other hosts, and makes links of them to the shard of this process."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final

from holdfast.delivery.basics.ignoring import ignore
from holdfast.supervisor.packets import Packet, PacketRefused, PacketSocket, PeerGone
from holdfast.web.forwarding.frames import FrameUnreadable
from holdfast.web.forwarding.hello import Hello
from holdfast.web.forwarding.link_server import LinkServer
from holdfast.web.host_links import preamble
from holdfast.web.host_links.moving_transport import MovingTransport
from holdfast.web.host_links.tls_connection import (
    GREETING_S,
    HANDSHAKE_S,
    SHUTDOWN_S,
    GreetingReader,
    TlsConnection,
    plain,
)

log = logging.getLogger(__name__)

# How many connections may be without a greeting. Further ones are closed; the doors try again.
_MOST_COMING: Final = 64


class Receiver:
    """Serves doors of other hosts.

    Args:
        server: Has the links of all doors.
        hello: Who this is.
        hosts: The names of all other hosts.
        tls: Returns the TLS of new connections.
    """

    def __init__(
        self,
        server: LinkServer,
        hello: Hello,
        hosts: Collection[str],
        tls: Callable[[], ssl.SSLContext],
    ) -> None:
        self._server, self._hello, self._hosts, self._tls = server, hello, hosts, tls
        self._loop = asyncio.get_running_loop()
        self._listening: socket.socket | None = None
        self._packets: set[PacketSocket] = set()
        self._coming: set[asyncio.Task[None]] = set()
        # By host, shard and name, the links that another connection may take over.
        self._links: dict[tuple[str, int, str], MovingTransport] = {}
        # Why a connection was refused last, which is not logged again and again.
        self._refused = ""

    def open(self, listening: socket.socket) -> None:
        """Take connections that the process with the port passes on to this socket."""
        listening.setblocking(False)
        self._listening = listening
        self.accept()

    def accept(self) -> None:
        """Take connections, again after `stop_accepting`."""
        if self._listening is not None:
            self._loop.add_reader(self._listening, self._take_packets, self._listening)

    def stop_accepting(self) -> None:
        """Take no more: they wait for the process that takes the next one."""
        if self._listening is not None:
            self._loop.remove_reader(self._listening)

    def close(self) -> None:
        """Take no more. The links that are made are the server's."""
        self.stop_accepting()
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for each in [*self._packets]:
            self._drop(each)
        for task in self._coming:
            task.cancel()

    def _take_packets(self, listening: socket.socket) -> None:
        with suppress(OSError):
            accepted, _ = listening.accept()
            packets = PacketSocket(accepted, preamble.SIZE)
            self._packets.add(packets)
            self._loop.add_reader(packets, self._take, packets)

    def _drop(self, packets: PacketSocket) -> None:
        self._packets.discard(packets)
        self._loop.remove_reader(packets)
        packets.close()

    def _take(self, packets: PacketSocket) -> None:
        try:
            packet = packets.receive()
        except (PeerGone, PacketRefused):
            self._drop(packets)
            return
        if packet is not None:
            # One process has one connection for each.
            self._drop(packets)
            self._begin(packet)

    def _begin(self, packet: Packet) -> None:
        is_here = packet.data == preamble.pack(self._hello.shard)
        if not (is_here and packet.descriptors) or len(self._coming) >= _MOST_COMING:
            packet.close()
            return
        end = socket.socket(fileno=packet.descriptors[0])
        task = self._loop.create_task(self._greet(end))
        self._coming.add(task)
        task.add_done_callback(self._coming.discard)

    async def _greet(self, end: socket.socket) -> None:
        arrival = _Arrival(self._heard)
        connection = TlsConnection(arrival)
        try:
            end.setblocking(False)
            await self._loop.connect_accepted_socket(
                lambda: connection,
                end,
                ssl=self._tls(),
                ssl_handshake_timeout=HANDSHAKE_S,
                ssl_shutdown_timeout=SHUTDOWN_S,
            )
            async with asyncio.timeout(GREETING_S):
                await arrival.is_heard.wait()
        except OSError as error:
            if isinstance(error, TimeoutError):
                self._refuse("it says nothing")
            elif f"{error}" and not isinstance(error, ConnectionResetError):
                # Otherwise, it has only left.
                self._refuse(f"{error}")
            connection.abort()
            end.close()
        except asyncio.CancelledError:
            connection.abort()
            end.close()
            raise

    def _heard(self, connection: TlsConnection, greeting: GreetingReader, peer: Hello) -> None:
        """Make a link of a connection that has greeted, or let it take one over."""
        key = (peer.host, peer.shard, peer.link)
        if (fault := self._hello.fault_of(peer)) is not None:
            # The door, too, sees from a greeting why, and logs it.
            connection.transport.write(self._hello.pack())
        else:
            fault = self._lie_of(peer, connection)
        if fault is None and peer.renews and key not in self._links:
            fault = f"shard {peer.shard} on {peer.host} has no such link"
        if fault is not None:
            self._refuse(fault)
            connection.transport.close()
        elif peer.renews:
            if self._links[key].expect(connection):
                connection.transport.write(self._hello.pack())
            else:
                connection.abort()
        else:
            link = self._server.begin_link(is_abroad=True)
            moving = self._links[key] = MovingTransport(link, ignore)
            link.ended.add_done_callback(lambda _: self._forget(key, moving))
            connection.owner = moving
            moving.made(connection)
            moving.came(connection, greeting.read)

    def _forget(self, key: tuple[str, int, str], moving: MovingTransport) -> None:
        if self._links.get(key) is moving:
            del self._links[key]

    def _lie_of(self, peer: Hello, connection: TlsConnection) -> str | None:
        """Return why the peer is not on the host that it names, or None."""
        names = connection.names
        if peer.host not in self._hosts:
            return f"{peer.host or 'no name'!r} is none of the other hosts in the settings"
        if plain(peer.host) not in names:
            return f"it says that it is {peer.host}, with a certificate for {sorted(names)}"
        return None

    def _refuse(self, reason: str) -> None:
        if reason != self._refused:
            self._refused = reason
            log.warning("a connection of another host is refused: %s", reason)


class _Arrival:
    """The owner of a connection until it has greeted."""

    def __init__(self, heard: Callable[[TlsConnection, GreetingReader, Hello], None]) -> None:
        self._heard = heard
        self._greeting = GreetingReader()
        # Set also if the connection ends before that.
        self.is_heard = asyncio.Event()

    def made(self, connection: TlsConnection) -> None:
        """Wait for what it says."""

    def came(self, connection: TlsConnection, data: bytes) -> None:
        if self.is_heard.is_set():
            return
        try:
            peer = self._greeting.take(data)
        except FrameUnreadable as error:
            log.warning("a connection of another host is closed: it brought %s", error)
            connection.abort()
            return
        if peer is not None:
            self.is_heard.set()
            self._heard(connection, self._greeting, peer)

    def filled(self, connection: TlsConnection, *, is_full: bool) -> None:
        """Nothing is written to it."""

    def lost(self, connection: TlsConnection, error: Exception | None) -> None:
        self.is_heard.set()
