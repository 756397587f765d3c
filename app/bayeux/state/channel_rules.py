"""Finds the rule that applies to a channel."""

from holdfast.delivery.basics.channels import Channel, Channels, Kind, covers, lookups
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.topics.configured import TopicConfig
from holdfast.settings import ChannelSettings, Settings


class ChannelRule:
    """The settings of the channels of one pattern. What publishes need is read once."""

    def __init__(self, settings: ChannelSettings, max_lazy_timeout: int) -> None:
        self.settings = settings
        self.broadcast_to_publisher = settings.broadcast_to_publisher
        # None means if a receiver is durable.
        self.durable = settings.durable
        self.is_work_queue = settings.work_queue
        self.is_guarded = settings.guard
        self.has_presence = settings.presence
        self.lazy_timeout_s: float | None = None
        if settings.lazy or settings.lazy_timeout is not None:
            timeout = max_lazy_timeout if settings.lazy_timeout is None else settings.lazy_timeout
            self.lazy_timeout_s = timeout / 1000
        self.history: HistoryDepth | None = None
        if settings.history:
            self.history = HistoryDepth(settings.history, settings.history_bytes)
        # The configuration of the topic, if the rule makes its channels topics.
        self.topic: TopicConfig | None = None
        if settings.topic:
            self.topic = TopicConfig(settings.destroy_delay, settings.readonly)


class ChannelRules:
    """The rules of patterns. The rule of the most specific pattern applies to a channel."""

    def __init__(self, channels: Channels, options: Settings) -> None:
        self._channels = channels
        self._rules = rules = {
            pattern: ChannelRule(settings, options.max_lazy_timeout)
            for pattern, settings in options.channels.items()
        }
        self._ordinary = ChannelRule(ChannelSettings(), options.max_lazy_timeout)
        self.all = rules.values()
        self.work_patterns = [pattern for pattern, rule in rules.items() if rule.is_work_queue]
        # Patterns that match some channels whose rule disables history.
        self._keep_partly = {
            pattern
            for name, rule in rules.items()
            if rule.history is None and not rule.is_work_queue
            for pattern in lookups(name)
            if covers(pattern, name)
        }

    def of(self, channel: Channel) -> ChannelRule:
        """Return the channel's rule."""
        rules = self._rules
        for name in channel.lookups if rules else ():
            if name in rules:
                return rules[name]
        return self._ordinary

    def named(self, name: str) -> ChannelRule:
        """Return the rule of the channel with this name, or the default rule."""
        channel = self._channels.get(name) if self._rules else None
        return self._ordinary if channel is None else self.of(channel)

    def is_guarded(self, name: str) -> bool:
        """Return whether the rule of this channel enables the guard."""
        return self.named(name).is_guarded

    def has_presence(self, channel: Channel) -> bool:
        """Return whether the channel's rule enables presence."""
        return self.of(channel).has_presence

    def topic(self, name: str) -> TopicConfig | None:
        """Return the configuration of the channel if its rule makes it a topic."""
        channel = self._channels.get(name)
        if channel is None or channel.kind is not Kind.BROADCAST:
            return None
        return self.of(channel).topic

    def keeps_all(self, pattern: Channel) -> bool:
        """Return whether all channels that the pattern matches keep messages by their rules."""
        if not pattern.is_wild:
            return self.of(pattern).history is not None
        rules = self._rules
        covering = [
            name for name in pattern.lookups if name in rules and covers(name, pattern.name)
        ]
        keeps = bool(covering) and rules[covering[0]].history is not None
        return keeps and pattern.name not in self._keep_partly
