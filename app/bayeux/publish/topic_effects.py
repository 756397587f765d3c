"""The effects of a publish on the topic of its channel."""

from collections.abc import Callable, Sequence

from orjson import loads

from holdfast.bayeux.limits.quotas import Quotas
from holdfast.bayeux.limits.usage import TOPICS
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.channel_rules import ChannelRule
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.basics.node import Node
from holdfast.delivery.messages.keeping import HistoryDepth
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.topics.configured import ORDINARY_CONFIG, Topic, TopicConfig, Topics
from holdfast.delivery.topics.states import TopicState


class TopicPublishing:
    """Finds the topic of each publish, and applies the publish to it."""

    def __init__(
        self,
        topics: Topics,
        hub: Hub[Session],
        *,
        node: Node,
        quotas: Quotas,
        keep_history: Callable[[], None],
    ) -> None:
        self._topics = topics
        self._hub = hub
        self._node = node
        self._quotas = quotas
        self._keep_history = keep_history

    def topic_of(
        self,
        channel: Channel,
        rule: ChannelRule,
        *,
        qos: Qos | None,
        sender: Session | None,
        accounts: Sequence[str],
    ) -> Topic | None:
        """Return the topic of the publish, or a draft; None for ordinary channels.

        `sender` is the session if it is here, `accounts` are those that pay. Raises `Refused`.
        """
        if channel.kind is not Kind.BROADCAST or not self._concerns_topic(qos):
            return None
        topic = self._topics.get(channel.name)
        configures = qos is not None and qos.configures
        if topic is None or topic.state is TopicState.UNCONFIGURED:
            if topic is None and rule.topic is None and not configures:
                return None
            self._check_room(channel, sender, accounts)
        elif topic.is_configured and not (qos is not None and qos.is_administrative):
            self._check_readonly(topic)
            return topic
        config = rule.topic or ORDINARY_CONFIG
        if topic is not None and topic.is_configured:
            config = topic.config
        if qos is not None and qos.topic is not None:
            config = qos.topic.over(config)
            if config.depth is not None:
                self._keep_history()
        self._check_first(channel, config, qos)
        draft = self._topics.draft(channel.name, config)
        draft.makers = accounts
        return draft

    def _concerns_topic(self, qos: Qos | None) -> bool:
        """Return whether the home of the channel publishes the message, if it has one."""
        if qos is None or self._topics.elsewhere is None:
            return True
        return qos.request is None and (qos.is_subscribable or qos.concerns_topic)

    def _check_room(
        self, channel: Channel, sender: Session | None, accounts: Sequence[str]
    ) -> None:
        """Refuse to create another topic for the sender if there are too many."""
        if self._topics.are_full:
            raise Refused(ErrorReply.TOPICS_USED_UP, "resource.exhaust", channel.name)
        if not self._topics.makers.may_add(accounts, 0):
            if sender is None:
                # A client of another shard, which is told without advice.
                raise Refused(ErrorReply.BUDGET_EXCEEDED, TOPICS)
            raise self._quotas.too_many_topics(sender)

    def configure(self, rule: ChannelRule, draft: Topic, *, anew: bool) -> None:
        """Configure the topic. A history with a smaller limit loses its oldest messages."""
        topic = self._topics.configure(draft, anew=anew)
        self._hub.histories.shorten(topic.name, depth_of(rule, topic.config))

    def depth_for(self, rule: ChannelRule, topic: Topic, message: Message) -> HistoryDepth | None:
        """Return the depth of the history that gets the message; None if the topic has none."""
        depth = depth_of(rule, topic.config)
        if depth is None and topic.config.depth is not None:
            self._hub.histories.miss(message)
        return depth

    def repeated_by(self, channel: Channel, event: Json) -> Message | None:
        """Return the newest message of the channel's history if the event has the same data."""
        newest = self._hub.newest(channel.name, self._node.now_ms())
        if newest is None or to_json(loads(newest.wire)["data"]) != to_json(event["data"]):
            return None
        return newest

    def _check_first(self, channel: Channel, config: TopicConfig, qos: Qos | None) -> None:
        """Refuse to make a read-only topic once more, while the store has no answer for another."""
        is_administrative = qos is not None and qos.is_administrative
        if config.is_readonly and not is_administrative and self._hub.is_coming(channel.name):
            raise _readonly(channel.name)

    def _check_readonly(self, topic: Topic) -> None:
        """Refuse another message to a read-only topic that has one or is about to get one."""
        if topic.config.is_readonly and (topic.kept or self._hub.is_coming(topic.name)):
            raise _readonly(topic.name)


def _readonly(name: str) -> Refused:
    return Refused(ErrorReply.TOPIC_READONLY, "user.publish.readonly", name)


def depth_of(rule: ChannelRule, config: TopicConfig) -> HistoryDepth | None:
    """Return how much a topic with this configuration keeps; None if nothing."""
    depth = config.depth or rule.history
    return None if depth is None or not depth.entries else depth
