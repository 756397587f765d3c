"""A transport on a simulated connection, which behaves as asyncio's on a socket."""

import asyncio
from asyncio.transports import _FlowControlMixin
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.descriptors import Connected

if TYPE_CHECKING:
    from tests.simulation.loop import SimLoop

_AT_ONCE = 256 * 1024


class SimTls:
    """Lets both ends of a connection know each other's names. Bytes go as they are.

    Nobody here reads or changes them on their way.
    """


def is_simulated(tls: object) -> bool:
    """Return whether a connection is to have TLS, which is not the real one here."""
    assert tls is None or isinstance(tls, SimTls), "the simulated network has no real TLS"
    return tls is not None


class SimTransport(_FlowControlMixin, asyncio.Transport):
    """Moves bytes between a protocol and one end of a connection."""

    # Parts of asyncio that its types do not show.
    _maybe_pause_protocol: Callable[[], None]
    _maybe_resume_protocol: Callable[[], None]
    _protocol: Any
    _extra: dict[str, Any]

    def __init__(
        self, loop: "SimLoop", connected: Connected, protocol: asyncio.BaseProtocol
    ) -> None:
        self._descriptor = connected.descriptor
        self._end = end = self._descriptor.end
        names = {"peername": end.peer.name, "sockname": end.name}
        super().__init__({**names, "socket": connected}, loop)
        self._sim_loop = loop
        self._protocol = protocol
        self._buffer = bytearray()
        self._is_paused = False
        self._is_closing = self._is_over = self._is_finishing = False
        end.reader = self

    def begin(self) -> None:
        """Introduce itself to its protocol, and read what has arrived."""
        self._protocol.connection_made(self)
        if self._end.is_readable:
            self.readable()

    def begin_tls(self, protocol: asyncio.BaseProtocol) -> None:
        """Let both ends know each other: each machine has a certificate for its address."""
        self._protocol = protocol
        self._extra["peercert"] = {"subjectAltName": (("IP Address", self._end.peer.name[0]),)}

    # The network

    def readable(self) -> None:
        self._sim_loop.wake(self._read)

    def writable(self) -> None:
        self._sim_loop.wake(self._write_more)

    def _read(self) -> None:
        end = self._end
        if self._is_over or not end.is_readable:
            return
        if self._is_paused or self._is_closing:
            # Only a write would notice, as on a socket.
            if end.broken is not None and self._buffer:
                self._lose(end.broken)
            return
        try:
            data = end.read(_AT_ONCE)
        except OSError as error:
            self._lose(error)
            return
        if data:
            self._sim_loop.on_read(end, data)
            self._protocol.data_received(data)
            if end.is_readable:
                self.readable()
        elif not self._protocol.eof_received():
            self.close()
        else:
            self._is_paused = True

    def _write_more(self) -> None:
        if self._is_over or not self._buffer:
            return
        sent = self._end.send(bytes(self._buffer))
        del self._buffer[:sent]
        self._maybe_resume_protocol()
        if not self._buffer:
            if self._is_closing:
                self._be_lost(None)
            elif self._is_finishing:
                self._end.finish()

    def drop(self) -> None:
        """Break without a word to the protocol: its process was killed."""
        self._is_closing = self._is_over = True
        self._buffer.clear()
        self._leave()
        self._descriptor.reset()

    def _leave(self) -> None:
        # Another process may read it by now.
        if self._end.reader is self:
            self._end.reader = None

    # asyncio.Transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_finishing:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._is_over or (self._is_closing and not self._buffer):
            return
        whole = bytes(data)
        self._sim_loop.on_write(self._end, whole)
        sent = 0 if self._buffer else self._end.send(whole)
        if sent < len(whole):
            self._buffer += whole[sent:]
            self._maybe_pause_protocol()

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._is_finishing and not self._is_closing:
            self._is_finishing = True
            if not self._buffer:
                self._end.finish()

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        if self._is_paused and not self._is_closing:
            self._is_paused = False
            if self._end.is_readable:
                self.readable()

    def is_reading(self) -> bool:
        return not self._is_paused and not self._is_closing

    def is_closing(self) -> bool:
        return self._is_closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            if not self._buffer:
                self._be_lost(None)

    def abort(self) -> None:
        self._lose(None)

    def _lose(self, error: OSError | None) -> None:
        self._buffer.clear()
        self._is_closing = True
        self._be_lost(error)

    def _be_lost(self, error: OSError | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._sim_loop.call_soon(self._report_loss, error)

    def _report_loss(self, error: OSError | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._leave()
            self._descriptor.close()
