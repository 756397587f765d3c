"""Holds messages that are not stored back from durable sessions, which get stored ones first.

A stored message of another shard reaches a durable session when the store of this shard has it,
which may be slow or away. What follows it on its channel and is not stored waits for that, a few
seconds at most.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from holdfast.bayeux.publish.tap import Arrived
from holdfast.cluster.places import NOWHERE, Place, has_reached
from holdfast.sharding.early import Cause, Early

if TYPE_CHECKING:
    from holdfast.cluster.reading import LogReader

# How long messages wait, and how many bytes of them.
WAIT_S: Final = 5.0
MOST_BYTES: Final = 8 * 1024 * 1024
# How many channels are told apart.
_MOST: Final = 10_000


class _Held(NamedTuple):
    """A message whose durable receivers wait."""

    arrived: Arrived
    # The place behind the stored messages that they get first.
    behind: Place
    since: float


class KeptFirst:
    """What the log of one other shard has for durable sessions here, and what waits for that.

    Args:
        early: Counts what did not wait any longer.
        show: Delivers a message to the receivers that have not got it.
    """

    def __init__(
        self, clock: Callable[[], float], early: Early, show: Callable[[Arrived], None]
    ) -> None:
        self._clock = clock
        self._early = early
        self._show = show
        # Set once the log of that shard is read.
        self.reader: LogReader[Any] | None = None
        # By channel, the place behind its last message that the store does not have yet; the same
        # for all channels, if there are too many.
        self._kept: dict[str, Place] = {}
        self._all: Place | None = None
        self._held: deque[_Held] = deque()
        self._bytes = 0
        self._channels: Counter[str] = Counter()
        # The place for which nothing waits any more: the store has not reached it in time.
        self._given_up = NOWHERE

    def expect(self, channel: str, place: Place) -> None:
        """Take note that a message of this channel before this place is to be stored."""
        if len(self._kept) >= _MOST and channel not in self._kept:
            self._kept.clear()
            self._all = place
        self._kept[channel] = place

    def place_before(self, channel: str) -> Place | None:
        """Return the place of stored messages of the channel that the log had before."""
        # What it had when this process began may have some, too.
        since = None if self.reader is None else self.reader.since
        return self._kept.get(channel, self._all) or since

    def holds(self, arrived: Arrived, behind: Place | None) -> bool:
        """Deliver a message later to its durable receivers, behind this place in the log.

        Returns False if they need not wait.
        """
        channel = arrived.message.channel
        if channel not in self._channels:
            if behind is None or self._has_shown(behind):
                return False
            if has_reached(self._given_up, behind):
                self._early.count(Cause.OWN_STORE, 1)
                return False
        self._held.append(_Held(arrived, behind or NOWHERE, self._clock()))
        self._bytes += len(arrived.message.wire)
        self._channels[channel] += 1
        return True

    def _has_shown(self, place: Place) -> bool:
        return self.reader is not None and has_reached(self.reader.shown, place)

    def shown(self, place: Place, channels: Iterable[str]) -> None:
        """Take note that stored messages of these channels are shown up to this place."""
        for channel in channels:
            kept = self._kept.get(channel)
            if kept is not None and has_reached(place, kept):
                del self._kept[channel]
        if self._all is not None and has_reached(place, self._all):
            self._all = None
        if self._held:
            self._release(place)

    def _release(self, place: Place, *, is_early: bool = False) -> None:
        """Show what waits for a place up to this one."""
        held, self._held = self._held, deque()
        waiting: set[str] = set()
        for each in held:
            channel = each.arrived.message.channel
            if channel in waiting or not has_reached(place, each.behind):
                waiting.add(channel)
                self._held.append(each)
            else:
                if is_early:
                    self._early.count(Cause.OWN_STORE, 1)
                self._let_go(each)

    def _let_go(self, held: _Held) -> None:
        channel = held.arrived.message.channel
        self._bytes -= len(held.arrived.message.wire)
        self._channels[channel] -= 1
        if not self._channels[channel]:
            del self._channels[channel]
        self._show(held.arrived)

    def tick(self) -> None:
        """Show what has waited for too long, and what has waited for the same."""
        now, size = self._clock(), self._bytes
        is_late = False
        for each in self._held:
            if size <= MOST_BYTES and now - each.since < WAIT_S:
                break
            is_late = True
            size -= len(each.arrived.message.wire)
            # What follows does not wait for the same once more.
            if not has_reached(self._given_up, each.behind):
                self._given_up = each.behind
        if is_late:
            self._release(self._given_up, is_early=True)
