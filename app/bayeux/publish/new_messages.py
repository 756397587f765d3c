"""Creates the message of each publish, with its id and bytes, and passes it to the hub."""

from collections.abc import Callable, Sequence
from typing import cast

from holdfast.bayeux.publish.point_to_point import (
    PointToPoint,
    SenderOverQuota,
    account_of,
    accounts_of,
)
from holdfast.bayeux.publish.qos import Qos
from holdfast.bayeux.publish.topic_effects import TopicPublishing
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.options import ChannelRule
from holdfast.delivery.basics.channels import Channel, Kind
from holdfast.delivery.basics.json_text import NoNumber, to_json, to_strict_json
from holdfast.delivery.messages.message import ORDINARY_PRIORITY, Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.routing.selections import Candidate
from holdfast.delivery.waiting.shared_queues import OverQuota, Undeliverable


class Publishing:
    """Publishes for clients, extensions and the server itself."""

    def __init__(self, state: ServerState, ptp: PointToPoint) -> None:
        self._state = state
        self._ptp = ptp
        self._topics = TopicPublishing(
            state.topics, state.hub, state.node, state.quotas, state.keep_history
        )

    def broadcast(
        self,
        channel: Channel,
        event: Json,
        now: float,
        *,
        sender: Session | None = None,
        lazy_s: float | None = None,
        qos: Qos | None = None,
        candidate: Candidate | None = None,
        done: Callable[[PersistOutcome], None] | None = None,
    ) -> PersistOutcome | None:
        """Publish an event to the subscribers of a channel. A lazy one may be delayed.

        Extensions complete the event first. A candidate remembers the results of filters. Returns
        the outcome, or None if the store must have the message first: then `done` is called with
        the outcome later. Raises `Refused`.
        """
        state = self._state
        installed = state.installed
        if installed.eventful:
            installed.complete(event)
        wire = self.encoded(event, sender)
        rule, topic = state.rules.of(channel), None
        if state.topics.are_used or (qos is not None and qos.concerns_topic):
            topic = self._topics.topic_of(channel, rule, qos, sender)
            if topic is not None and qos is not None and qos.is_administrative:
                self._topics.configure(rule, topic)
                return PersistOutcome.KEPT
            if qos is not None and not qos.force_update:
                repeated = self._topics.repeated_by(channel, event)
                if repeated is not None:
                    return state.hub.outcome_of(repeated, done)
        message = self._message(channel, wire, sender, now)
        message.linger_s = rule.lazy_timeout_s if lazy_s is None else lazy_s
        message.topic = topic
        message.depth = (
            rule.history if topic is None else self._topics.depth_for(rule, topic, message)
        )
        persistent = rule.durable
        if message.depth is not None:
            message.account = account_of(sender)
        if qos is not None:
            qos.qualify(message, sender)
            persistent = rule.durable if qos.persistent is None else qos.persistent
        leave_out = None if sender is None or self._echoes(rule, sender) else sender
        if rule.is_work_queue:
            return self._queue(channel, message, sender, qos, persistent, done)
        candidate = candidate or self.candidate(channel, event, sender, qos)
        if qos is None or not qos.destinations:
            asks_one = qos is not None and qos.asks_one
            return state.hub.publish(
                channel,
                message,
                candidate,
                leave_out=leave_out,
                persistent=persistent,
                done=done,
                addressed=self._choose(message, channel, candidate, leave_out) if asks_one else (),
                is_subscribable=not asks_one,
            )
        return self._address(
            channel, message, candidate, sender, qos, persistent, leave_out, now, done
        )

    def _choose(
        self,
        message: Message,
        channel: Channel,
        candidate: Candidate | None,
        leave_out: Session | None,
    ) -> Sequence[Session]:
        """Return the receiver of a request for one reply; none if no receiver is live."""
        routes = self._state.routes
        receivers: Sequence[Session] = (
            routes.receivers(channel)
            if candidate is None
            else routes.selecting_receivers(channel, candidate)
        )
        others = [each for each in receivers if each is not leave_out]
        return self._state.work.choose(others, message)

    def _message(
        self,
        channel: Channel,
        wire: bytes,
        sender: Session | None,
        now: float,
    ) -> Message:
        name = "" if sender is None else sender.name
        if self._state.guard.held:
            self._state.guard.published(channel.name, name, now)
        return Message(wire, id=self._state.node.stamp(), channel=channel.name, sender=name)

    def _address(
        self,
        channel: Channel,
        message: Message,
        candidate: Candidate | None,
        sender: Session | None,
        qos: Qos,
        persistent: bool | None,
        leave_out: Session | None,
        now: float,
        done: Callable[[PersistOutcome], None] | None,
    ) -> PersistOutcome | None:
        """Also publish the message to its destinations. Raises `Refused` if none accepts it."""
        state = self._state
        try:
            addressing = self._ptp.address(message, qos.destinations, sender, now)
        except SenderOverQuota as over:
            raise state.quotas.too_much_waits(over.sender, over.kind, over.outcomes) from None
        qos.outcomes = addressing.outcomes
        if persistent is not False and not addressing.make_durable(state.store):
            addressing.release(PersistOutcome.REFUSED)
            return PersistOutcome.REFUSED
        outcome = state.hub.publish(
            channel,
            message,
            candidate,
            leave_out=leave_out,
            persistent=persistent,
            done=addressing.then(done),
            addressed=addressing.receivers,
            is_subscribable=qos.is_subscribable,
        )
        if outcome is not None:
            addressing.release(outcome)
        return outcome

    def _queue(
        self,
        channel: Channel,
        message: Message,
        sender: Session | None,
        qos: Qos | None,
        persistent: bool | None,
        done: Callable[[PersistOutcome], None] | None,
    ) -> PersistOutcome | None:
        """Add the message to a work queue. Raises `Refused` if it is full."""
        if qos is not None and qos.destinations:
            raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", "destinations")
        state = self._state
        if qos is not None and qos.request is not None:
            qos.request.is_work = True
        try:
            shared = state.work.accept(channel.name, message, accounts_of(sender))
        except OverQuota as over:
            # Only sessions have quotas.
            raise state.quotas.too_much_waits(cast("Session", sender), over.quota, ()) from over
        except Undeliverable as full:
            error = ErrorReply.DESTINATION_FULL
            raise Refused(error, full.code.text, channel.name) from full

        def answered(persisted: PersistOutcome) -> None:
            state.work.accepted(shared, message, persisted)
            if done is not None:
                done(persisted)

        outcome = state.hub.publish(
            channel,
            message,
            persistent=persistent,
            done=answered,
            addressed=(shared.receiver,),
            is_subscribable=False,
        )
        if outcome is not None:
            state.work.accepted(shared, message, outcome)
        return outcome

    def candidate(
        self, channel: Channel, event: Json, sender: Session | None, qos: Qos | None
    ) -> Candidate | None:
        """Return what subscriptions select by, or None if none of them selects messages."""
        if not self._state.hub.routes.selecting:
            return None
        return Candidate(
            channel=channel.name,
            data=event.get("data"),
            sender="" if sender is None else sender.name,
            priority=ORDINARY_PRIORITY if qos is None else qos.priority,
            properties=None if qos is None else qos.properties,
        )

    def encoded(self, event: Json, sender: Session | None) -> bytes:
        """Encode an event. Raises `Refused` if it is too large."""
        state = self._state
        is_touched = sender is None or state.installed.has_others or not state.rights.are_open
        wire = self._write(event, sender) if is_touched else to_json(event)
        if len(wire) > state.options.max_message_size:
            raise Refused(ErrorReply.MESSAGE_TOO_LARGE, str(state.options.max_message_size))
        return wire

    def _write(self, event: Json, sender: Session | None) -> bytes:
        """Encode an event. Raises an exception if an extension made it unfit for JSON."""
        try:
            return to_strict_json(event)
        except NoNumber as error:
            raise NoNumber(f"{error}: {self._state.installed.authors(sender)}") from error

    def _echoes(self, rule: ChannelRule, sender: Session) -> bool:
        """Return whether publishers that are subscribed receive their own messages."""
        return (
            self._state.options.broadcast_to_publisher
            and rule.broadcast_to_publisher
            and sender.broadcast_to_publisher
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
        event = {"channel": found.name, "data": data}
        self.broadcast(found, event, now, lazy_s=lazy_s, qos=qos)

    def deliver_event(self, session: Session, event: Json, *, lazy_s: float | None = None) -> None:
        """Deliver an event to a single session. With `lazy_s`, it may be delayed by that time."""
        if not session.is_gone:
            self._state.installed.complete(event)
            channel = str(event.get("channel", ""))
            wire = to_strict_json(event)
            message = Message(wire, id=self._state.node.stamp(), channel=channel, linger_s=lazy_s)
            self._state.hub.deliver(session, message)
