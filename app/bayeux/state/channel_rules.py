"""Finds the rule that applies to a channel."""

from collections.abc import Mapping

from holdfast.bayeux.wire.options import ORDINARY_RULE, ChannelRule
from holdfast.delivery.basics.channels import Channel, Channels, Kind, covers, lookups
from holdfast.delivery.topics.configured import TopicConfig


class ChannelRules:
    """The rules of patterns. The rule of the most specific pattern applies to a channel."""

    def __init__(self, channels: Channels, rules: Mapping[str, ChannelRule]) -> None:
        self._channels = channels
        self._rules = rules
        self.all = rules.values()
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
        return ORDINARY_RULE

    def named(self, name: str) -> ChannelRule:
        """Return the rule of the channel with this name, or the default rule."""
        channel = self._channels.get(name) if self._rules else None
        return ORDINARY_RULE if channel is None else self.of(channel)

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
