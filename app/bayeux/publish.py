"""Publishing: to subscribers, or to a service."""

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.server import Bayeux
from app.bayeux.services import Call
from app.bayeux.sessions import Session
from app.delivery.channels import Channel, Kind

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


def publish(bayeux: Bayeux, session: Session, channel: Channel, message: Json, reply: Json) -> None:
    """Give the message to whom it is for; the reply only says that this was done."""
    if channel.is_wild:
        raise Refused(BayeuxError.CHANNEL_INVALID)
    if "data" not in message:
        raise Refused(BayeuxError.DATA_MISSING)
    if not bayeux.rights.are_open:
        exists = bool(bayeux.hub.routes.receivers(channel)) or channel.kind is Kind.SERVICE
        bayeux.rights.check_publish(session, channel, message, exists=exists)
    if channel.kind is Kind.SERVICE:
        service = bayeux.services.find(channel)
        if service is not None:
            service(Call(bayeux.deliver_event, session, channel.name, message))
    else:
        bayeux.broadcast(channel, _event(bayeux, channel, message), sender=session)
    reply["successful"] = True


def _event(bayeux: Bayeux, channel: Channel, message: Json) -> Json:
    """What receivers get: everything that the publisher sent but what is between it and us."""
    event = {name: value for name, value in message.items() if name not in PROTOCOL_FIELDS}
    event["channel"] = channel.name
    if "ext" in event:
        sent = event["ext"] or {}
        ext = {key: value for key, value in sent.items() if key not in bayeux.owned_ext}
        if ext:
            event["ext"] = ext
        else:
            del event["ext"]
    return event
