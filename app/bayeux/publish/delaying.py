"""Accepts publishes with a delay: they are written down, and carried out when they are due."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, cast

from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.new_messages import Publishing
from holdfast.bayeux.publish.point_to_point import accounts_of
from holdfast.bayeux.publish.qos import Promised, Qos, key_of
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.error_codes import CODES, ErrorCode
from holdfast.delivery.basics.json_text import to_strict_json
from holdfast.delivery.basics.node import NS_PER_MS
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import PublishKey
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.delivery.shared_queues.delayed_publish import DelayedPublish, packed, publish_in
from holdfast.delivery.shared_queues.delays import NAME, Delayed, Delays
from holdfast.delivery.shared_queues.shared_queues import (
    OverQuota,
    SharedQueueLimits,
    Undeliverable,
)

# How many messages are published in one tick.
MOST: Final = 200
# How long to wait after the store has refused a message.
_PAUSE_S: Final = 1.0
_REFUSED: Final = CODES["user.publish"]
_FAULT: Final = CODES["internal.publish"]


def add_delays(
    state: ServerState, publishing: Publishing, undelivered: Undelivered[Session]
) -> Callable[[float, int], None]:
    """Let a server deliver messages later. Returns what its ticks must call."""
    beside, options = state.subjects, state.options
    limits = SharedQueueLimits(options.max_delayed, options.max_delayed_bytes)
    delays = Delays(state.hub, beside.owner, limits, beside.senders)
    state.waiting_places.add(NAME, delays)
    publishing.divert("delay", Delaying(state, delays).accept)
    return DueMessages(state, delays, publishing, undelivered).tick


class Delaying:
    """Accepts publishes with a delay."""

    def __init__(self, state: ServerState, delays: Delays[Session]) -> None:
        self._state = state
        self._delays = delays

    def accept(self, publish: EventPublish, qos: Qos, event: bytes) -> PersistOutcome | None:
        """Let the encoded event wait until its delay is over. Raises `Refused`.

        Returns the outcome, or None if the publish is told later.
        """
        state, sender, channel = self._state, publish.sender, publish.channel.name
        delay_ms, later = self._checked(qos)
        id = state.node.stamp()
        due_ms = id // NS_PER_MS + delay_ms
        message = Message(
            packed(due_ms, later, event),
            id=id,
            channel=channel,
            sender="" if sender is None else sender.name,
        )
        message.priority = qos.priority
        message.is_durable = qos.persistent is not False
        if qos.key is not None and sender is not None:
            key_of(sender, qos.key).identify(message)
        publish.message = qos.message = message
        try:
            return self._delays.accept(
                message, due_ms=due_ms, senders=accounts_of(sender), done=publish.done
            )
        except OverQuota as over:
            # Only sessions have quotas.
            raise state.quotas.too_much_waits(cast("Session", sender), over.quota, ()) from over
        except Undeliverable as full:
            raise Refused(ErrorReply.DESTINATION_FULL, full.code.text, channel) from full

    def _checked(self, qos: Qos) -> tuple[int, Mapping[str, Any]]:
        """Return the delay, and the options that apply when it is over. Raises `Refused`.

        Requests and administrative publishes are answered at once.
        """
        is_answered_at_once = qos.request is not None or qos.is_administrative
        if (
            qos.diversion is None
            or is_answered_at_once
            or qos.diversion.value > self._state.options.max_delay
        ):
            raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", "delay")
        return qos.diversion.value, qos.diversion.later


class DueMessages:
    """Publishes delayed messages when they are due. `tick` must be called again and again.

    A message keeps its place in the store until the store has what was published for it. A process
    that is killed in between publishes it once more, with the same key, so the store knows it.
    """

    def __init__(
        self,
        state: ServerState,
        delays: Delays[Session],
        publishing: Publishing,
        undelivered: Undelivered[Session],
    ) -> None:
        self._state = state
        self._delays = delays
        self._publishing = publishing
        self._undelivered = undelivered
        self._not_before = 0.0

    def tick(self, now: float, wall_ms: int) -> None:
        """Publish messages that are due, in order, as many as one turn has time for."""
        delays = self._delays
        delays.settle()
        if now < self._not_before:
            return
        for _ in range(MOST):
            first = delays.take_due(wall_ms)
            if first is None:
                break
            self._publish(first, now)
            if self._state.is_turn_over():
                break
        delays.settle()

    def _publish(self, delayed: Delayed, now: float) -> None:
        message = delayed.message
        record = publish_in(message)
        try:
            publish = self._due(message, record, now)
            publish.done = done = partial(self._answered, delayed, publish)
            outcome = self._publishing.broadcast(publish)
        except Refused as refused:
            self._bury(message, record, _REFUSED, str(refused))
        except Exception:
            self._state.log.exception("a delayed message could not be published")
            self._bury(message, record, _FAULT, "")
        else:
            if outcome is not None:
                done(outcome)

    def _due(self, message: Message, record: DelayedPublish, now: float) -> EventPublish:
        """Return the publish that the message stands for."""
        channel = self._state.channels.named(message.channel)
        qos = Qos.of(record.options)
        key = PublishKey(f"delay {message.id}") if message.is_durable else None
        qos.promised = Promised(message.sender, key)
        sender = self._sender(message.sender)
        publish = EventPublish(channel, record.event, now, sender=sender, qos=qos)
        if self._state.routes.selecting:
            # The sender's session may have ended, but filters know its name.
            publish.select_as_of(message.sender)
        return publish

    def _sender(self, name: str) -> Session | None:
        """Return the session that published, if it is still there."""
        key = name.removeprefix("client/")
        try:
            return self._state.subjects.session(key.rpartition("/")[0], key, 0)
        except Undeliverable:
            return None

    def _answered(self, delayed: Delayed, publish: EventPublish, outcome: PersistOutcome) -> None:
        delays = self._delays
        refused = publish.refused
        if refused is not None:
            self._bury(delayed.message, publish_in(delayed.message), _REFUSED, str(refused))
        elif outcome in (PersistOutcome.KEPT, PersistOutcome.REPEATED):
            delays.published(delayed.message)
        else:
            # If the store has it nevertheless, the next attempt is a repeat.
            delays.keep_waiting(delayed)
            self._not_before = publish.now + _PAUSE_S

    def _bury(self, message: Message, record: DelayedPublish, code: ErrorCode, text: str) -> None:
        """Dead-letter a message that cannot be published, with the event as it was published."""
        receiver = self._delays.remove((message,))
        event = Message(
            to_strict_json(record.event),
            id=message.id,
            channel=message.channel,
            sender=message.sender,
        )
        event.priority, event.is_durable = message.priority, message.is_durable
        self._undelivered.dead_letter(receiver, [Entry(event)], code, text)
