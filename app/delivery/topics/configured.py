"""Topics: channels with a configuration and a life cycle.

Most channels are not topics and cost nothing here. A topic exists if the channel's rule says so, or
if a publish configured it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from holdfast.delivery.basics.sorted_names import SortedNames
from holdfast.delivery.basics.timers import Timed
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.topics.sender_quota import SenderQuota
from holdfast.delivery.topics.states import TopicInput, TopicState, state_of, step

# The largest size that a publisher may set. JavaScript counts no further.
MOST_BYTES: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The configuration of one topic, set by the operator or a publisher."""

    # How long an unreferenced topic stays; negative means until it is erased.
    destroy_delay_ms: int = 60_000
    # Whether it refuses a second message.
    is_readonly: bool = False
    # How much its history keeps; None means as much as the channel's rule says.
    depth: HistoryDepth | None = None


ORDINARY_CONFIG = TopicConfig()


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """The stored form of a topic. Its state follows from other stored data."""

    # None means the configuration in the rule.
    config: TopicConfig | None = None
    is_erased: bool = False


class ErasureIds(NamedTuple):
    """The ids of the events of one erasure. Its home gives them to all shards."""

    # For the sessions whose subscriptions ended with it, and for all others that hear of it.
    unsubscribed: int
    erased: int


class TopicsElsewhere(Protocol):
    """The other shards, as topics see them."""

    def topic(self, name: str, /) -> "Topic | None":
        """Return the topic if another shard decides about it."""
        ...

    def subscriptions_changed(self, name: str, /) -> bool:
        """Take note of exact subscriptions here. Returns whether another shard decides."""
        ...

    def subscribers(self, name: str, /) -> int:
        """Return how many exact subscriptions the others have told."""
        ...

    def hurry(self, shard: int, /) -> None:
        """Let a shard know everything before it gets the next call."""
        ...

    @property
    def may_erase(self) -> bool:
        """Whether all of them can be told now that a topic is erased."""
        ...

    def when_erased(
        self, names: Sequence[str], done: Callable[[bool], None], /
    ) -> Callable[[], None]:
        """Call `done` once these topics, which are about to be erased, are so everywhere.

        It hears whether all shards have said so in time. Returns what to call when they are erased
        here.
        """
        ...

    def has_ended(self, name: str, /) -> None:
        """Take note that a topic had ended before it was erased."""
        ...

    def erase(self, topic: "Topic", named: ErasureIds, /, *, is_forced: bool) -> None:
        """Let the others erase the topic, behind all its messages so far."""
        ...

    def end_unless_used(self, topic: "Topic", /) -> None:
        """End the topic if none of the others refers to it, or ask them again later."""
        ...

    def stay(self, topic: "Topic", /) -> None:
        """Take note that the topic has changed: it does not end now."""
        ...


class Topic(Timed):
    """One topic, with the conditions that determine its state."""

    __slots__ = (
        "config",
        "discards_before",
        "elsewhere",
        "is_configured",
        "is_subscribed",
        "kept",
        "makers",
        "name",
        "queued",
        "state",
        "stored",
        "topics",
    )

    def __init__(self, name: str, config: TopicConfig, topics: "Topics") -> None:
        super().__init__()
        self.name = name
        self.config = config
        self.topics = topics
        # The address and subject whose quotas it counts for; empty if it was restored.
        self.makers: Sequence[str] = ()
        # The four conditions. Two are counts: its messages in the history, and its entries in
        # queues.
        self.is_configured = False
        self.kept = self.queued = 0
        # Entries in queues of other shards, as these have told.
        self.elsewhere = 0
        # Messages with lower ids are discarded, because the topic was erased by force.
        self.discards_before = 0
        self.is_subscribed = False
        # Only `advance` changes it.
        self.state = TopicState.DEAD
        # The record in the store, if any.
        self.stored: TopicRecord | None = None

    def advance(self, seen: TopicInput) -> None:
        """Update the state after a condition changed. Raises `IllegalTopic`."""
        is_one_more = seen is TopicInput.SUBSCRIBED or seen is TopicInput.REFERRED
        if is_one_more and self.state is TopicState.ALIVE:
            # One more reference changes nothing.
            return
        found = state_of(
            is_configured=self.is_configured,
            has_history=self.kept > 0,
            is_queued=self.is_queued,
            is_subscribed=self.is_subscribed,
        )
        step(self.state, seen, found)
        stays_alive = self.state is TopicState.ALIVE and found is TopicState.ALIVE
        if stays_alive and seen is not TopicInput.CONFIGURED:
            # Other references are left.
            return
        self.topics.note(self, found)

    @property
    def is_queued(self) -> bool:
        """Whether any queue has its messages."""
        return self.queued > 0 or self.elsewhere > 0

    def time_out(self) -> None:
        """End the topic, which had no references for its destroy delay."""
        elsewhere = self.topics.elsewhere
        if elsewhere is None:
            self.end()
        else:
            elsewhere.end_unless_used(self)

    def end(self) -> None:
        """End the topic, to which nothing refers anywhere."""
        self.is_configured = False
        self.advance(TopicInput.TIMED_OUT)

    def publish(self) -> "Topic":
        """Configure the topic for a publish to it. Returns the topic of this name."""
        return self.topics.configure(self)

    def refer(self, copies: int = 1) -> None:
        """Count this many queues that got a message of the topic."""
        self.queued += copies
        if copies and self.queued == copies:
            self.advance(TopicInput.REFERRED)

    def release(self, copies: int = 1) -> None:
        """Count this many queues that a message of the topic left."""
        self.queued -= copies
        if copies and not self.is_queued:
            self.advance(TopicInput.RELEASED)

    def keep(self) -> None:
        """Count a message that entered the history."""
        self.kept += 1
        if self.kept == 1:
            self.advance(TopicInput.REFERRED)

    def forget(self) -> None:
        """Count a message that left the history."""
        self.kept -= 1
        if not self.kept:
            self.advance(TopicInput.RELEASED)

    def erase(self, named: ErasureIds, *, is_forced: bool) -> None:
        """Record that the topic was erased. Its subscriptions and its history are gone already."""
        elsewhere = self.topics.elsewhere
        if elsewhere is not None:
            elsewhere.erase(self, named, is_forced=is_forced)
        if self.state is not TopicState.DEAD:
            self.is_configured = self.is_subscribed = False
            self.advance(TopicInput.ERASED)


class Topics:
    """All topics by name.

    Args:
        most: How many there may be with messages or a configuration, and how many without.
        is_subscribed: Returns whether the channel of this name has an exact subscription.
        config_of: Returns the configuration in the rule of a channel, or None if it is not a topic.
        on_change: Called when the first topic of a turn changes. The callee must arrange for
            `take_changed` to be called when the turn ends.
    """

    def __init__(
        self,
        is_subscribed: Callable[[str], bool],
        config_of: Callable[[str], TopicConfig | None],
        *,
        most: int,
        makers: SenderQuota,
        are_used: bool,
        on_change: Callable[["Topics"], None],
    ) -> None:
        self._is_subscribed_here = is_subscribed
        # The other shards, if there are any.
        self.elsewhere: TopicsElsewhere | None = None
        self._config_of = config_of
        self._most = most
        # How many topics each address and each subject has created.
        self.makers = makers
        # By topic name: the address and the subject that it counts for.
        self._accounts: dict[str, Sequence[str]] = {}
        self._on_change = on_change
        self._topics: dict[str, Topic] = {}
        self.names = SortedNames(self._topics)
        # Whether any channel may be a topic. Most servers have none.
        self.are_used = are_used
        # The topics that changed in this turn.
        self._changed: dict[Topic, None] = {}
        self.states: Counter[TopicState] = Counter()

    def _is_subscribed(self, name: str) -> bool:
        if self._is_subscribed_here(name):
            return True
        return self.elsewhere is not None and self.elsewhere.subscribers(name) > 0

    def far(self, name: str) -> "Topic | None":
        """Return the topic if another shard decides about it."""
        return None if self.elsewhere is None else self.elsewhere.topic(name)

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def get(self, name: str) -> Topic | None:
        """Return the topic of this name, if there is one."""
        return self._topics.get(name)

    @property
    def are_full(self) -> bool:
        """Whether there is no room for another topic that is more than a subscription."""
        return len(self._topics) - self.states[TopicState.UNCONFIGURED] >= self._most

    def record(self, topic: Topic) -> TopicRecord | None:
        """Return the record to store for the topic; None if it needs none."""
        if topic.state in (TopicState.DEAD, TopicState.UNCONFIGURED):
            return None
        is_own = topic.config != self._config_of(topic.name)
        return TopicRecord(topic.config if is_own else None, not topic.is_configured)

    def record_of_draft(self, draft: Topic) -> TopicRecord | None:
        """Return the record of a topic that does not exist yet; None if the rule tells enough."""
        is_own = draft.config != self._config_of(draft.name)
        return TopicRecord(draft.config, False) if is_own else None

    def restore(self, name: str, record: TopicRecord | None, *, in_history: bool) -> Topic | None:
        """Restore a topic from its record or, without one, from the channel's rule.

        The caller then adds references to the topic. An erased topic without references is DEAD.
        """
        by_rule = self._config_of(name)
        if record is None and by_rule is None:
            return None
        config = (None if record is None else record.config) or by_rule or ORDINARY_CONFIG
        draft = self.draft(name, config)
        draft.stored = record
        is_erased = record is not None and record.is_erased
        # The process was killed before the store had the whole erasure or the changes after it.
        if not is_erased or in_history or self._is_subscribed(name):
            return self.configure(draft)
        self._enter(draft)
        self.note(draft, TopicState.DEAD)
        return draft

    def draft(self, name: str, config: TopicConfig) -> Topic:
        """Return a topic that starts to exist with its first message or subscription."""
        self.are_used = True
        return Topic(name, config, self)

    def configure(self, draft: Topic, *, anew: bool = False) -> Topic:
        """Configure a topic for a publish. Returns the topic of this name.

        A configured topic keeps its configuration, unless `anew` is set.
        """
        topic = self._topics.get(draft.name) or self._enter(draft)
        # Whether the publish has stored another record, which may have to be replaced.
        has_new_record = draft.stored not in (None, topic.stored)
        topic.stored = draft.stored or topic.stored
        if topic.state is TopicState.ALIVE and not (anew or has_new_record):
            # One more message changes nothing.
            return topic
        if not topic.is_configured:
            self._charge(topic, draft.makers)
        if anew or not topic.is_configured:
            topic.config = draft.config
        topic.is_subscribed = self._is_subscribed(topic.name)
        topic.is_configured = True
        topic.advance(TopicInput.CONFIGURED)
        return topic

    def subscribe(self, name: str) -> None:
        """Record an exact subscription to a channel, which need not be a topic."""
        if self.elsewhere is not None and self.elsewhere.subscriptions_changed(name):
            return
        self.refer_by_subscription(name)

    def refer_by_subscription(self, name: str) -> None:
        """Record an exact subscription in any shard to a channel whose home is here."""
        topic = self._topics.get(name)
        if topic is None:
            config = self._config_of(name)
            if config is None or self.states[TopicState.UNCONFIGURED] >= self._most:
                return
            topic = self._enter(self.draft(name, config))
        topic.is_subscribed = True
        topic.is_configured = topic.is_configured or topic.is_queued
        topic.advance(TopicInput.SUBSCRIBED)

    def _charge(self, topic: Topic, makers: Sequence[str]) -> None:
        self.makers.remove(self._accounts.pop(topic.name, ()), 0)
        if makers:
            self._accounts[topic.name] = makers
            self.makers.add(makers, 0)

    def _enter(self, draft: Topic) -> Topic:
        self._topics[draft.name] = draft
        self.names.add(draft.name)
        return draft

    def unsubscribe(self, name: str) -> None:
        """Record that the last exact subscription to a channel ended, or any of several shards."""
        if self.elsewhere is not None and self.elsewhere.subscriptions_changed(name):
            return
        topic = self._topics.get(name)
        if topic is not None and topic.is_subscribed and not self._is_subscribed(name):
            topic.is_subscribed = False
            topic.advance(TopicInput.UNSUBSCRIBED)

    def refer_elsewhere(self, name: str, entries: int) -> None:
        """Record how many entries the queues of other shards have."""
        topic = self._topics.get(name)
        if topic is None:
            if not entries:
                return
            # It was erased, or its record is lost.
            topic = self._enter(self.draft(name, self._config_of(name) or ORDINARY_CONFIG))
        before, topic.elsewhere = topic.elsewhere, entries
        if topic.queued or bool(before) == bool(entries):
            return
        if topic.state is TopicState.UNCONFIGURED:
            self.configure(topic)
        topic.advance(TopicInput.REFERRED if entries else TopicInput.RELEASED)

    def note(self, topic: Topic, state: TopicState) -> None:
        """Change the state of a topic. The effects follow when the turn ends."""
        if not self._changed:
            self._on_change(self)
        if self.elsewhere is not None:
            self.elsewhere.stay(topic)
        self._changed[topic] = None
        if topic.state is not state:
            self.states[topic.state] -= 1
            self.states[state] += 1
            topic.state = state

    def take_changed(self) -> Sequence[Topic]:
        """Take the topics that changed in this turn; remove dead ones."""
        changed, self._changed = list(self._changed), {}
        for topic in changed:
            if topic.state is TopicState.DEAD:
                self._charge(topic, ())
                del self._topics[topic.name]
                self.names.remove(topic.name)
        return changed
