"""Routes: the receivers of each channel."""

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar

from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.routing.selections import Candidate, Filter, Filters, Selection

R = TypeVar("R", bound=Hashable)

# The cache is dropped when it exceeds this number of channels, or the total of receivers below.
_CACHED_CHANNELS = 20_000
_CACHED_RECEIVERS = 1_000_000


class Routes(Generic[R]):
    """Subscriptions by pattern. Returns each receiver of a channel once, however many match."""

    def __init__(self) -> None:
        # None means that the subscription selects all messages.
        self._subscribers: dict[str, dict[R, Selection | None]] = {}
        self._cache: dict[str, tuple[R, ...]] = {}
        self._cached = 0
        # By cached channel: the receivers that do not select all messages.
        self._selective: dict[str, dict[R, list[Selection]]] = {}
        # By cached channel: the filters of those receivers, each once.
        self._filters: dict[str, Sequence[Filter]] = {}
        # The number of subscriptions, and how many of them select messages.
        self.count = self.selecting = 0
        self.filters = Filters()

    def __contains__(self, pattern: str) -> bool:
        return pattern in self._subscribers

    def __len__(self) -> int:
        return len(self._subscribers)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Return each pattern with the number of its subscribers."""
        return ((pattern, len(each)) for pattern, each in self._subscribers.items())

    def add(self, pattern: Channel, receiver: R, selection: Selection | None = None) -> None:
        """Add a subscription, or replace the selection of an existing one."""
        subscribers = self._subscribers.setdefault(pattern.name, {})
        if receiver not in subscribers:
            self.count += 1
        self._select(subscribers.get(receiver), selection)
        subscribers[receiver] = selection
        self._forget(pattern.name)

    def _select(self, before: Selection | None, after: Selection | None) -> None:
        """Count the selection of a subscription."""
        self.filters.take(after)
        self.filters.release(before)
        self.selecting += (after is not None) - (before is not None)

    def remove(self, pattern: str, receiver: R) -> None:
        subscribers = self._subscribers.get(pattern)
        if subscribers is None or receiver not in subscribers:
            return
        self._select(subscribers.pop(receiver), None)
        self.count -= 1
        self._forget(pattern)
        if not subscribers:
            del self._subscribers[pattern]

    def subscribers(self, pattern: str) -> Sequence[R]:
        """Return the receivers with a subscription to exactly this channel or pattern."""
        return list(self._subscribers.get(pattern, ()))

    def receivers(self, channel: Channel) -> tuple[R, ...]:
        """Return the receivers of a message on this channel, each once."""
        try:
            return self._cache[channel.name]
        except KeyError:
            return self._look_up(channel)

    def selecting_receivers(self, channel: Channel, candidate: Candidate) -> Sequence[R]:
        """Return the receivers of the channel with a subscription that selects this message."""
        receivers = self.receivers(channel)
        selective = self._selective.get(channel.name)
        if selective is None:
            return receivers
        return [
            each
            for each in receivers
            if each not in selective or any(map(candidate.suits, selective[each]))
        ]

    def filters_on(self, channel: Channel) -> Sequence[Filter]:
        """Return the filters of the channel's receivers, each once."""
        self.receivers(channel)
        return self._filters.get(channel.name, ())

    def _look_up(self, channel: Channel) -> tuple[R, ...]:
        found: dict[R, Selection | None] = {}
        for name in channel.lookups:
            if name in self._subscribers:
                found |= self._subscribers[name]
        receivers = tuple(found)
        if len(self._cache) >= _CACHED_CHANNELS or self._cached >= _CACHED_RECEIVERS:
            self._clear()
        self._cache[channel.name] = receivers
        self._cached += len(receivers)
        if self.selecting:
            self._note_selective(channel)
        return receivers

    def _note_selective(self, channel: Channel) -> None:
        """Record the receivers without a matching subscription that selects all messages."""
        selective: dict[R, list[Selection]] = {}
        unselective: set[R] = set()
        for name in channel.lookups:
            for receiver, selection in self._subscribers.get(name, {}).items():
                if selection is None:
                    unselective.add(receiver)
                else:
                    selective.setdefault(receiver, []).append(selection)
        for receiver in unselective & selective.keys():
            del selective[receiver]
        if selective:
            self._selective[channel.name] = selective
            found = [each.filter for its in selective.values() for each in its]
            self._filters[channel.name] = [each for each in dict.fromkeys(found) if each]

    def _forget(self, pattern: str) -> None:
        if pattern.endswith("*"):
            self._clear()
        else:
            self._cached -= len(self._cache.pop(pattern, ()))
            self._selective.pop(pattern, None)
            self._filters.pop(pattern, None)

    def _clear(self) -> None:
        self._cache.clear()
        self._selective.clear()
        self._filters.clear()
        self._cached = 0
