"""Finds the rule that applies to a channel."""

from collections.abc import Iterable
from hashlib import sha256

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
        kinds = [(name, rule) for name, rule in rules.items() if not rule.is_work_queue]
        self._keep_partly = _covering(name for name, rule in kinds if rule.history is None)
        # Patterns that match some channels of which the store may not have all messages.
        self._store_partly = _covering(name for name, rule in kinds if rule.durable is not True)

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
        rule = self._covering_rule(pattern)
        keeps = rule is not None and rule.history is not None
        return keeps and pattern.name not in self._keep_partly

    def stores_all(self, name: str) -> bool:
        """Return whether the store has all messages that the channel or pattern keeps."""
        pattern = self._channels.get(name)
        rule = None if pattern is None else self._covering_rule(pattern)
        stores = rule is not None and rule.durable is True
        return stores and name not in self._store_partly

    def fingerprint(self) -> int:
        """Return a number that differs if other rules say what the store has all of."""
        said = [(name, each.durable, each.history is None) for name, each in self._rules.items()]
        return int.from_bytes(sha256(repr(sorted(said, key=str)).encode()).digest()[:8])

    def _covering_rule(self, pattern: Channel) -> ChannelRule | None:
        """Return the most specific rule of all that the channel or pattern matches."""
        rules = self._rules
        for name in pattern.lookups if rules else ():
            if name in rules and covers(name, pattern.name):
                return rules[name]
        return None


def _covering(names: Iterable[str]) -> set[str]:
    """Return the patterns that match everything that any of these matches."""
    return {pattern for name in names for pattern in lookups(name) if covers(pattern, name)}
