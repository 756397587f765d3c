"""The subscriptions to a channel, by its name and the patterns that cover it."""

from collections.abc import Iterator, Sequence
from typing import Generic, Protocol, TypeVar

# Channels whose subscriptions are remembered; when there are more, all are looked up again.
_MOST_CACHED = 10_000


class _Subscribes(Protocol):
    @property
    def channel(self) -> str: ...


S = TypeVar("S", bound=_Subscribes)


def covering(channel: str) -> Iterator[str]:
    """Yield the channel itself, and all patterns that match it."""
    yield channel
    parent, _, _ = channel.rpartition("/")
    yield f"{parent}/*"
    yield f"{parent}/**"
    while parent:
        parent, _, _ = parent.rpartition("/")
        yield f"{parent}/**"


class SubscriptionTable(Generic[S]):
    """Subscriptions by channel or pattern."""

    def __init__(self) -> None:
        self._by_channel: dict[str, list[S]] = {}
        self._found: dict[str, Sequence[S]] = {}

    def __iter__(self) -> Iterator[S]:
        for subscriptions in self._by_channel.values():
            yield from subscriptions

    def add(self, subscription: S) -> None:
        self._by_channel.setdefault(subscription.channel, []).append(subscription)
        self._found.clear()

    def remove(self, subscription: S) -> bool:
        """Remove it, if it is there; return whether it was the last one for its channel."""
        present = self._by_channel.get(subscription.channel, [])
        if subscription not in present:
            return False
        present.remove(subscription)
        if not present:
            del self._by_channel[subscription.channel]
        self._found.clear()
        return not present

    def find(self, channel: str) -> Sequence[S]:
        """Return the subscriptions that get messages of this channel."""
        found = self._found.get(channel)
        if found is None:
            if len(self._found) >= _MOST_CACHED:
                self._found.clear()
            found = self._found[channel] = [
                subscription
                for pattern in covering(channel)
                for subscription in self._by_channel.get(pattern, ())
            ]
        return found
