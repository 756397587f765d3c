"""Handles clients' publishes: validates them, passes them on and answers."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from holdfast.bayeux.publish.event import EventPublish
from holdfast.bayeux.publish.new_messages import Publishing
from holdfast.bayeux.publish.point_to_point import PTP
from holdfast.bayeux.publish.qos import Qos, key_of, publish_qos
from holdfast.bayeux.publish.requests import REPLY_TO, TIMEOUT, RequestHandler
from holdfast.bayeux.replies.answers import Answers
from holdfast.bayeux.replies.pending import begin_pending, finish_when_kept
from holdfast.bayeux.rights import BY_POLICY
from holdfast.bayeux.session import Exchange, Session, TurnOver
from holdfast.bayeux.state.backlog import Step
from holdfast.bayeux.state.request_events import END, STATUS
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.service_channels import ServiceCall
from holdfast.bayeux.state.unstored_replies import (
    begin_publish,
    end_publish,
    publishes_stored,
    unstored_publishes,
)
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.destinations import DestinationInvalid, destinations_of
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.hooks import check_outcome
from holdfast.bayeux.wire.operation import Operation
from holdfast.bayeux.wire.reserved import refuse_replies, refuse_service
from holdfast.delivery.basics.channels import REPLIES, SERVICES, Channel, Kind
from holdfast.delivery.basics.error_codes import CHANNEL_HELD, NO_CONNECTION
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.requests.request import Request

if TYPE_CHECKING:
    from holdfast.bayeux.publish.requests_everywhere import RequestsEverywhere

# Fields with a meaning to receivers. A publisher that could set `advice` could disconnect every
# subscriber; `clientId` would reveal the publisher's session.
PROTOCOL_FIELDS: Final = frozenset(
    {
        "advice",
        "clientId",
        "connectionType",
        "error",
        "id",
        "subscription",
        "successful",
        "supportedConnectionTypes",
        "x-messages",
    }
)
# Keys of `ext` in which the server informs receivers.
_OF_SERVER: Final = frozenset({"ret", "status"})

# How many publishes of one session may wait for the store: a burst of 1,000 is common in pages.
_MOST_PENDING: Final = 1024
# The longest id of a remote call, which is stored with its request.
_LONGEST_CALL_ID: Final = 255


class PublishHandler:
    """Handles clients' publishes."""

    def __init__(
        self,
        state: ServerState,
        answers: Answers,
        publishing: Publishing,
        requests: RequestHandler,
        *,
        everywhere: "RequestsEverywhere | None",
    ) -> None:
        self.state = state
        self.answers = answers
        self.publishing = publishing
        self.requests = requests
        # Connects requests with other shards, if there are any.
        self.everywhere = everywhere

    def publish(
        self, exchange: Exchange, session: Session, *, channel: Channel, message: Json, reply: Json
    ) -> bool:
        """Deliver the message. The reply only confirms that it was accepted.

        Returns whether the reply is complete: durable messages are stored first.
        """
        state = self.state
        if channel.is_wild:
            raise Refused(ErrorReply.CHANNEL_INVALID)
        if "data" not in message:
            raise Refused(ErrorReply.DATA_MISSING)
        if channel.is_reserved:
            return _ClientPublish(
                self, exchange, session=session, channel=channel, message=message, reply=reply
            ).answer()
        if not state.rights.are_open:
            state.rights.check_publish(session, channel, message)
        ext = message.get("ext")
        qos = publish_qos(channel, message) if ext else None
        if channel.name == PTP:
            message, qos = _addressed(message, qos)
        elif channel.kind is Kind.SERVICE:
            return _ClientPublish(
                self, exchange, session=session, channel=channel, message=message, reply=reply
            ).serve()
        self._check(session, channel, message, qos)
        if qos is not None or _asks(message):
            if qos is not None and qos.generates_channel:
                channel = self._generated(session, qos)
            return _ClientPublish(
                self, exchange, session=session, channel=channel, message=message, reply=reply
            ).broadcast(qos)
        simple = EventPublish(channel, self.event(channel, message), exchange.now, sender=session)
        self.filter(exchange, simple)
        outcome = self.publishing.broadcast(simple)
        if outcome is PersistOutcome.KEPT:
            reply["successful"] = True
            return True
        return _ClientPublish(
            self, exchange, session=session, channel=channel, message=message, reply=reply
        ).wait_for(simple, outcome)

    def _check(self, session: Session, channel: Channel, message: Json, qos: Qos | None) -> None:
        """Raise `Refused` if the message may not be addressed, or must not wait now."""
        state = self.state
        if not state.rights.are_open:
            self._check_other_rights(session, channel, message, qos)
        if qos is not None and qos.refuse_held and state.guard.is_held(channel.name):
            raise Refused(ErrorReply.CHANNEL_HELD_BACK, CHANNEL_HELD.text, channel.name)
        if unstored_publishes(session) >= _MOST_PENDING:
            raise Refused(ErrorReply.PUBLISHES_EXCEEDED, str(_MOST_PENDING))

    def _check_other_rights(
        self, session: Session, channel: Channel, message: Json, qos: Qos | None
    ) -> None:
        """Check the rights that the message needs in addition to `publish`."""
        state = self.state
        if qos is not None and qos.destinations:
            state.rights.check_rules(Operation.PTP, session, channel)
        if _asks(message) and state.requests.is_offered:
            state.rights.check_rules(Operation.REQUEST, session, channel)
        if channel.kind is Kind.SERVICE:
            return
        if (qos is not None and qos.configures) or not state.routes.receivers(channel):
            state.rights.check_create(Operation.PUBLISH, session, channel, message)

    def _generated(self, session: Session, qos: Qos) -> Channel:
        """Return a channel for this message; repeats with its publish key get the same one."""
        if qos.key is None:
            name = self.state.node.id_of(self.state.node.stamp())
        else:
            name = key_of(session, qos.key).digest
        qos.channel = f"{PTP}/{name}"
        return self.state.channels.named(qos.channel)

    def event(self, channel: Channel, message: Json) -> Json:
        """Return the event: the message without the fields for the server."""
        event = message.copy()
        for name in PROTOCOL_FIELDS.intersection(message):
            del event[name]
        event["channel"] = channel.name
        if "ext" in event:
            sent, owned = event["ext"] or {}, self.state.installed.owned
            ext = {
                key: value
                for key, value in sent.items()
                if key not in owned and key not in _OF_SERVER
            }
            if ext:
                event["ext"] = ext
            else:
                del event["ext"]
        return event

    def filter(self, exchange: Exchange, publish: EventPublish) -> None:
        """Run the channel's filters on an event before anything else happens.

        Raises `TurnOver`: a filter usually takes a microsecond, but some patterns take a thousand
        on some texts.
        """
        self.publishing.select(publish)
        if publish.candidate is None:
            return
        candidate = exchange.take_progress() or publish.candidate
        has_asked = False
        for filter in self.state.hub.routes.filters_on(publish.channel):
            if candidate.has_asked(filter):
                continue
            if has_asked and self.state.is_turn_over():
                exchange.progress = candidate
                raise TurnOver
            candidate.passes(filter)
            has_asked = True
        publish.candidate = candidate


class _ClientPublish:
    """A publish that is more than a message for subscribers, or that is not accepted at once."""

    __slots__ = (
        "_channel",
        "_event",
        "_exchange",
        "_fulfil",
        "_handler",
        "_message",
        "_qos",
        "_reply",
        "_session",
    )

    def __init__(
        self,
        handler: PublishHandler,
        exchange: Exchange,
        *,
        session: Session,
        channel: Channel,
        message: Json,
        reply: Json,
    ) -> None:
        self._handler = handler
        self._exchange = exchange
        self._session = session
        self._channel = channel
        self._message = message
        self._reply = reply
        self._qos: Qos | None = None
        self._event: EventPublish | None = None

    # The kinds of publish. Each returns whether the reply is complete.

    def broadcast(self, qos: Qos | None) -> bool:
        """Publish the message, and the request that it may carry."""
        self._qos = qos
        handler, exchange = self._handler, self._exchange
        event = handler.event(self._channel, self._message)
        if _asks(self._message):
            self._ask(self._message["ext"], event)
        publish = EventPublish(
            self._channel, event, exchange.now, sender=self._session, qos=self._qos
        )
        handler.filter(exchange, publish)
        return self._publish(publish)

    def wait_for(self, publish: EventPublish, outcome: PersistOutcome | None) -> bool:
        """Complete the reply to a message that was not accepted at once."""
        publish.then(self._answered)
        return self._is_complete(outcome, publish)

    def answer(self) -> bool:
        """Deliver a reply to its requester; clients may publish to no other reserved channel."""
        channel, handler = self._channel, self._handler
        if not channel.name.startswith(REPLIES):
            raise Refused(ErrorReply.PUBLISH_DENIED, BY_POLICY)
        if not handler.state.requests.is_offered:
            refuse_replies(channel)
        event = handler.event(channel, self._message)
        status = (self._message.get("ext") or {}).get(STATUS)
        if status is not None and status != END:
            # A responder may mark its reply as an error, but may not declare that no others follow.
            event["ext"] = {**event.get("ext", {}), STATUS: status}
        publish = EventPublish(channel, event, self._exchange.now, sender=self._session)
        publish.done = self._answered
        outcome = handler.requests.answer(publish, self._session)
        return self._is_complete(outcome, publish)

    def serve(self) -> bool:
        """Call the channel's service."""
        channel, state = self._channel, self._handler.state
        self._reply["successful"] = True
        service = state.services.find(channel)
        if service is None:
            refuse_service(channel)
            return not state.requests.is_offered or self._call()
        deliver = self._handler.publishing.deliver_event
        call = ServiceCall(
            deliver,
            state.is_turn_over,
            exchange=self._exchange,
            session=self._session,
            channel=channel.name,
            message=self._message,
            reply=self._reply,
        )
        outcome = service(call)
        if outcome is not None:
            check_outcome(f"the service of {channel.name}", outcome)
        if call.is_kept:
            finish_when_kept(state, self._session, self._pending())
        return not call.is_kept

    def _call(self) -> bool:
        """Call the subscribers of `/name` for the caller of `/service/name`, as cometd.js expects.

        There must be a subscription to exactly that channel: a message for a service is not meant
        for clients that subscribe to everything. Only a client that may call learns whether there
        is one.
        """
        state, message = self._handler.state, self._message
        target = state.channels.get("/" + self._channel.name.removeprefix(SERVICES))
        if target is None or target.kind is not Kind.BROADCAST or target.is_reserved:
            return True
        if not state.rights.are_open:
            state.rights.check_publish(self._session, target, message)
            state.rights.check_rules(Operation.REQUEST, self._session, target)
        is_here, everywhere = target.name in state.routes, self._handler.everywhere
        if not is_here and everywhere is None:
            # No service handles this channel.
            return True
        if len(str(message.get("id", ""))) > _LONGEST_CALL_ID:
            raise Refused(ErrorReply.MESSAGE_ID_INVALID)
        exchange, event = self._exchange, {"channel": target.name, "data": message["data"]}
        publish = EventPublish(target, event, exchange.now, sender=self._session)
        if is_here or everywhere is None:
            self._handler.filter(exchange, publish)
            return self._publish(self._as_call(publish))
        everywhere.find(target.name, partial(self._found, publish), publish.now)
        return self._is_complete(None)

    def _as_call(self, publish: EventPublish) -> EventPublish:
        call = self._channel.name, str(self._message.get("id", ""))
        requests, now = self._handler.requests, publish.now
        qos = Qos()
        qos.request = requests.call_of(self._session, publish.channel, call, now)
        publish.event["ext"] = _asked(qos.request)
        # The reply does not mention the QoS, because the client has not asked for it.
        publish.qos = qos
        return publish

    def _found(self, publish: EventPublish, is_subscribed: bool) -> None:
        """Call subscribers of other shards, if there are any."""
        handler = self._handler
        outcome: PersistOutcome | None = PersistOutcome.KEPT
        if is_subscribed and not self._session.is_gone:
            self._event, broadcast = publish, handler.publishing.broadcast
            try:
                call = self._as_call(publish)
                outcome = handler.requests.publish(call, broadcast, self._answered)
            except Refused as refused:
                publish.refused, outcome = refused, PersistOutcome.REFUSED
        if outcome is not None:
            self._answered(outcome)

    def _ask(self, ext: Mapping[str, Any], event: Json) -> None:
        """Turn the message into a request, and tell its receivers where to reply."""
        handler = self._handler
        if not handler.state.requests.is_offered:
            # An operator's extension owns the keys.
            return
        self._qos = qos = self._qos or Qos()
        if qos.is_administrative:
            raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", "administrative")
        requests = handler.requests
        qos.request = requests.request_of(self._session, self._channel, ext, self._exchange.now)
        # Every request is new, whatever its data.
        qos.force_update = True
        # At the end of the event, where `Request` later updates the deadline.
        event["ext"] = {**event.pop("ext", {}), **_asked(qos.request)}

    def _publish(self, publish: EventPublish) -> bool:
        handler = self._handler
        broadcast = handler.publishing.broadcast
        outcome = handler.requests.publish(publish, broadcast, self._answered)
        return self._is_complete(outcome, publish)

    # The reply

    def _is_complete(
        self, outcome: PersistOutcome | None, publish: EventPublish | None = None
    ) -> bool:
        """Complete the reply if the outcome is known. Returns whether it is."""
        # Until the outcome is known, because the publish refers to this object: a cycle would wait
        # for the garbage collector.
        self._event = publish
        if outcome is None:
            self._fulfil = self._pending()
            begin_publish(self._session)
            return False
        self._fill(outcome)
        return True

    def _pending(self) -> Step:
        return begin_pending(self._handler.answers, self._message, self._exchange, self._reply)

    def _fill(self, outcome: PersistOutcome) -> None:
        event, self._event = self._event, None
        match outcome:
            case PersistOutcome.KEPT | PersistOutcome.REPEATED:
                self._reply["successful"] = True
                if self._qos is not None:
                    confirmation = self._qos.confirmation(self._handler.state.node)
                    self._reply["ext"] = {"delivery": confirmation}
            case PersistOutcome.REFUSED:
                if event is not None and event.refused is not None:
                    raise event.refused
                raise Refused(ErrorReply.STORE_UNAVAILABLE, NO_CONNECTION.text)
            case PersistOutcome.UNKNOWN:
                raise Refused(ErrorReply.STORE_UNAVAILABLE, NO_CONNECTION.text, "unknown")

    def _answered(self, outcome: PersistOutcome) -> None:
        state = self._handler.state
        state.counters.repeated += outcome is PersistOutcome.REPEATED
        try:
            self._fill(outcome)
        except Refused as refused:
            refused.fill(self._reply, state.counters.errors)
            state.note_refused(self._message, refused.error)
        state.backlog.at_turn_end(self._finish)

    def _finish(self, now: float) -> None:
        end_publish(self._session)
        self._fulfil(now)
        publishes_stored(self._session, now)


def _asks(message: Json) -> bool:
    """Return whether the message asks for replies."""
    ext = message.get("ext")
    return bool(ext and ext.get(REPLY_TO))


def _asked(request: Request[Session]) -> Json:
    """Return the keys of `ext` that tell receivers where to reply, and by when."""
    return {REPLY_TO: request.address, TIMEOUT: request.timeout_ms}


def _addressed(message: Json, qos: Qos | None) -> tuple[Json, Qos]:
    """Return the message and its QoS, both taken from the data of a message to `/service/ptp`."""
    data = message["data"]
    known = {"destinations", "content"}
    if not isinstance(data, Mapping) or not known <= data.keys() <= known | {"channel"}:
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", "data")
    if data.get("channel", "") != "":
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", "channel")
    qos = qos or Qos()
    try:
        qos.destinations = destinations_of(data["destinations"])
    except DestinationInvalid as invalid:
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", "destinations") from invalid
    qos.is_subscribable = False
    qos.generates_channel = "channel" in data
    return {**message, "data": data["content"]}, qos
