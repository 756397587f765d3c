"""Publishing to subscribers or to a service."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from holdfast.bayeux.answers import Answers
from holdfast.bayeux.asking import REPLY_TO, TIMEOUT
from holdfast.bayeux.codec import Json
from holdfast.bayeux.delivery_options import QosInvalid
from holdfast.bayeux.destinations import DestinationInvalid, destinations_of
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.hooks import check_outcome
from holdfast.bayeux.operation import Operation
from holdfast.bayeux.pending_replies import begin_pending
from holdfast.bayeux.point_to_point import PTP
from holdfast.bayeux.publish_keys import key_of
from holdfast.bayeux.publishing import Publishing
from holdfast.bayeux.qos import Qos
from holdfast.bayeux.reserved import refuse_replies, refuse_service
from holdfast.bayeux.rights import BY_POLICY
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.services import ServiceCall
from holdfast.bayeux.sessions import Exchange, Session
from holdfast.bayeux.turn_over import TurnOver
from holdfast.delivery.channels import REPLIES, SERVICES, Channel, Kind
from holdfast.delivery.error_codes import CHANNEL_HELD, NO_CONNECTION
from holdfast.delivery.filters import Candidate
from holdfast.delivery.persist_outcome import PersistOutcome

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


# Limit on publishes of one session that wait for the store.
_MOST_PENDING: Final = 256
# The longest id of a remote call, which is remembered with its request.
_LONGEST_CALL_ID: Final = 100


def publish(
    state: ServerState,
    answers: Answers,
    publishing: Publishing,
    exchange: Exchange,
    session: Session,
    channel: Channel,
    message: Json,
    reply: Json,
) -> bool:
    """Deliver the message; the reply only confirms that.

    Returns whether the reply is complete: durable messages are stored before they are delivered.
    """
    if channel.is_wild:
        raise Refused(ErrorReply.CHANNEL_INVALID)
    if "data" not in message:
        raise Refused(ErrorReply.DATA_MISSING)
    if channel.is_reserved:
        return _answer(state, answers, publishing, exchange, session, channel, message, reply)
    if not state.rights.are_open:
        exists = bool(state.routes.receivers(channel)) or channel.kind is Kind.SERVICE
        state.rights.check_publish(session, channel, message, exists=exists)
    ext = message.get("ext")
    qos = publish_qos(channel, message) if ext else None
    if channel.name == PTP:
        message, qos = _addressed(message, qos)
    elif channel.kind is Kind.SERVICE:
        return _serve(state, answers, publishing, exchange, session, channel, message, reply)
    _check(state, session, channel, message, qos)
    if qos is not None and qos.generates_channel:
        channel = _generated(state, session, qos)
    event = _event(state, channel, message)
    if ext and ext.get(REPLY_TO):
        qos = _asking(state, publishing, session, channel, ext, event, qos, exchange.now)
    candidate = publishing.candidate(channel, event, session, qos)
    candidate = _ask_filters(state, exchange, channel, candidate)
    if qos is None and not state.hub.may_wait:
        publishing.broadcast(channel, event, exchange.now, sender=session, candidate=candidate)
        session.published += 1
        reply["successful"] = True
        return True
    pending = _PendingPublish(state, answers, session, message, exchange, reply, qos)
    broadcast = partial(
        publishing.broadcast,
        channel,
        event,
        exchange.now,
        sender=session,
        qos=qos,
        candidate=candidate,
    )
    return pending.is_complete(publishing.asking.publish(qos, broadcast, pending.answered))


def _asking(
    state: ServerState,
    publishing: Publishing,
    session: Session,
    channel: Channel,
    ext: Mapping[str, Any],
    event: Json,
    qos: Qos | None,
    now: float,
) -> Qos | None:
    """Return the QoS of a message that asks for replies, and tell its receivers where to."""
    if not state.requests.is_offered:
        # An extension of the operator's owns the keys.
        return qos
    qos = qos or Qos()
    if qos.is_administrative:
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", "administrative")
    qos.request = request = publishing.asking.request_of(session, channel, ext, now)
    # A request is a new one, whatever its data.
    qos.force_update = True
    asked = {REPLY_TO: request.address, TIMEOUT: request.timeout_ms}
    # At the end of the event, where the rest of the deadline is found again.
    event["ext"] = {**event.pop("ext", {}), **asked}
    return qos


def _answer(
    state: ServerState,
    answers: Answers,
    publishing: Publishing,
    exchange: Exchange,
    session: Session,
    channel: Channel,
    message: Json,
    reply: Json,
) -> bool:
    """Bring a reply to its requester; clients may publish on no other reserved channel."""
    if not channel.name.startswith(REPLIES):
        raise Refused(ErrorReply.PUBLISH_DENIED, BY_POLICY)
    if not state.requests.is_offered:
        refuse_replies(channel)
    pending = _PendingPublish(state, answers, session, message, exchange, reply, None)
    event = _event(state, channel, message)
    return pending.is_complete(publishing.asking.answer(session, channel, event, pending.answered))


def _ask_filters(
    state: ServerState, exchange: Exchange, channel: Channel, candidate: Candidate | None
) -> Candidate | None:
    """Ask the filters of the channel about the message before anything is done. Raises `TurnOver`.

    A filter takes a microsecond, but some patterns with some texts take a thousand.
    """
    if candidate is None:
        return None
    candidate = exchange.take_progress() or candidate
    has_asked = False
    for filter in state.hub.routes.filters_on(channel):
        if candidate.has_asked(filter):
            continue
        if has_asked and state.is_turn_over():
            exchange.progress = candidate
            raise TurnOver
        candidate.passes(filter)
        has_asked = True
    return candidate


def _check(
    state: ServerState, session: Session, channel: Channel, message: Json, qos: Qos | None
) -> None:
    """Raise `Refused` if the message may not be addressed, or must not wait now."""
    if qos is not None:
        if qos.destinations:
            state.rights.check_rules(Operation.PTP, session, channel)
        if qos.configures and not state.rights.are_open:
            state.rights.check_topic(session, channel, message)
        if qos.refuse_held and state.guard.is_held(channel.name):
            raise Refused(ErrorReply.CHANNEL_HELD_BACK, CHANNEL_HELD.text, channel.name)
    if session.pending_publishes >= _MOST_PENDING:
        raise Refused(ErrorReply.PUBLISHES_EXCEEDED, str(_MOST_PENDING))


def _addressed(message: Json, qos: Qos | None) -> tuple[Json, Qos]:
    """Return the message and its QoS, which are in the data of a message to `/service/ptp`."""
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


def _generated(state: ServerState, session: Session, qos: Qos) -> Channel:
    """Return a channel for this message alone: for its repeats, if it has a key, the same."""
    if qos.key is None:
        name = f"{state.node.name}-{state.node.stamp()}"
    else:
        name = key_of(session, qos.key).digest
    qos.channel = f"{PTP}/{name}"
    return state.channels.named(qos.channel)


def _serve(
    state: ServerState,
    answers: Answers,
    publishing: Publishing,
    exchange: Exchange,
    session: Session,
    channel: Channel,
    message: Json,
    reply: Json,
) -> bool:
    reply["successful"] = True
    service = state.services.find(channel)
    if service is None:
        refuse_service(channel)
        if not state.requests.is_offered:
            return True
        return _call(state, answers, publishing, exchange, session, channel, message, reply)
    call = ServiceCall(publishing.deliver_event, session, channel.name, message, exchange.now)
    outcome = service(call)
    if outcome is not None:
        check_outcome(f"the service of {channel.name}", outcome)
    if call.is_kept:
        state.when_kept(begin_pending(answers, message, exchange, reply))
        return False
    return True


def _call(
    state: ServerState,
    answers: Answers,
    publishing: Publishing,
    exchange: Exchange,
    session: Session,
    channel: Channel,
    message: Json,
    reply: Json,
) -> bool:
    """Ask the subscribers of `/name` on behalf of who calls `/service/name`, as cometd.js does.

    Somebody must subscribe to that very channel: what is for a service is nothing that those who
    listen to everything may expect to hear.
    """
    target = state.channels.get("/" + channel.name.removeprefix(SERVICES))
    is_call = target is not None and target.kind is Kind.BROADCAST and not target.is_reserved
    if target is None or not is_call or target.name not in state.routes:
        # Nobody serves this channel.
        return True
    if not state.rights.are_open:
        state.rights.check_publish(session, target, message, exists=True)
    id = str(message.get("id", ""))
    if len(id) > _LONGEST_CALL_ID:
        raise Refused(ErrorReply.MESSAGE_ID_INVALID)
    call = channel.name, id
    qos = Qos()
    qos.request = request = publishing.asking.call_of(session, target, call, exchange.now)
    asked = {REPLY_TO: request.address, TIMEOUT: request.timeout_ms}
    event = {"channel": target.name, "data": message["data"], "ext": asked}
    broadcast = partial(publishing.broadcast, target, event, exchange.now, sender=session, qos=qos)
    pending = _PendingPublish(state, answers, session, message, exchange, reply, None)
    return pending.is_complete(publishing.asking.publish(qos, broadcast, pending.answered))


class _PendingPublish:
    """A publish whose reply waits for the store."""

    __slots__ = (
        "_answers",
        "_exchange",
        "_fulfil",
        "_message",
        "_qos",
        "_reply",
        "_session",
        "_state",
    )

    def __init__(
        self,
        state: ServerState,
        answers: Answers,
        session: Session,
        message: Json,
        exchange: Exchange,
        reply: Json,
        qos: Qos | None,
    ) -> None:
        self._state = state
        self._answers = answers
        self._session = session
        self._message = message
        self._exchange = exchange
        self._reply = reply
        self._qos = qos

    def is_complete(self, outcome: PersistOutcome | None) -> bool:
        """Complete the reply if the outcome is known; return whether it is."""
        if outcome is None:
            self._begin()
            return False
        _fill(self._state, self._session, self._reply, outcome, self._qos)
        return True

    def _begin(self) -> None:
        self._fulfil = begin_pending(self._answers, self._message, self._exchange, self._reply)
        self._session.pending_publishes += 1

    def answered(self, outcome: PersistOutcome) -> None:
        session = self._session
        self._state.counters.repeated += outcome is PersistOutcome.REPEATED
        try:
            _fill(self._state, session, self._reply, outcome, self._qos)
        except Refused as refused:
            refused.fill(self._reply)
        self._state.backlog.at_turn_end(self._finish)

    def _finish(self, now: float) -> None:
        session = self._session
        session.pending_publishes -= 1
        self._fulfil(now)
        if not session.pending_publishes and session.when_published is not None:
            go_on, session.when_published = session.when_published, None
            go_on(now)


def _fill(
    state: ServerState, session: Session, reply: Json, outcome: PersistOutcome, qos: Qos | None
) -> None:
    match outcome:
        case PersistOutcome.KEPT | PersistOutcome.REPEATED:
            session.published += outcome is PersistOutcome.KEPT
            reply["successful"] = True
            if qos is not None:
                reply["ext"] = {"delivery": qos.confirmation(state.node.name)}
        case PersistOutcome.REFUSED:
            raise Refused(ErrorReply.STORE_UNAVAILABLE, NO_CONNECTION.text)
        case PersistOutcome.UNKNOWN:
            raise Refused(ErrorReply.STORE_UNAVAILABLE, NO_CONNECTION.text, "unknown")


def publish_qos(channel: Channel, message: Json) -> Qos | None:
    """Return the publish options of a message, if it has any. Raises `Refused`."""
    asked = message["ext"].get("delivery")
    if asked is None:
        return None
    try:
        qos = Qos.of(asked)
    except QosInvalid as invalid:
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", str(invalid)) from invalid
    if channel.kind is Kind.SERVICE:
        _refuse_for_service(channel, qos)
    return qos


def _refuse_for_service(channel: Channel, qos: Qos) -> None:
    """Refuse options that services do not have."""
    name = ""
    if qos.key is not None and channel.name != PTP:
        # Only point-to-point messages recognise repeats.
        name = "key"
    elif qos.destinations:
        # The data of a message to `/service/ptp` has them.
        name = "destinations"
    elif qos.configures:
        name = "administrative" if qos.topic is None else "topic"
    if name:
        raise Refused(ErrorReply.DELIVERY_INVALID, "user.publish", name)


def _event(state: ServerState, channel: Channel, message: Json) -> Json:
    """Return the event: the message without the fields that are only for the server."""
    event = message.copy()
    for name in PROTOCOL_FIELDS.intersection(message):
        del event[name]
    event["channel"] = channel.name
    if "ext" in event:
        sent = event["ext"] or {}
        ext = {key: value for key, value in sent.items() if key not in state.installed.owned}
        if ext:
            event["ext"] = ext
        else:
            del event["ext"]
    return event
