"""Rows: facts that shards tell each other, in order with messages. Each stands in a shard or not.

A row is the pattern of durable subscriptions. A shard that accepts a publish must know whether any
durable receiver gets it, here or elsewhere: then the publish is kept before it is answered. So the
first durable subscription to a pattern in a shard is answered when all shards know of it; see
`agreement.py`. Further rows have names that no pattern has: see `OthersPort`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from holdfast.cluster.frames import Facts
from holdfast.delivery.basics.channels import TOPIC_ROW, lookups

# The value of a row that stands.
STANDS: Final = "1"
# The fact that a shard has not told any since the deployment was divided; see `divide.lua`.
UNTOLD: Final = "untold"
# How many channels are remembered with their shards.
_MOST_CACHED: Final = 20_000


class OthersRows:
    """The rows of other shards, as far as this one knows.

    Args:
        others: The numbers of the other shards. Nothing is known about them at first.
    """

    def __init__(self, others: Iterable[int]) -> None:
        self._shards: dict[str, set[int]] = {}
        # Shards whose facts could not be read, or that have not told any; and those that may have
        # told some without waiting until this one knows them.
        self.unknown = {*others}
        self._doubted: set[int] = set()
        # The channels that any of them has said to be topics, and which of these are new.
        self.topics: set[str] = set()
        self._new_topics: list[str] = []
        self._cache: dict[str, tuple[int, ...]] = {}

    def begin(self, shard: int, stored: Iterable[str]) -> None:
        """Take over all rows of a shard as its store has them."""
        for row in [each for each, shards in self._shards.items() if shard in shards]:
            self._remove(shard, row)
        self.unknown.discard(shard)
        self.learn(shard, dict.fromkeys(stored, STANDS))

    def lose(self, shard: int) -> None:
        """Treat all publishes as if they had durable receivers there, until its facts are read."""
        self.unknown.add(shard)
        self._cache.clear()

    def doubt(self, shard: int) -> None:
        """Treat all publishes as if they had durable receivers there, whatever is read."""
        self._doubted.add(shard)
        self._cache.clear()

    def trust(self, shard: int) -> None:
        """Go by what is read of a shard that was doubted."""
        self._doubted.discard(shard)
        self._cache.clear()

    def learn(self, shard: int, facts: Facts) -> None:
        """Take note of facts that a shard has told."""
        for name, value in facts.items():
            if name == UNTOLD:
                self._learn_whether_told(shard, is_untold=bool(value))
            elif value:
                self._add(shard, name)
            else:
                self._remove(shard, name)
        self._cache.clear()

    def _learn_whether_told(self, shard: int, *, is_untold: bool) -> None:
        if is_untold:
            self.unknown.add(shard)
        else:
            self.unknown.discard(shard)

    def _add(self, shard: int, row: str) -> None:
        self._shards.setdefault(row, set()).add(shard)
        channel = row.removeprefix(TOPIC_ROW)
        if channel != row and channel not in self.topics:
            self.topics.add(channel)
            self._new_topics.append(channel)

    def take_new_topics(self) -> Sequence[str]:
        """Take the topics that were told since the last call."""
        found, self._new_topics = self._new_topics, []
        return found

    def _remove(self, shard: int, row: str) -> None:
        shards = self._shards.get(row)
        if shards is not None:
            shards.discard(shard)
            if not shards:
                del self._shards[row]
                if row.startswith(TOPIC_ROW):
                    self.topics.discard(row.removeprefix(TOPIC_ROW))

    def shards(self, channel: str) -> tuple[int, ...]:
        """Return the shards that may have durable receivers of a channel."""
        if not (self._shards or self.unknown or self._doubted):
            return ()
        found = self._cache.get(channel)
        if found is None:
            if len(self._cache) >= _MOST_CACHED:
                self._cache.clear()
            found = self._cache[channel] = tuple(sorted({*self._matching(channel)}))
        return found

    def stands(self, row: str) -> bool | None:
        """Return whether a row stands in a shard; None if one may not have told it yet."""
        is_sure = not (self.unknown or self._doubted)
        return bool(self._shards.get(row)) or (False if is_sure else None)

    def _matching(self, channel: str) -> Iterator[int]:
        yield from self.unknown
        yield from self._doubted
        for pattern in lookups(channel):
            yield from self._shards.get(pattern, ())
