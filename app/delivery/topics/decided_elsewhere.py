"""Topics among several shards: the home of a channel decides about its topic.

The other shards have subscribers and messages of the topic, too. They count these, and tell the
home. Their counts have no effect on a state here.
"""

from typing import Protocol

from holdfast.delivery.topics.configured import ORDINARY_CONFIG, ErasureIds, Topic, Topics
from holdfast.delivery.topics.states import TopicInput


class CountsPort(Protocol):
    """Counts what this shard has of topics about which other shards decide."""

    def count(self, topic: "FarTopic", copies: int, /) -> None:
        """Count this many queues more, or fewer, that have messages of the topic."""
        ...

    def erased(self, topic: "FarTopic", /) -> None:
        """Take note that the topic was erased here, too."""
        ...


class FarTopic(Topic):
    """A topic about which another shard decides."""

    __slots__ = ("_counts", "erased_at", "is_idle", "is_told")

    def __init__(self, name: str, topics: Topics, counts: CountsPort) -> None:
        super().__init__(name, ORDINARY_CONFIG, topics)
        self._counts = counts
        # What the home called its last erasure that was carried out here.
        self.erased_at = 0
        # Whether the home knows of a subscription or a message here.
        self.is_told = False
        # Whether nothing has happened to it for a while.
        self.is_idle = False

    def advance(self, seen: TopicInput) -> None:
        """Do nothing: the home decides."""

    def publish(self) -> Topic:
        return self

    def refer(self, copies: int = 1) -> None:
        self._counts.count(self, copies)

    def release(self, copies: int = 1) -> None:
        self._counts.count(self, -copies)

    def keep(self) -> None:
        """Do nothing: the home has the history."""

    def forget(self) -> None:
        """Do nothing, either."""

    def erase(self, named: ErasureIds, *, is_forced: bool) -> None:
        self.erased_at = named.erased
        self._counts.erased(self)
