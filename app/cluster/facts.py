"""Facts that shards tell each other: which patterns have durable subscriptions where.

A shard that accepts a publish must know whether any durable receiver gets it, here or elsewhere:
then the publish is kept before it is answered. So the first durable subscription to a pattern in a
shard is answered when all shards know of it; see `agreement.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from holdfast.cluster.frames import Facts
from holdfast.delivery.basics.channels import lookups

# The names of these facts; behind it, the pattern.
_DURABLE: Final = "durable "
_HOLDS: Final = "1"
# The fact that a shard has not told any since the deployment was divided; see `divide.lua`.
UNTOLD: Final = "untold"
# What a pattern begins with that stands for a channel that is a topic, although no rule says so.
TOPIC: Final = "topic"
# How many channels are remembered with their shards.
_MOST_CACHED: Final = 20_000


class OwnInterest:
    """The patterns that have durable subscriptions in this shard."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, pattern: str) -> Facts:
        """Count a subscription. Returns the fact that it changes, if it is the first."""
        count = self._counts[pattern] = self._counts.get(pattern, 0) + 1
        return {_DURABLE + pattern: _HOLDS} if count == 1 else {}

    def remove(self, pattern: str) -> Facts:
        """Count a subscription no more. Returns the fact that it changes, if it was the last."""
        count = self._counts[pattern] - 1
        if count:
            self._counts[pattern] = count
            return {}
        del self._counts[pattern]
        return {_DURABLE + pattern: ""}

    def facts(self) -> Facts:
        """Return all facts that hold: for a store that has lost some, and at the beginning."""
        return {_DURABLE + pattern: _HOLDS for pattern in self._counts}

    def facts_of(self, patterns: Iterable[str]) -> Facts:
        """Return the facts of these patterns that hold."""
        return {_DURABLE + each: _HOLDS for each in patterns if each in self._counts}

    def patterns_of(self, names: Iterable[str]) -> Sequence[str]:
        """Return the patterns that facts with these names are about."""
        return [each[len(_DURABLE) :] for each in names]

    def corrections(self, stored: Iterable[str]) -> Facts:
        """Return what makes the facts with these names in the store the ones that hold."""
        own = self.facts()
        gone = {name: "" for name in stored if _is_ours(name) and name not in own}
        return {**own, **gone}


class OthersInterest:
    """The patterns that have durable subscriptions in other shards, as far as this one knows.

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
        """Take over all facts of a shard as its store has them, by their names."""
        for pattern in [each for each, shards in self._shards.items() if shard in shards]:
            self._remove(shard, pattern)
        self.unknown.discard(shard)
        self.learn(shard, dict.fromkeys(stored, _HOLDS))

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
            if not name.startswith(_DURABLE):
                continue
            pattern = name[len(_DURABLE) :]
            if value:
                self._add(shard, pattern)
            else:
                self._remove(shard, pattern)
        self._cache.clear()

    def _learn_whether_told(self, shard: int, *, is_untold: bool) -> None:
        if is_untold:
            self.unknown.add(shard)
        else:
            self.unknown.discard(shard)

    def _add(self, shard: int, pattern: str) -> None:
        self._shards.setdefault(pattern, set()).add(shard)
        channel = pattern.removeprefix(TOPIC)
        if channel != pattern and channel not in self.topics:
            self.topics.add(channel)
            self._new_topics.append(channel)

    def take_new_topics(self) -> Sequence[str]:
        """Take the topics that were told since the last call."""
        found, self._new_topics = self._new_topics, []
        return found

    def _remove(self, shard: int, pattern: str) -> None:
        shards = self._shards.get(pattern)
        if shards is not None:
            shards.discard(shard)
            if not shards:
                del self._shards[pattern]
                if pattern.startswith(TOPIC):
                    self.topics.discard(pattern.removeprefix(TOPIC))
        self._cache.clear()

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

    def says(self, name: str) -> bool | None:
        """Return whether a shard has told this very fact; None if one may not have told it yet."""
        is_sure = not (self.unknown or self._doubted)
        return bool(self._shards.get(name)) or (False if is_sure else None)

    def _matching(self, channel: str) -> Iterator[int]:
        yield from self.unknown
        yield from self._doubted
        for pattern in lookups(channel):
            yield from self._shards.get(pattern, ())


def _is_ours(name: str) -> bool:
    return name.startswith(_DURABLE) or name == UNTOLD
