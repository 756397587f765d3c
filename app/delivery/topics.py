"""Topics: channels with a configuration and a life of their own.

Most channels have none of this and cost nothing here: a topic exists where the channel's rule says
so, or where a publish configured one.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.delivery.timed import Timed
from holdfast.delivery.topic_states import TopicInput, TopicState, state_of, step


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """What the operator or a publisher configured for one topic."""

    # How long an unreferenced topic stays; negative: until it is erased.
    destroy_delay_ms: int = 60_000
    # Whether it refuses a second message.
    is_readonly: bool = False


ORDINARY_CONFIG = TopicConfig()


class Topic(Timed):
    """One topic, with what its state follows from."""

    __slots__ = (
        "config",
        "has_history",
        "is_configured",
        "is_subscribed",
        "name",
        "queued",
        "state",
        "stored",
        "topics",
        "unreferenced_ms",
    )

    def __init__(self, name: str, config: TopicConfig, topics: "Topics") -> None:
        super().__init__()
        self.name = name
        self.config = config
        self.topics = topics
        # The four conditions; of the third, how often its messages are in queues.
        self.is_configured = False
        self.has_history = False
        self.queued = 0
        self.is_subscribed = False
        # Changed by `advance` only.
        self.state = TopicState.DEAD
        # When it becomes DEAD because nothing refers to it; zero if that is not due.
        self.unreferenced_ms = 0
        # What the store has of it: its configuration, and whether it is erased.
        self.stored: tuple[TopicConfig, bool] | None = None

    def advance(self, seen: TopicInput) -> None:
        """Follow a change of the conditions. Raises `IllegalTopic`."""
        found = state_of(
            is_configured=self.is_configured,
            has_history=self.has_history,
            is_queued=self.queued > 0,
            is_subscribed=self.is_subscribed,
        )
        self.topics.note(self, step(self.state, seen, found))

    def refer(self, copies: int = 1) -> None:
        """Note that this many queues got a message of the topic."""
        self.queued += copies
        if copies and self.queued == copies:
            self.advance(TopicInput.REFERRED)

    def release(self, copies: int = 1) -> None:
        """Note that a message of the topic left this many queues."""
        self.queued -= copies
        if copies and not self.queued:
            self.advance(TopicInput.RELEASED)

    def note_history(self, *, has_messages: bool) -> None:
        """Note that the topic's history got its first message, or lost its last one."""
        if self.has_history is not has_messages:
            self.has_history = has_messages
            self.advance(TopicInput.REFERRED if has_messages else TopicInput.RELEASED)


class Topics:
    """All topics by name.

    Args:
        is_subscribed: Returns whether the channel of this name has an exact subscription.
        on_change: Called when the first topic has changed; then the caller must call `settle` when
            the turn ends.
    """

    def __init__(
        self, is_subscribed: Callable[[str], bool], on_change: Callable[[], None], most: int
    ) -> None:
        self._is_subscribed = is_subscribed
        self._on_change = on_change
        self._most = most
        self._topics: dict[str, Topic] = {}
        # Whether any channel may be a topic; most servers have none.
        self.are_used = False
        # The topics that changed in this turn.
        self._changed: dict[Topic, None] = {}
        self.states: Counter[TopicState] = Counter()

    def __len__(self) -> int:
        return len(self._topics)

    def __iter__(self) -> Iterator[Topic]:
        return iter(self._topics.values())

    def get(self, name: str) -> Topic | None:
        """Return the topic of this name, if there is one."""
        return self._topics.get(name)

    @property
    def are_full(self) -> bool:
        """Whether there is no room for another topic."""
        return len(self._topics) >= self._most

    def draft(self, name: str, config: TopicConfig) -> Topic:
        """Return a topic that exists when a message or subscription of it does."""
        self.are_used = True
        return Topic(name, config, self)

    def configure(self, draft: Topic, *, anew: bool = False) -> Topic:
        """Configure the topic: it is published to; return the topic that has this name.

        A topic that is configured already keeps its configuration, unless it is configured anew.
        """
        topic = self._topics.setdefault(draft.name, draft)
        if anew or not topic.is_configured:
            topic.config = draft.config
        topic.is_subscribed = self._is_subscribed(topic.name)
        topic.is_configured = True
        topic.advance(TopicInput.CONFIGURED)
        return topic

    def subscribe(self, name: str, config: TopicConfig | None) -> None:
        """Note an exact subscription; with a configuration, the channel is a topic by its rule."""
        topic = self._topics.get(name)
        if topic is None:
            if config is None:
                return
            topic = self._topics[name] = self.draft(name, config)
        topic.is_subscribed = True
        topic.is_configured = topic.is_configured or topic.queued > 0
        topic.advance(TopicInput.SUBSCRIBED)

    def unsubscribe(self, name: str) -> None:
        """Note that an exact subscription has ended."""
        topic = self._topics.get(name)
        if topic is not None and not self._is_subscribed(name) and topic.is_subscribed:
            topic.is_subscribed = False
            topic.advance(TopicInput.UNSUBSCRIBED)

    def erase(self, topic: Topic) -> None:
        """Note that the topic was erased: its subscriptions and its history are gone."""
        topic.is_configured = topic.has_history = topic.is_subscribed = False
        topic.advance(TopicInput.ERASED)

    def time_out(self, topic: Topic) -> None:
        """End a topic that nothing has referred to for its destroy delay."""
        topic.is_configured = False
        topic.advance(TopicInput.TIMED_OUT)

    def note(self, topic: Topic, state: TopicState) -> None:
        """Change the state of a topic; what follows from it is done when the turn ends."""
        if not self._changed:
            self._on_change()
        self._changed[topic] = None
        if topic.state is not state:
            self.states[topic.state] -= 1
            self.states[state] += 1
            topic.state = state

    def take_changed(self) -> Sequence[Topic]:
        """Take the topics that changed in this turn; forget those that are dead."""
        changed, self._changed = list(self._changed), {}
        for topic in changed:
            if topic.state is TopicState.DEAD:
                del self._topics[topic.name]
        return changed
