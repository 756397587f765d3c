"""Takes the messages that another shard sends over a link instead of its log.

A frame names channels that follow stored messages, each with a place in the log. Messages of such
a channel wait until the log is read so far, all others are shown at once. So a log that cannot be
read delays only what follows it, and not for long.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from holdfast.cluster.frames import Frame, FrameUnreadable, LogEntry, read
from holdfast.cluster.places import NOWHERE, Place, PlaceUnreadable, has_reached, place_of
from holdfast.sharding.arrivals import Arrival, Arrivals
from holdfast.sharding.early import Cause
from holdfast.sharding.kept_first import MOST_BYTES, WAIT_S
from holdfast.sharding.pruning import Pruning, Source

if TYPE_CHECKING:
    from holdfast.cluster.reading import LogReader

log = logging.getLogger(__name__)

# How long the log waits for what a link has to bring: a connection may be lost without a sign.
_LINK_WAIT_S: Final = 2.0
_NOWHERE: Final[Mapping[str, Place]] = {}


class _Held(NamedTuple):
    """A message that waits for a place in the log; None if it only waits for others before it."""

    entry: LogEntry
    place: Place | None
    since: float


class DirectArrivals:
    """What arrives from one other shard over links, each of which has a number.

    Frames of a link come in order. Some messages wait until the log is read up to a place, and
    frames of the log wait until the link has brought what comes before them.

    That shard uses one link at a time, and which one shows in what comes: it may have given up a
    connection before this process accepted it, and the process that was to go on with the shard
    may end before it does.

    Args:
        core_clock: Does not count the time in which the process does not run.
    """

    def __init__(
        self,
        shard: int,
        arrivals: Arrivals,
        pruning: Pruning,
        clock: Callable[[], float],
        core_clock: Callable[[], float],
    ) -> None:
        self._shard = shard
        self._arrivals = arrivals
        self._clock = clock
        self._core_clock = core_clock
        self.pruning = pruning
        # Set once the log of that shard is read.
        self.reader: LogReader[Arrival] | None = None
        # The link, 0 if there is none, and how many of its frames have come.
        self._link = self._came = 0
        self._source: Source | None = None
        # Newer links that have brought nothing so far, in their order.
        self._newer: dict[int, Source] = {}
        # For which link the log waits, and since when; None if for no link.
        self._awaited: tuple[int, float] | None = None
        # By channel, what waits.
        self._held: dict[str, deque[_Held]] = {}
        self._bytes = 0
        # The place in the log for which nothing waits any more: it could not be read in time.
        self._given_up = NOWHERE

    def open(self, link: int, source: Source) -> None:
        """Expect frames on the link with this number, and others on the former one until then."""
        if self._link and source is not self._source:
            for former in [each for each, known in self._newer.items() if known is source]:
                del self._newer[former]
            self._newer[link] = source
            self._go_on_with_log()
        else:
            self._use(link, source)

    def _use(self, link: int, source: Source | None) -> None:
        self._link, self._came, self._source = link, 0, source
        self._awaited = None
        self.pruning.begin(source)
        self._go_on_with_log()

    def lost(self, link: int) -> None:
        """Expect no more on this link."""
        if link == self._link:
            self._use_next()
        elif self._newer.pop(link, None) is not None:
            self._go_on_with_log()

    def _use_next(self) -> None:
        """Give up the link for the next newer one, if there is any."""
        link = next(iter(self._newer), 0)
        self._use(link, self._newer.pop(link, None))

    def came(self, link: int, n: int, data: bytes) -> None:
        """Take the frame of a link that has this number there."""
        while link in self._newer:
            self._use_next()
        if link != self._link:
            # It was given up.
            return
        try:
            self._take(read(data))
        except FrameUnreadable as error:
            # The rest must arrive.
            self._arrivals.failures += 1
            log.error("shard %d has sent messages that are unreadable: %s", self._shard, error)
        self._came = n
        self._go_on_with_log()

    def _take(self, frame: Frame) -> None:
        places = self._places_in(frame) if frame.behind else _NOWHERE
        waiting = self._waiting(frame, places) if self._held or places else ()
        if waiting:
            self._arrivals.hear(frame)
            entries = frame.all_entries()
            found = self._arrivals.sort_all([e for e in entries if e.channel not in waiting])
            for entry in entries:
                if entry.channel in waiting:
                    self._hold(entry, places.get(entry.channel))
        else:
            found = self._arrivals.sort(frame)
        if found.at_once:
            self._arrivals.show_direct(found.at_once, places)
        if found.useless:
            self.pruning.count_useless(found.useless)

    def _places_in(self, frame: Frame) -> Mapping[str, Place]:
        """Return the places in the log that channels of the frame follow."""
        found = {}
        for channel, text in frame.behind.items():
            with suppress(PlaceUnreadable):
                found[channel] = place_of(text)
        early = [
            channel
            for channel, place in found.items()
            # What waits is counted when it is shown.
            if channel not in self._held and self._is_given_up(place) and not self._is_read(place)
        ]
        for channel in early:
            # Durable sessions get these at once, too.
            del found[channel]
        if early:
            count = sum(1 for each in frame.all_entries() if each.channel in early)
            self._arrivals.early.count(Cause.SENDER_STORE, count)
        return found

    def _waiting(self, frame: Frame, places: Mapping[str, Place]) -> set[str]:
        """Return the channels of the frame that wait for a place in the log."""
        waiting = set()
        for channel in frame.channels:
            place = places.get(channel)
            if channel in self._held or not self._is_read(place):
                waiting.add(channel)
        return waiting

    def _hold(self, entry: LogEntry, place: Place | None) -> None:
        self._held.setdefault(entry.channel, deque()).append(
            _Held(entry, place, self._core_clock())
        )
        self._bytes += entry.size

    def go_on(self) -> None:
        """Show what has waited for too long, or give a link up for which others wait."""
        self.pruning.tick()
        if self._awaited is not None and self._clock() - self._awaited[1] > _LINK_WAIT_S:
            self._cut(self._awaited[0])
        elif self.pruning.is_late:
            self._cut(self._link)
        if self._held:
            self.show_held()
            self._give_up()

    def _cut(self, link: int) -> None:
        source = self._source if link == self._link else self._newer.get(link)
        if source is not None:
            log.warning("a link to shard %d is cut: it does not bring what it should", self._shard)
            self.lost(link)
            source.cut()

    def show_held(self) -> None:
        """Show what has waited for the log, as far as that is read or given up."""
        for channel in [*self._held]:
            held, is_early = self._held[channel], False
            while held and (self._is_read(held[0].place) or self._is_given_up(held[0].place)):
                entry, place, _ = self._take_first(channel)
                if place is not None:
                    is_early = not self._is_read(place)
                if is_early:
                    self._arrivals.early.count(Cause.SENDER_STORE, 1)
                self._show(entry, _NOWHERE if is_early or place is None else {channel: place})

    def _give_up(self) -> None:
        """Show what has waited for too long, and what has waited for the same."""
        while self._held:
            first = min((each[0] for each in self._held.values()), key=lambda each: each.since)
            if self._bytes <= MOST_BYTES and self._core_clock() - first.since < WAIT_S:
                return
            if not self._is_given_up(first.place):
                # What follows does not wait for the same once more.
                self._given_up = first.place or NOWHERE
            self.show_held()

    def _is_given_up(self, place: Place | None) -> bool:
        return place is None or has_reached(self._given_up, place)

    def _take_first(self, channel: str) -> _Held:
        held = self._held[channel]
        first = held.popleft()
        self._bytes -= first.entry.size
        if not held:
            del self._held[channel]
        return first

    def _show(self, entry: LogEntry, places: Mapping[str, Place]) -> None:
        self._arrivals.show_direct(self._arrivals.sort_all((entry,)).at_once, places)

    def has_come(self, text: str) -> bool:
        """Return whether that many frames of that link have come, or the link is lost."""
        link, _, n = text.partition(" ")
        if not (link.isdecimal() and n.isdecimal()):
            return True
        number, count = int(link), int(n)
        came = self._came if number == self._link else 0
        has_come = came >= count or not (number == self._link or number in self._newer)
        if has_come:
            self._awaited = None
        elif self._awaited is None or self._awaited[0] != number:
            self._awaited = number, self._clock()
        return has_come

    def _is_read(self, place: Place | None) -> bool:
        """Return whether the log is read up to this place."""
        if place is None:
            return True
        return self.reader is not None and has_reached(self.reader.at_once, place)

    def _go_on_with_log(self) -> None:
        if self.reader is not None:
            self.reader.go_on()


class Inlet:
    """What all other shards send over links.

    Args:
        arrivals: What takes it, by number of the shard.
        pruning: What those shards leave out.
        stamp: Returns numbers for links, each once.
        clock: Returns the time of the event loop, and `core_clock` the time of the core.
    """

    def __init__(
        self,
        arrivals: Mapping[int, Arrivals],
        pruning: Mapping[int, Pruning],
        stamp: Callable[[], int],
        clock: Callable[[], float],
        core_clock: Callable[[], float],
    ) -> None:
        self.direct = {
            shard: DirectArrivals(shard, each, pruning[shard], clock, core_clock)
            for shard, each in arrivals.items()
        }
        self._stamp = stamp

    def open_link(self, shard: int, source: Source) -> int:
        """Return the number of the link on which a shard is about to send."""
        number = self._stamp()
        self.direct[shard].open(number, source)
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
