"""The events of a node on their way into the journal: in frames, bounded."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from app.delivery.witness import Watch
from app.journal.builder import FrameBuilder
from app.journal.columns import Told
from app.journal.schema import FULL, PATIENCE_S, Kind

log = logging.getLogger(__name__)

# What may wait for the store to come back.
_MOST_BYTES = 8 * 1024 * 1024


class Outlet(Protocol):
    """Writes frames into the journal in the order in which it gets them, each once."""

    @property
    def has_room(self) -> bool:
        """Whether the store is there and takes more."""
        ...

    def write(self, frame: bytes, notes: Sequence[int]) -> None:
        """The frame tells of these notes, too, which then go."""
        ...


class Journal(FrameBuilder):
    """A builder whose frames leave by themselves.

    The shell calls `beat` ten times a second. While the store is away frames wait; when they
    fill their room, what comes then is dropped and counted, and the journal says so.

    Args:
        now: The loop's time, as of `beat` and `flush`.
        now_ns: Nanoseconds since 1970.
        most_bytes: How many bytes of frames may wait.
    """

    __slots__ = (
        "_bytes",
        "_dropped_at",
        "_due",
        "_most_bytes",
        "_notes",
        "_outlet",
        "_waiting",
        "dropped",
        "dropped_untold",
        "watch",
    )

    def __init__(
        self,
        node: str,
        outlet: Outlet,
        *,
        now: float,
        now_ns: Callable[[], int],
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        super().__init__(node)
        self._outlet = outlet
        self.watch = Watch(now_ns)
        self._most_bytes = most_bytes
        self._waiting: deque[tuple[bytes, list[int]]] = deque()
        self._bytes = 0
        # Events that are in no frame: ever, and those that the journal has not told of.
        self.dropped = self.dropped_untold = 0
        self._dropped_at = 0
        # Notes in the store that the next frame takes the place of.
        self._notes: list[int] = []
        # When what there is leaves at the latest.
        self._due = now + PATIENCE_S

    def replace(self, note: int, told: Told) -> None:
        """The next frame tells what this note in the store does, and takes its place."""
        self._notes.append(note)
        self.tell(told)

    def now_us(self) -> int:
        """The time, as it is told of events."""
        return self.watch.look()

    def beat(self, now: float) -> None:
        """Time has passed: what makes a whole frame leaves, or has waited for company."""
        self.take_in()
        if now >= self._due or self.weight >= FULL:
            self.flush(now)

    def flush(self, now: float) -> None:
        """All that was told leaves, if the store is there."""
        self._due = now + PATIENCE_S
        self.take_in()
        self._leave()

    def _leave(self) -> None:
        if self._outlet.has_room:
            self._send()
        elif self.count:
            self._keep()

    def _send(self) -> None:
        while self._waiting:
            self._outlet.write(*self._waiting.popleft())
        self._bytes = 0
        if self.dropped_untold:
            log.error("%d events of the journal were lost", self.dropped_untold)
            self.changed(Kind.DROPPED, self._dropped_at, "buffer", number=self.dropped_untold)
            self.dropped_untold = 0
        frame = self.frame()
        if frame:
            notes, self._notes = self._notes, []
            self._outlet.write(frame, notes)

    def _keep(self) -> None:
        count, since = self.count, self.columns.first
        frame = self.frame()
        if self._bytes + len(frame) <= self._most_bytes and not self.dropped_untold:
            notes, self._notes = self._notes, []
            self._waiting.append((frame, notes))
            self._bytes += len(frame)
            return
        # What comes behind a gap goes as well: who reads may trust what came before it.
        if not self.dropped_untold:
            log.error("the journal has no room while the store is away: events are lost")
            self._dropped_at = since
        self.dropped += count
        self.dropped_untold += count

    def miss(self, events: int) -> None:
        """So many were in a frame that the store has refused."""
        if not self.dropped_untold:
            log.error("the store takes no frames of the journal: events are lost")
            self._dropped_at = self.now_us()
        self.dropped += events
        self.dropped_untold += events
