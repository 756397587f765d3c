"""What a link to another host writes to: connections with TLS, each of which follows another.

A link lasts longer than the certificates with which it began. So there is a new connection from
time to time, which takes over the link between two frames: nothing on its way is lost or sent
again. When the home has accepted the new connection, the door says on the old one that nothing
follows there, and the home answers the same. Each end reads the new one from then on.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from holdfast.delivery.basics.ignoring import ignore
from holdfast.web.forwarding.frames import FrameUnreadable, Kind, pack
from holdfast.web.forwarding.shard_link import Link
from holdfast.web.host_links.tls_connection import TlsConnection

# In seconds. From one beat to the next there are two ticks.
_TICK_S: Final = 0.5
# After so many in which nothing came, the other end is dead, or the connection leads nowhere. They
# are counted, because a process that did not run reads first what has come meanwhile.
_SILENT_TICKS: Final = 6
_BEAT: Final = pack(Kind.BEAT, 0)
_MOVED: Final = pack(Kind.MOVED, 0)
# How long the rest of a connection that is left may take.
_LEAVING_S: Final = 5.0


class MovingTransport(asyncio.Transport):
    """The transport of a link, and the owner of its connections.

    Args:
        unheard: Called, with an error if there is one, when the other end has ended a link on
            which nothing came.
    """

    def __init__(self, link: Link, unheard: Callable[[Exception | None], None]) -> None:
        super().__init__()
        self._link, self._unheard = link, unheard
        self._loop = asyncio.get_running_loop()
        # The connections on which this end reads and writes, and the one that will follow.
        self._reads: TlsConnection | None = None
        self._writes: TlsConnection | None = None
        self._next: TlsConnection | None = None
        # What came on that before its time.
        self._kept: list[bytes] = []
        # Whether the other end has said that nothing follows on the connection that is read.
        self._has_moved = False
        self._is_closing = self._is_over = False
        self._most_unsent: int | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._ticks = self._silent_ticks = 0
        self._has_heard = False
        # Done when the link has moved to the next connection, or cannot.
        self._moving: asyncio.Future[bool] | None = None
        link.hear(Kind.BEAT, ignore)
        link.hear(Kind.MOVED, self._hear_moved)

    # What the link calls

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._most_unsent = high
        if self._writes is not None:
            self._writes.transport.set_write_buffer_limits(high, low)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._writes is not None and not self._is_over:
            self._writes.transport.write(data)

    def is_closing(self) -> bool:
        writes = self._writes
        return self._is_closing or (writes is not None and writes.transport.is_closing())

    def close(self) -> None:
        self._is_closing = True
        for each in self._connections():
            each.transport.close()

    def abort(self) -> None:
        self._is_closing = True
        for each in self._connections():
            each.abort()

    def _connections(self) -> set[TlsConnection]:
        return {each for each in (self._reads, self._writes, self._next) if each is not None}

    # What the connections tell

    def made(self, connection: TlsConnection) -> None:
        """Begin with the first connection."""
        self._reads = self._writes = connection
        self._link.connection_made(self)
        self._ticking = self._loop.call_later(_TICK_S, self._tick)

    def came(self, connection: TlsConnection, data: bytes) -> None:
        if connection is self._reads:
            self._silent_ticks, self._has_heard = 0, True
            self._link.data_received(data)
            if self._has_moved:
                self._read_next()
        elif connection is self._next:
            self._kept.append(data)

    def filled(self, connection: TlsConnection, *, is_full: bool) -> None:
        if connection is self._writes:
            if is_full:
                self._link.pause_writing()
            else:
                self._link.resume_writing()

    def lost(self, connection: TlsConnection, error: Exception | None) -> None:
        if connection in (self._reads, self._writes):
            self._end(error)
        elif connection is self._next:
            self._next = None
            self._kept.clear()
            self._settle(is_moved=False)

    def _end(self, error: Exception | None) -> None:
        if not self._is_over:
            self._is_over, is_own_end = True, self._is_closing
            self.stop()
            self.abort()
            self._settle(is_moved=False)
            if not (self._has_heard or is_own_end):
                self._unheard(error)
            self._link.connection_lost(error)

    def stop(self) -> None:
        """Beat no more: the link has ended."""
        if self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    # Beats

    def _tick(self) -> None:
        self._ticks += 1
        self._silent_ticks += 1
        if self._silent_ticks > _SILENT_TICKS:
            self.abort()
            return
        if self._ticks % 2 == 0 and not self.is_closing():
            self.write(_BEAT)
        self._ticking = self._loop.call_later(_TICK_S, self._tick)

    # From one connection to the next

    def expect(self, connection: TlsConnection) -> bool:
        """Move to this connection as soon as the door does, which waits for an answer on it.

        Returns False if the link cannot move now.
        """
        if self._next is not None or self._is_closing:
            return False
        connection.owner = self
        self._next = connection
        return True

    def move_to(self, connection: TlsConnection, read: bytes, moved: asyncio.Future[bool]) -> None:
        """Move to this connection, which the home expects.

        Args:
            read: What came on it behind the greeting.
            moved: Gets whether the link has moved.
        """
        if not self.expect(connection):
            moved.set_result(False)
            return
        self._moving = moved
        self._kept = [read] if read else []
        self._write_on_next()

    def _write_on_next(self) -> None:
        following = self._next
        if following is None:
            raise FrameUnreadable("MOVED without another connection")
        self.write(_MOVED)
        self._writes = following
        following.transport.set_write_buffer_limits(self._most_unsent)
        if self._link.is_full:
            self._link.resume_writing()

    def _hear_moved(self, _: int, __: bytes) -> None:
        if self._next is None or self._writes is not self._next:
            # This end is the home.
            self._write_on_next()
        self._has_moved = True

    def _read_next(self) -> None:
        left, self._reads, self._next = self._reads, self._next, None
        self._has_moved = False
        if left is not None:
            left.owner = _Left()
            left.transport.close()
            self._loop.call_later(_LEAVING_S, left.abort)
        kept, self._kept = self._kept, []
        for data in kept:
            self._link.data_received(data)
        self._settle(is_moved=True)

    def _settle(self, *, is_moved: bool) -> None:
        moving, self._moving = self._moving, None
        if moving is not None and not moving.done():
            moving.set_result(is_moved)


class _Left:
    """The owner of a connection that is left."""

    def made(self, _: TlsConnection) -> None: ...

    def came(self, _: TlsConnection, __: bytes) -> None: ...

    def filled(self, _: TlsConnection, *, is_full: bool) -> None: ...

    def lost(self, _: TlsConnection, __: Exception | None) -> None: ...
