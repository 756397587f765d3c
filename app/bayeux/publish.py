"""Publishing: to subscribers, or to a service."""

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import Exchange
from app.bayeux.hooks import check_outcome
from app.bayeux.owing import owe
from app.bayeux.qos import Qos, QosInvalid
from app.bayeux.reserved import refuse_replies, refuse_service
from app.bayeux.rights import BY_POLICY
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session
from app.delivery.channels import Channel, Kind
from app.delivery.error_codes import CHANNEL_HELD, NO_CONNECTION
from app.delivery.keeper import Kept

# Fields with a meaning of their own to receivers. A publisher who could set `advice` could
# disconnect every subscriber; `clientId` would give the publisher's session away.
PROTOCOL_FIELDS = frozenset(
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


# How many publishes of one session may wait for the store.
_MOST_OWED = 256


def publish(
    bayeux: Bayeux,
    exchange: Exchange,
    session: Session,
    channel: Channel,
    message: Json,
    reply: Json,
) -> bool:
    """Give the message to whom it is for; the reply only says that this was done.

    Whether the reply is complete is returned: what is kept is kept before it is given.
    """
    if channel.is_wild:
        raise Refused(BayeuxError.CHANNEL_INVALID)
    if "data" not in message:
        raise Refused(BayeuxError.DATA_MISSING)
    if channel.is_reserved:
        refuse_replies(channel)
        raise Refused(BayeuxError.PUBLISH_DENIED, BY_POLICY)
    if not bayeux.rights.are_open:
        exists = bool(bayeux.hub.routes.receivers(channel)) or channel.kind is Kind.SERVICE
        bayeux.rights.check_publish(session, channel, message, exists=exists)
    qos = publish_qos(channel, message) if message.get("ext") else None
    if channel.kind is Kind.SERVICE:
        return _serve(bayeux, exchange, session, channel, message, reply)
    if qos is not None and qos.refuse_held and bayeux.guard.is_held(channel.name):
        raise Refused(BayeuxError.CHANNEL_HELD_BACK, CHANNEL_HELD.text, channel.name)
    if session.owed_publishes >= _MOST_OWED:
        raise Refused(BayeuxError.PUBLISHES_EXCEEDED, str(_MOST_OWED))
    event = _event(bayeux, channel, message)
    if qos is None and not bayeux.hub.may_wait:
        bayeux.broadcast(channel, event, sender=session)
        session.published += 1
        reply["successful"] = True
        return True
    owed = _Owed(bayeux, session, message, exchange, reply, qos)
    outcome = bayeux.broadcast(channel, event, sender=session, qos=qos, done=owed.answered)
    if outcome is None:
        owed.begin()
        return False
    _fill(session, reply, outcome, qos)
    return True


def _serve(
    bayeux: Bayeux,
    exchange: Exchange,
    session: Session,
    channel: Channel,
    message: Json,
    reply: Json,
) -> bool:
    reply["successful"] = True
    service = bayeux.services.find(channel)
    if service is None:
        refuse_service(channel)
        return True
    call = Call(bayeux.deliver_event, session, channel.name, message)
    outcome = service(call)
    if outcome is not None:
        check_outcome(f"the service of {channel.name}", outcome)
    if call.is_kept:
        bayeux.hub.keeper.after(owe(bayeux, message, exchange, reply))
        return False
    return True


class _Owed:
    """A publish whose reply waits for the store."""

    __slots__ = ("_bayeux", "_exchange", "_fulfil", "_message", "_qos", "_reply", "_session")

    def __init__(
        self,
        bayeux: Bayeux,
        session: Session,
        message: Json,
        exchange: Exchange,
        reply: Json,
        qos: Qos | None,
    ) -> None:
        self._bayeux = bayeux
        self._session = session
        self._message = message
        self._exchange = exchange
        self._reply = reply
        self._qos = qos

    def begin(self) -> None:
        self._fulfil = owe(self._bayeux, self._message, self._exchange, self._reply)
        self._session.owed_publishes += 1

    def answered(self, outcome: Kept) -> None:
        session = self._session
        self._bayeux.hub.counters.repeated += outcome is Kept.REPEATED
        try:
            _fill(session, self._reply, outcome, self._qos)
        except Refused as refused:
            refused.fill(self._reply)
        session.owed_publishes -= 1
        self._fulfil()
        if not session.owed_publishes and session.when_published is not None:
            go_on, session.when_published = session.when_published, None
            go_on()


def _fill(session: Session, reply: Json, outcome: Kept, qos: Qos | None) -> None:
    match outcome:
        case Kept.KEPT | Kept.REPEATED:
            session.published += outcome is Kept.KEPT
            reply["successful"] = True
            if qos is not None:
                reply["ext"] = {"delivery": qos.told()}
        case Kept.REFUSED:
            raise Refused(BayeuxError.STORE_UNAVAILABLE, NO_CONNECTION.text)
        case Kept.UNKNOWN:
            raise Refused(BayeuxError.STORE_UNAVAILABLE, NO_CONNECTION.text, "unknown")


def publish_qos(channel: Channel, message: Json) -> Qos | None:
    """What the publisher asks for its message, if anything. Raises `Refused`."""
    asked = message["ext"].get("delivery")
    if asked is None:
        return None
    try:
        qos = Qos.of(asked)
    except QosInvalid as invalid:
        raise Refused(BayeuxError.DELIVERY_INVALID, "user.publish", str(invalid)) from invalid
    if qos.key is not None and channel.kind is Kind.SERVICE:
        # What is asked a second time is done a second time.
        raise Refused(BayeuxError.DELIVERY_INVALID, "user.publish", "key")
    return qos


def _event(bayeux: Bayeux, channel: Channel, message: Json) -> Json:
    """What receivers get: everything that the publisher sent but what is between it and us."""
    event = message.copy()
    for name in PROTOCOL_FIELDS.intersection(message):
        del event[name]
    event["channel"] = channel.name
    if "ext" in event:
        sent = event["ext"] or {}
        ext = {key: value for key, value in sent.items() if key not in bayeux.owned_ext}
        if ext:
            event["ext"] = ext
        else:
            del event["ext"]
    return event
