"""Takes the messages that another shard sends over a link instead of its log."""

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.cluster.frames import Frame, FrameUnreadable, read
from holdfast.cluster.places import Place, PlaceUnreadable, place_of
from holdfast.sharding.arrivals import Arrival, Arrivals
from holdfast.sharding.passing import LOG

if TYPE_CHECKING:
    from holdfast.cluster.reading import LogReader

log = logging.getLogger(__name__)

# How long messages wait for a place in the log, and how many bytes of them.
_WAIT_S: Final = 5.0
_MOST_BYTES: Final = 8 * 1024 * 1024


class _Held(NamedTuple):
    """A frame that waits for a place in the log."""

    link: int
    n: int
    frame: Frame
    size: int
    since: float


class DirectArrivals:
    """What arrives from one other shard over links, each of which has a number.

    Frames of a link come in order. Some must wait until the log is shown up to a place, and some
    frames of the log for those of a link.
    """

    def __init__(self, shard: int, arrivals: Arrivals, clock: Callable[[], float]) -> None:
        self._shard = shard
        self._arrivals = arrivals
        self._clock = clock
        # Set once the log of that shard is read.
        self.reader: LogReader[Arrival] | None = None
        # The link, 0 if there is none, and how many of its frames were shown.
        self._link = self._shown = 0
        self._held: deque[_Held] = deque()
        self._bytes = 0

    def open(self, link: int) -> None:
        """Expect frames on the link with this number."""
        self._link, self._shown = link, 0
        self._go_on_with_log()

    def lost(self, link: int) -> None:
        """Expect no more on this link."""
        if link == self._link:
            self.open(0)

    def came(self, link: int, n: int, data: bytes) -> None:
        """Take the frame of a link that has this number there."""
        try:
            frame = read(data)
        except FrameUnreadable as error:
            # The rest must arrive.
            self._arrivals.failures += 1
            log.error("shard %d has sent messages that are unreadable: %s", self._shard, error)
            self._count(link, n)
            return
        if self._held or not self._follows(frame):
            self._held.append(_Held(link, n, frame, len(data), self._clock()))
            self._bytes += len(data)
            self.go_on()
        else:
            self._show(link, n, frame)

    def go_on(self) -> None:
        """Show what had to wait for the log."""
        while self._held:
            first = self._held[0]
            is_late = self._bytes > _MOST_BYTES or self._clock() - first.since > _WAIT_S
            if not (is_late or self._follows(first.frame)):
                return
            self._held.popleft()
            self._bytes -= first.size
            self._show(first.link, first.n, first.frame)

    def has_shown(self, text: str) -> bool:
        """Return whether that many frames of that link were shown, or the link is lost."""
        link, _, n = text.partition(" ")
        if not (link.isdecimal() and n.isdecimal()):
            return True
        number, count = int(link), int(n)
        if any(each.link == number and each.n <= count for each in self._held):
            return False
        return number != self._link or self._shown >= count

    def _follows(self, frame: Frame) -> bool:
        text = frame.behind.get(LOG)
        if text is None:
            return True
        try:
            place = place_of(text)
        except PlaceUnreadable:
            return True
        return self.reader is not None and _is_at(self.reader.shown, place)

    def _show(self, link: int, n: int, frame: Frame) -> None:
        found = self._arrivals.sort(frame)
        if found.shown:
            self._arrivals.show(found.shown)
        self._count(link, n)

    def _count(self, link: int, n: int) -> None:
        if link == self._link:
            self._shown = n
        self._go_on_with_log()

    def _go_on_with_log(self) -> None:
        if self.reader is not None:
            self.reader.go_on()


def _is_at(place: Place, wanted: Place) -> bool:
    if place.nonce == wanted.nonce:
        return place.n >= wanted.n
    # A store that went back has lost the place, and its number may be given again.
    return place.fence >= wanted.fence
