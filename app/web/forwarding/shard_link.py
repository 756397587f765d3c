"""A link: the connection between a door and a home."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, cast

from holdfast.web.forwarding.frames import FrameReader, FrameUnreadable, Kind

log = logging.getLogger(__name__)

# By kind, what a frame does: it gets the frame's number and data.
Handlers = Mapping[Kind, Callable[[int, bytes], None]]

# How many bytes may wait before the link is full: as many as come while the peer does not run for
# some tenths of a second. Messages that take the log meanwhile keep others on it for longer.
_MOST_UNSENT: Final = 1024 * 1024


class Link:
    """Sends and reads frames in order; all frames of a turn leave in one write.

    It is an `asyncio.Protocol` without that base class, with which it could not be compiled.

    Args:
        handlers: What frames do. The peer sends no others.
        lost: Called once when the connection has ended.
        resumed: Called when the peer reads again.
    """

    def __init__(
        self, handlers: Handlers, lost: Callable[[], None], resumed: Callable[[], None]
    ) -> None:
        # What frames do now, and after the first one.
        self._handlers = self._later = handlers
        self._lost, self._resumed = lost, resumed
        # The form of frames that both ends have agreed on; 0 before that.
        self.form = 0
        self._reader = FrameReader()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._is_due = False
        # Returns frames that are collected, in which later ones are merged; and whether there may
        # be any.
        self._collected: Callable[[], bytes] = bytes
        self.has_collected = False
        # Whether the peer does not read as fast as this side writes.
        self.is_full = False
        # Done when the connection has ended.
        self.ended: asyncio.Future[None] = self._loop.create_future()

    def as_protocol(self) -> asyncio.Protocol:
        """Return the link as event loops want it."""
        return cast("asyncio.Protocol", self)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def expect(self, kind: Kind, handle: Callable[[int, bytes], None]) -> None:
        """Let the first frame of the peer be of this kind, and refuse all others before it."""

        def begin(number: int, data: bytes) -> None:
            self._handlers = self._later
            handle(number, data)

        self._handlers = {kind: begin}

    def hear(self, kind: Kind, handle: Callable[[int, bytes], None]) -> None:
        """Let frames of one more kind do something; not before the one that is expected first."""
        is_begun = self._handlers is self._later
        self._later = {**self._later, kind: handle}
        if is_begun:
            self._handlers = self._later

    def collect(self, collected: Callable[[], bytes]) -> None:
        """Ask for frames that are collected, whenever others are about to leave.

        To collect one, set `has_collected` and call `flush_at_end`.
        """
        self._collected = collected

    def send(self, frame: bytes) -> None:
        """Send a frame at the end of the turn, after what is collected."""
        if self.has_collected:
            self.send_collected()
        self._unsent.append(frame)
        if not self._is_due:
            self.flush_at_end()

    def send_collected(self) -> None:
        """Let nothing that follows overtake what is collected so far."""
        if self.has_collected:
            self.has_collected = False
            self._unsent.append(self._collected())

    def flush_at_end(self) -> None:
        """Send everything, and what is collected until then, at the end of the turn."""
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._flush_due)

    def close(self) -> None:
        """Send what is left, and close the connection."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def give_up(self) -> None:
        """Forget the connection, which the event loop has closed before it was made completely.

        uvloop does not say so to a link that it has connected already.
        """
        self._transport, self._unsent = None, []
        if not self.ended.done():
            self.ended.set_result(None)

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def _flush_due(self) -> None:
        self._is_due = False
        self.flush()

    def flush(self) -> None:
        """Send everything now."""
        if self._transport is None and not self.ended.done():
            # The connection is being made.
            return
        self.send_collected()
        unsent, self._unsent = self._unsent, []
        if unsent and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(unsent) if len(unsent) > 1 else unsent[0])

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_MOST_UNSENT)
        if self._unsent:
            self.flush_at_end()

    def data_received(self, data: bytes) -> None:
        try:
            for kind, number, content in self._reader.read(data):
                handle = self._handlers.get(kind)
                if handle is None:
                    raise FrameUnreadable(f"{kind.name} from the wrong side")
                handle(number, content)
        except FrameUnreadable as error:
            log.error("a link between two processes is closed: it brought %s", error)
            self.abort()

    def eof_received(self) -> None:
        """Let the transport close."""

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False
        self._resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._unsent = []
        self._lost()
        if not self.ended.done():
            self.ended.set_result(None)
