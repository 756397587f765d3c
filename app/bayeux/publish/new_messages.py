"""Creates the message of each publish, with its id and bytes, and passes it to the hub."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.publish.event import Encoder, EventPublish
from holdfast.bayeux.publish.point_to_point import (
    PointToPoint,
    SenderOverQuota,
    account_of,
)
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.publish.topic_effects import TopicPublishing
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.channel_rules import ChannelRule
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.channels import Kind
from holdfast.delivery.basics.error_codes import LOG_OVERFLOW
from holdfast.delivery.basics.json_text import to_strict_json
from holdfast.delivery.messages.keeping import Keeping
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.shared_queues.shared_queues import OverQuota, Undeliverable
from holdfast.delivery.topics.configured import Topic
from holdfast.delivery.topics.counting import count_for

if TYPE_CHECKING:
    from holdfast.delivery.ports.other_shards import OthersPort

# Accepts an encoded event that is not published now. Raises `Refused`. Returns the outcome, or None
# if the publish is told later.
Divert = Callable[[EventPublish, Qos, bytes], PersistOutcome | None]


class Publishing:
    """Publishes for clients, extensions and the server itself, in this shard."""

    def __init__(self, state: ServerState, ptp: PointToPoint, encoder: Encoder) -> None:
        self._state = state
        self._ptp = ptp
        self._echoes_usually = state.options.broadcast_to_publisher
        self.encoded = encoder.encoded
        # By the option that diverts a message, what accepts it.
        self._diversions: dict[str, Divert] = {}
        self._topics = TopicPublishing(
            state.topics,
            state.hub,
            node=state.node,
            quotas=state.quotas,
            keep_history=state.keep_history,
        )

    def divert(self, option: str, accept: Divert) -> None:
        """Pass messages with this option on instead of publishing them."""
        self._diversions[option] = accept

    def broadcast(self, publish: EventPublish) -> PersistOutcome | None:
        """Publish an event to the subscribers of a channel, or to its destinations.

        Extensions complete the event first. Returns the outcome, or None if the store must have the
        message first: then the publish gets the outcome later. Raises `Refused`.
        """
        state, qos = self._state, publish.qos
        if qos is not None and qos.refuse_held:
            self._check_holds(publish)
        if qos is not None and qos.diversion is not None:
            wire = self.encoded(publish.event, publish.sender)
            return self._diversions[qos.diversion.option](publish, qos, wire)
        installed = state.installed
        if installed.eventful:
            installed.complete(publish.event)
        wire = self.encoded(publish.event, publish.sender)
        return self._publish(publish, wire)

    def _check_holds(self, publish: EventPublish) -> None:
        """Refuse a publish whose channel another shard holds."""

    def _publish(self, publish: EventPublish, wire: bytes) -> PersistOutcome | None:
        """Publish an encoded event. Raises `Refused`."""
        state, channel, qos = self._state, publish.channel, publish.qos
        rule, topic = state.rules.of(channel), None
        if state.topics.are_used or (qos is not None and qos.concerns_topic):
            sender, accounts = publish.sender, publish.accounts
            topic = self._topics.topic_of(channel, rule, qos=qos, sender=sender, accounts=accounts)
            if topic is not None and qos is not None and qos.is_administrative:
                self._topics.configure(rule, topic, anew=not qos.only_makes)
                publish.is_unchanged = True
                return PersistOutcome.KEPT
            if qos is not None and not qos.force_update:
                repeated = self._topics.repeated_by(channel, publish.event)
                if repeated is not None:
                    publish.is_unchanged = True
                    return state.hub.outcome_of(repeated, publish.done)
        if state.hub.others is not None:
            _refuse_overflow(publish, rule, state.hub.others)
        self._make_message(publish, wire, rule, topic)
        return self._queue(publish) if rule.is_work_queue else self._distribute(publish, qos)

    def _distribute(self, publish: EventPublish, qos: Qos | None) -> PersistOutcome | None:
        self.select(publish)
        return self._distribute_here(publish, qos)

    def _distribute_here(self, publish: EventPublish, qos: Qos | None) -> PersistOutcome | None:
        if qos is not None:
            if qos.destinations:
                return self._address(publish, qos)
            if qos.asks_one:
                return self._ask_one(publish, qos)
        return self._state.hub.publish(publish)

    def _ask_one(self, publish: EventPublish, qos: Qos) -> PersistOutcome | None:
        """Publish a request for one session."""
        publish.addressed, publish.is_subscribable = self._choose(publish), False
        return self._state.hub.publish(publish)

    def _make_message(
        self, publish: EventPublish, wire: bytes, rule: ChannelRule, topic: Topic | None
    ) -> None:
        channel, sender, qos = publish.channel, publish.sender, publish.qos
        name = "" if sender is None else sender.name
        if self._state.guard.held:
            self._state.guard.published(channel.name, name, publish.now)
        message = Message(wire, id=self._state.node.stamp(), channel=channel.name, sender=name)
        publish.message = message
        message.linger_s = rule.lazy_timeout_s if publish.lazy_s is None else publish.lazy_s
        if topic is not None:
            count_for(topic, message)
        depth = rule.history if topic is None else self._topics.depth_for(rule, topic, message)
        if depth is not None:
            message.keeping = Keeping(depth, account_of(publish.accounts))
        publish.persistent = rule.durable
        if qos is not None:
            qos.qualify(message, sender)
            if qos.persistent is not None:
                publish.persistent = qos.persistent
        if sender is not None and not self._echoes(rule, sender):
            publish.leave_out = sender
        if qos is None or not qos.destinations:
            publish.prepare()

    def _choose(self, publish: EventPublish) -> Sequence[Session]:
        """Return the receiver of a request for one reply; none if no receiver is live."""
        routes = self._state.routes
        receivers: Sequence[Session] = (
            routes.receivers(publish.channel)
            if publish.candidate is None
            else routes.selecting_receivers(publish.channel, publish.candidate)
        )
        others = [each for each in receivers if each is not publish.leave_out]
        return self._state.work.choose(others, publish.message)

    def _address(self, publish: EventPublish, qos: Qos) -> PersistOutcome | None:
        """Also publish the message to its destinations. Raises `Refused` if none accepts it."""
        state = self._state
        try:
            addressing = self._ptp.address(
                publish.message,
                qos.destinations,
                sender=publish.sender,
                now=publish.now,
                accounts=publish.accounts,
            )
        except SenderOverQuota as over:
            quotas = state.quotas
            raise quotas.too_much_waits(publish.sender, over.kind, over.outcomes) from None
        qos.outcomes = addressing.outcomes
        if publish.persistent is not False and not addressing.make_durable(state.store):
            addressing.release(PersistOutcome.REFUSED)
            return PersistOutcome.REFUSED
        publish.addressed, publish.is_subscribable = addressing.receivers, qos.is_subscribable
        publish.then(addressing.release)
        publish.prepare()
        outcome = state.hub.publish(publish)
        if outcome is not None:
            addressing.release(outcome)
        return outcome

    def _queue(self, publish: EventPublish) -> PersistOutcome | None:
        """Add the message to a work queue. Raises `Refused` if it is full."""
        state, message, qos = self._state, publish.message, publish.qos
        if qos is not None and qos.destinations:
            raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", "destinations")
        if qos is not None and qos.request is not None:
            qos.request.is_work = True
            # Only sessions of this shard get it.
            qos.request.unheard = ()
        try:
            shared = state.work.accept(message.channel, message, publish.accounts)
        except OverQuota as over:
            raise state.quotas.too_much_waits(publish.sender, over.quota, ()) from over
        except Undeliverable as full:
            error = ErrorReply.DESTINATION_FULL
            raise Refused(error, full.code.text, message.channel) from full
        publish.leave_out, publish.candidate = None, None
        publish.addressed, publish.is_subscribable = (shared.receiver,), False
        publish.then(partial(state.work.accepted, shared, message))
        outcome = state.hub.publish(publish)
        if outcome is not None:
            state.work.accepted(shared, message, outcome)
        return outcome

    def select(self, publish: EventPublish) -> None:
        """Let subscriptions select by what the publish says, if any of them does."""
        if publish.candidate is None and self._state.hub.routes.selecting:
            publish.select_as_of("" if publish.sender is None else publish.sender.name)

    def _echoes(self, rule: ChannelRule, sender: Session) -> bool:
        """Return whether publishers that are subscribed receive their own messages."""
        return (
            self._echoes_usually and rule.broadcast_to_publisher and sender.broadcast_to_publisher
        )

    def publish(
        self,
        channel: str,
        data: object,
        now: float,
        *,
        lazy_s: float | None,
        qos: Qos | None,
    ) -> None:
        """Publish from within the server. With `lazy_s`, delivery may be delayed by that time."""
        found = self._state.channels.get(channel)
        if found is None or found.is_wild or found.kind is not Kind.BROADCAST:
            raise ValueError(f"{channel!r} is not a channel to publish on")
        publish = EventPublish(found, {"channel": found.name, "data": data}, now, qos=qos)
        publish.lazy_s = lazy_s
        self.broadcast(publish)

    def deliver_event(self, session: Session, event: Json, *, lazy_s: float | None = None) -> None:
        """Deliver an event to a single session. With `lazy_s`, it may be delayed by that time."""
        if not session.is_gone:
            self._state.installed.complete(event)
            channel = str(event.get("channel", ""))
            wire = to_strict_json(event)
            message = Message(wire, id=self._state.node.stamp(), channel=channel, linger_s=lazy_s)
            self._state.hub.deliver(session, message)


def _refuse_overflow(publish: EventPublish, rule: ChannelRule, others: "OthersPort") -> None:
    """Raise `Refused` if the log of this shard has no room for the message."""
    persistent, qos = rule.durable, publish.qos
    if qos is not None:
        if not qos.is_subscribable:
            return
        if qos.persistent is not None:
            persistent = qos.persistent
    if persistent is not False and others.refuses(publish.channel.name):
        raise Refused(ErrorReply.SHARD_UNAVAILABLE, LOG_OVERFLOW.text)
