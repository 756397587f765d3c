"""Writes the events of a node into the journal, in bounded frames."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from holdfast.journal.builder import FrameBuilder
from holdfast.journal.columns import DecodedNote
from holdfast.journal.event_clock import JournalClock
from holdfast.journal.schema import BOOKS_S, FULL, LONGEST_WAIT_S, Kind
from holdfast.units import counted

log = logging.getLogger(__name__)

# The most bytes that may wait for the store to return.
_MOST_BYTES = 8 * 1024 * 1024
# Fewer rows of notes may wait for their frame; one may have thousands of events.
_MANY = 100


class Outlet(Protocol):
    """Writes frames into the journal in order, each once."""

    @property
    def is_available(self) -> bool:
        """Whether the store is available and has room."""
        ...

    def write_frame(
        self, frame: bytes, notes: Sequence[int], refused: Callable[[], None] | None = None
    ) -> None:
        """Write a frame and remove the notes that it includes, or call `refused`."""
        ...


class Journal(FrameBuilder):
    """A builder that sends its frames by itself.

    The web layer calls `beat` ten times a second. While the store is unavailable, frames wait. When
    their room is full, further events are dropped and counted, and the journal reports them.

    Args:
        now: The loop's time, as in `beat` and `flush`.
        now_ns: Nanoseconds since 1970.
        origin: The name with which ids of messages begin.
        shard: The number of this shard; None if there is no other one.
        most_bytes: The most bytes of frames that may wait.
    """

    def __init__(
        self,
        node: str,
        outlet: Outlet,
        *,
        now: float,
        now_ns: Callable[[], int],
        origin: str = "",
        shard: int | None = None,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        super().__init__(node, origin, shard)
        self._outlet = outlet
        self.clock = JournalClock(now_ns)
        self._most_bytes = most_bytes
        # Frames with their notes and the numbers of their events.
        self._waiting: deque[tuple[bytes, list[int], int]] = deque()
        self._bytes = 0
        # Events that are in no frame: in total, and those that the journal has not reported yet.
        self.dropped = self.dropped_unreported = 0
        self._dropped_at = 0
        # Notes in the store that the next frame includes.
        self._notes: list[int] = []
        # When the collected events are sent at the latest.
        self._due = now + LONGEST_WAIT_S
        self._books_due = now + BOOKS_S
        self._booked: dict[str, int] = {}

    def replace(self, number: int, note: DecodedNote) -> None:
        """Include the events of this note in the next frame, which then replaces it."""
        self._notes.append(number)
        self.add_note(note)

    def beat(self, now: float) -> None:
        """Advance the clock; send a frame that is full or has waited long enough."""
        if self.waiting_rows >= _MANY:
            self.take_in()
        if now >= self._books_due:
            self.write_books(now)
        elif now >= self._due or self.count >= FULL:
            self.flush(now)

    def flush(self, now: float) -> None:
        """Send all events if the store is available."""
        self._due = now + LONGEST_WAIT_S
        self.send_or_keep()

    def write_books(self, now: float) -> None:
        """Write the books if anything happened, behind all events that they count."""
        self._books_due = now + BOOKS_S
        self.flush(now)
        books = self.books()
        if books != self._booked:
            self._booked, at = books, self.clock.read()
            for what, number in books.items():
                self.changed(Kind.BOOKS, at, what, number=number)
            self.flush(now)

    def send_or_keep(self) -> None:
        """Send all events now, or keep their frame while the store is unavailable."""
        self.take_in()
        if self._outlet.is_available:
            self._send()
        elif self.count:
            self._keep()

    def _send(self) -> None:
        while self._waiting:
            self._write(*self._waiting.popleft())
        self._bytes = 0
        if self.dropped_unreported:
            log.error("lost %s", counted(self.dropped_unreported, "journal event"))
            self.changed(Kind.DROPPED, self._dropped_at, "buffer", number=self.dropped_unreported)
            self.dropped_unreported = 0
        count, frame = self.count, self.frame(self.clock.peek())
        if frame:
            notes, self._notes = self._notes, []
            self._write(frame, notes, count)

    def _write(self, frame: bytes, notes: Sequence[int], count: int) -> None:
        self._outlet.write_frame(frame, notes, partial(self.miss, count))

    def _keep(self) -> None:
        count, since = self.count, self.columns.first
        frame = self.frame(self.clock.peek())
        if self._bytes + len(frame) <= self._most_bytes and not self.dropped_unreported:
            notes, self._notes = self._notes, []
            self._waiting.append((frame, notes, count))
            self._bytes += len(frame)
            return
        # Frames after a gap are dropped too: readers may trust what comes before the gap.
        if not self.dropped_unreported:
            log.error("the store is unavailable and the journal's buffer is full: events are lost")
            self._dropped_at = since
        self.dropped += count
        self.dropped_unreported += count

    def miss(self, events: int) -> None:
        """Count the events of a frame that the store refused."""
        if not self.dropped_unreported:
            log.error("the store refuses journal frames: events are lost")
            self._dropped_at = self.clock.read()
        self.dropped += events
        self.dropped_unreported += events
