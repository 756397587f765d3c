"""Routes: the receivers of each channel."""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from holdfast.delivery.channels import Channel

R = TypeVar("R", bound=Hashable)

# The cache is dropped when it holds more channels, or more receivers in total, than this.
_CACHED_CHANNELS = 20_000
_CACHED_RECEIVERS = 1_000_000


class Routes(Generic[R]):
    """Subscriptions by pattern; returns each receiver of a channel once, however many match."""

    def __init__(self) -> None:
        self._subscribers: dict[str, dict[R, None]] = {}
        self._cache: dict[str, tuple[R, ...]] = {}
        self._cached = 0
        # The subscriptions of all receivers.
        self.count = 0

    def __contains__(self, pattern: str) -> bool:
        return pattern in self._subscribers

    def __len__(self) -> int:
        return len(self._subscribers)

    def sizes(self) -> Iterator[tuple[str, int]]:
        """Return each pattern with the number of its subscribers."""
        return ((pattern, len(each)) for pattern, each in self._subscribers.items())

    def add(self, pattern: Channel, receiver: R) -> None:
        subscribers = self._subscribers.setdefault(pattern.name, {})
        if receiver not in subscribers:
            subscribers[receiver] = None
            self.count += 1
        self._forget(pattern.name)

    def remove(self, pattern: str, receiver: R) -> None:
        subscribers = self._subscribers.get(pattern)
        if subscribers is None or receiver not in subscribers:
            return
        del subscribers[receiver]
        self.count -= 1
        if not subscribers:
            del self._subscribers[pattern]
        self._forget(pattern)

    def receivers(self, channel: Channel) -> tuple[R, ...]:
        """Return the receivers of a message on this channel, each once."""
        try:
            return self._cache[channel.name]
        except KeyError:
            return self._look_up(channel)

    def _look_up(self, channel: Channel) -> tuple[R, ...]:
        found: dict[R, None] = {}
        for name in channel.lookups:
            if name in self._subscribers:
                found |= self._subscribers[name]
        receivers = tuple(found)
        if len(self._cache) >= _CACHED_CHANNELS or self._cached >= _CACHED_RECEIVERS:
            self._clear()
        self._cache[channel.name] = receivers
        self._cached += len(receivers)
        return receivers

    def _forget(self, pattern: str) -> None:
        if pattern.endswith("*"):
            self._clear()
        else:
            self._cached -= len(self._cache.pop(pattern, ()))

    def _clear(self) -> None:
        self._cache.clear()
        self._cached = 0
