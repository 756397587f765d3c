"""Takes the messages that another shard sends over a link instead of its log."""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.cluster.frames import Frame, FrameUnreadable, read
from holdfast.cluster.places import Place, PlaceUnreadable, place_of
from holdfast.sharding.arrivals import Arrival, Arrivals
from holdfast.sharding.passing import LOG
from holdfast.sharding.pruning import Pruning, Prunings, Way

if TYPE_CHECKING:
    from holdfast.cluster.reading import LogReader

log = logging.getLogger(__name__)

# How long the log waits for what a link has to bring: a connection may be lost without a sign.
_LINK_WAIT_S: Final = 2.0
# How long messages wait for a place in the log, and how many bytes of them. Then they are dropped:
# the log may be read again, and then has earlier ones.
_WAIT_S: Final = 15.0
_MOST_BYTES: Final = 8 * 1024 * 1024


class _Held(NamedTuple):
    """A frame that waits for a place in the log."""

    link: int
    n: int
    # The place, if it is a new one.
    place: Place | None
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
        self.pruning = Pruning(clock)
        # Set once the log of that shard is read.
        self.reader: LogReader[Arrival] | None = None
        # The link, 0 if there is none, and how many of its frames were shown.
        self._link = self._shown = 0
        self._way: Way | None = None
        # Since when the log has waited for it; None if it does not.
        self._awaited_since: float | None = None
        self._held: deque[_Held] = deque()
        # The place for which dropped frames have waited.
        self._place: Place | None = None
        self._bytes = 0

    def open(self, link: int, way: Way | None) -> None:
        """Expect frames on the link with this number, or none."""
        self._link, self._shown, self._way = link, 0, way
        self._awaited_since = None
        self.pruning.begin(way)
        self._go_on_with_log()

    def lost(self, link: int) -> None:
        """Expect no more on this link."""
        if link == self._link:
            self.open(0, None)

    def came(self, link: int, n: int, data: bytes) -> None:
        """Take the frame of a link that has this number there."""
        if link != self._link:
            # It was given up.
            return
        try:
            frame = read(data)
        except FrameUnreadable as error:
            # The rest must arrive.
            self._arrivals.failures += 1
            log.error("shard %d has sent messages that are unreadable: %s", self._shard, error)
            self._count(link, n)
            return
        place = _place_in(frame)
        if self._held or not self._reaches(place or self._place):
            self._held.append(_Held(link, n, place, frame, len(data), self._clock()))
            self._bytes += len(data)
            self.go_on()
        else:
            self._show(link, n, frame)

    def go_on(self) -> None:
        """Show what had to wait for the log, or give a link up for which others wait."""
        self.pruning.tick()
        since = self._awaited_since
        is_late = since is not None and self._clock() - since > _LINK_WAIT_S
        if self._way is not None and (is_late or self.pruning.is_late):
            way = self._way
            log.warning("a link to shard %d is cut: it does not bring what it should", self._shard)
            self.lost(self._link)
            way.cut()
        self.show_held()

    def show_held(self) -> None:
        """Show what has waited for the log, as far as that is shown."""
        while self._held:
            first = self._held[0]
            place = first.place or self._place
            has_come = self._reaches(place)
            is_late = self._bytes > _MOST_BYTES or self._clock() - first.since > _WAIT_S
            if not (has_come or is_late):
                return
            self._held.popleft()
            self._bytes -= first.size
            if has_come:
                self._show(first.link, first.n, first.frame)
            else:
                self._place = place
                self._arrivals.failures += len(first.frame)
                log.error("messages of shard %d are lost: its log cannot be read", self._shard)
                self._count(first.link, first.n)

    def has_shown(self, text: str) -> bool:
        """Return whether that many frames of that link were shown, or the link is lost."""
        link, _, n = text.partition(" ")
        if not (link.isdecimal() and n.isdecimal()):
            return True
        number, count = int(link), int(n)
        if any(each.link == number and each.n <= count for each in self._held):
            return False
        has_shown = number != self._link or self._shown >= count
        if has_shown:
            self._awaited_since = None
        elif self._awaited_since is None:
            self._awaited_since = self._clock()
        return has_shown

    def _reaches(self, place: Place | None) -> bool:
        """Return whether the log is shown up to this place."""
        if place is None:
            return True
        return self.reader is not None and _is_at(self.reader.shown, place)

    def _show(self, link: int, n: int, frame: Frame) -> None:
        self._place = None
        found = self._arrivals.sort(frame)
        if found.shown:
            self._arrivals.show(found.shown)
        if found.useless:
            self.pruning.count_useless(found.useless)
        self._count(link, n)

    def _count(self, link: int, n: int) -> None:
        if link == self._link:
            self._shown = n
        self._go_on_with_log()

    def _go_on_with_log(self) -> None:
        if self.reader is not None:
            self.reader.go_on()


class Inlet:
    """What all other shards send over links.

    Args:
        arrivals: What takes it, by number of the shard.
        stamp: Returns numbers for links, each once.
    """

    def __init__(
        self,
        arrivals: Mapping[int, Arrivals],
        stamp: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        self.direct = {
            shard: DirectArrivals(shard, each, clock) for shard, each in arrivals.items()
        }
        self.prunings = Prunings([each.pruning for each in self.direct.values()])
        self._stamp = stamp

    def open_link(self, shard: int, way: Way) -> int:
        """Return the number of the link on which a shard is about to send."""
        number = self._stamp()
        self.direct[shard].open(number, way)
        return number

    def take_messages(self, shard: int, link: int, n: int, frame: bytes) -> None:
        """Take a frame that has this number on its link."""
        self.direct[shard].came(link, n, frame)

    def grafted(self, shard: int, number: int) -> None:
        """Take note that a shard knows the grafts up to this number."""
        self.direct[shard].pruning.grafted(number)

    def lose_link(self, shard: int, link: int) -> None:
        """Nothing more comes on this link."""
        self.direct[shard].lost(link)


def _place_in(frame: Frame) -> Place | None:
    text = frame.behind.get(LOG)
    try:
        return None if text is None else place_of(text)
    except PlaceUnreadable:
        return None


def _is_at(place: Place, wanted: Place) -> bool:
    if place.nonce == wanted.nonce:
        return place.n >= wanted.n
    # A store that went back has lost the place, and its number may be given again.
    return place.fence >= wanted.fence
