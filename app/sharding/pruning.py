"""Which channels another shard leaves out of its link, because they have no receivers here.

Messages that are not stored go to all shards. As in multicast routing, a shard prunes a channel
whose messages came in several frames without a receiver, and grafts it before it confirms a
subscribe. What the sender has pruned counts for one link, and ends with it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

# So many frames with messages without a receiver prune their channel.
USELESS: Final = 4
# How many channels are counted and pruned before both start over: senders may use ever new ones.
MOST: Final = 10_000
# How long a graft may take before the link is cut.
PATIENCE_S: Final = 2.0


class Source(Protocol):
    """The link by which this shard gets messages of another one."""

    def cut(self) -> None:
        """End the link."""
        ...

    def prune(self, channels: Sequence[str], /) -> None:
        """Ask for no more messages of these channels."""
        ...

    def graft(self, channel: str, number: int, /) -> None:
        """Ask for messages of the channel again, or of all, if it is empty.

        The sender confirms the number when it knows.
        """
        ...


class Pruning:
    """Prunes and grafts channels of one other shard, whose link may change."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._source: Source | None = None
        # By channel, how many frames had useless messages; and the channels to prune.
        self._useless: dict[str, int] = {}
        self._due: dict[str, None] = {}
        self._pruned: set[str] = set()
        # The number of the last graft, and those without a confirmation, with their times.
        self._last = 0
        self._grafting: deque[tuple[int, float]] = deque()
        # What waits for grafts, in their order.
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def begin(self, source: Source | None) -> None:
        """Expect messages on a link, on which nothing is pruned so far, or on none.

        It may be the same link, on which none came for a while: the sender is told to forget what
        was pruned, and confirms that and earlier grafts.
        """
        former, self._source = self._source, source
        if source is not None and source is former and self._pruned:
            self._graft(source, "")
        self._useless.clear()
        self._due.clear()
        self._pruned.clear()
        if source is not former:
            self.grafted(self._last)

    def count_useless(self, channels: Iterable[str]) -> None:
        """Count a frame for each of these channels, which have no receivers."""
        if self._source is None:
            return
        for channel in channels:
            count = self._useless.get(channel, 0) + 1
            if count < USELESS:
                if len(self._useless) >= MOST:
                    self._useless.clear()
                self._useless[channel] = count
            elif channel not in self._pruned and len(self._due) < MOST:
                self._useless.pop(channel, None)
                self._due[channel] = None

    def tick(self) -> None:
        """Prune what is to be pruned: together, because each call wakes the sender."""
        if self._source is None or not self._due:
            return
        if len(self._pruned) + len(self._due) > MOST:
            self._graft(self._source, "")
        due, self._due = [*self._due], {}
        self._pruned.update(due)
        self._source.prune(due)

    def join(self, channel: str, *, is_pattern: bool) -> None:
        """Graft what a receiver has subscribed to: a channel, or any that may match a pattern."""
        if self._source is None:
            return
        if is_pattern:
            self._useless.clear()
            self._due.clear()
            if self._pruned:
                self._graft(self._source, "")
        else:
            self._useless.pop(channel, None)
            self._due.pop(channel, None)
            if channel in self._pruned:
                self._graft(self._source, channel)

    def _graft(self, source: Source, channel: str) -> None:
        if channel:
            self._pruned.discard(channel)
        else:
            self._pruned.clear()
        self._last += 1
        self._grafting.append((self._last, self._clock()))
        source.graft(channel, self._last)

    @property
    def is_grafting(self) -> bool:
        """Whether the sender may not know all grafts yet."""
        return bool(self._grafting)

    def when_grafted(self, done: Callable[[], None]) -> None:
        """Call `done` when the sender knows all grafts so far, or sends nothing on this link."""
        self._waiting.append((self._last, done))

    def grafted(self, number: int) -> None:
        """Take note that the sender knows the grafts up to this number."""
        while self._grafting and self._grafting[0][0] <= number:
            self._grafting.popleft()
        while self._waiting and self._waiting[0][0] <= number:
            self._waiting.popleft()[1]()

    @property
    def is_late(self) -> bool:
        """Whether the sender does not confirm a graft."""
        return bool(self._grafting) and self._clock() - self._grafting[0][1] > PATIENCE_S


class Prunings:
    """What all other shards leave out."""

    def __init__(self, prunings: Sequence[Pruning]) -> None:
        self._prunings = prunings

    def join(self, channel: str, *, is_pattern: bool) -> None:
        """Graft a channel, or any that may match a pattern."""
        for each in self._prunings:
            each.join(channel, is_pattern=is_pattern)

    @property
    def are_grafting(self) -> bool:
        """Whether any of them may not know all grafts yet."""
        return any(each.is_grafting for each in self._prunings)

    def when_grafted(self, done: Callable[[], None]) -> None:
        """Call `done` when all know the grafts so far."""
        grafting = [each for each in self._prunings if each.is_grafting]
        if not grafting:
            done()
            return
        left = len(grafting)

        def grafted() -> None:
            nonlocal left
            left -= 1
            if not left:
                done()

        for each in grafting:
            each.when_grafted(grafted)
