"""`/meta/subscribe` and `/meta/unsubscribe`: all channels of a message, or none of them."""

from collections.abc import Iterable
from itertools import islice

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import Exchange
from app.bayeux.owing import owe
from app.bayeux.qos import QosInvalid
from app.bayeux.reserved import refuse_replies
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.bayeux.subscribe_qos import PLAIN, SubscribeQos
from app.bayeux.subscriptions import join, part, too_many
from app.bayeux.unfinished import Unfinished
from app.delivery.channels import Channel, Kind

_META = frozenset(
    f"/meta/{name}" for name in ("handshake", "connect", "subscribe", "unsubscribe", "disconnect")
)
_BY_POLICY = "denied_by_security_policy"
# Between so many names others have their turn, if this one has lasted long enough.
_NAMES = 64


def subscribe(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> bool:
    """Add the subscriptions; having one already is no error."""
    channels = _channels(bayeux, exchange, message)
    qos = subscribe_qos(session, message) if message.get("ext") else PLAIN
    for channel in channels:
        refuse_replies(channel)
        if channel.kind is Kind.META:
            known = channel.name in _META
            error = BayeuxError.SUBSCRIBE_DENIED if known else BayeuxError.CREATE_DENIED
            raise Refused(error, _BY_POLICY)
    # Subscribing to a service succeeds and means nothing: services answer their caller anyway.
    patterns = {channel.name: channel for channel in channels if channel.kind is Kind.BROADCAST}
    join(bayeux, session, patterns, message)
    if session.terms is not None:
        _note_oneway(session, patterns, qos)
    reply["successful"] = True
    return _is_noted(bayeux, exchange, session, message, reply)


def unsubscribe(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> bool:
    """Take the subscriptions away; having none is no error if the channel exists."""
    channels = _channels(bayeux, exchange, message)
    if any(channel.kind is Kind.META for channel in channels):
        raise Refused(BayeuxError.UNSUBSCRIBE_FAILED)
    patterns = [channel.name for channel in channels if channel.kind is Kind.BROADCAST]
    if not all(pattern in bayeux.hub.routes for pattern in patterns):
        raise Refused(BayeuxError.CHANNEL_MISSING)
    for pattern in patterns:
        part(bayeux, session, pattern)
    reply["successful"] = True
    return _is_noted(bayeux, exchange, session, message, reply)


def subscribe_qos(session: Session, message: Json) -> SubscribeQos:
    """What the subscriber asks for, if anything. Raises `Refused`."""
    asked = message["ext"].get("delivery")
    if asked is None:
        return PLAIN
    try:
        return SubscribeQos.of(asked, is_kept=session.is_durable)
    except QosInvalid as invalid:
        error = BayeuxError.DELIVERY_INVALID
        raise Refused(error, "user.illegalArgument", str(invalid)) from invalid


def _note_oneway(session: Session, patterns: Iterable[str], qos: SubscribeQos) -> None:
    """A later subscription to the same replaces what an earlier one agreed."""
    oneway = session.oneway or set()
    if qos.oneway:
        oneway |= set(patterns)
    else:
        oneway -= set(patterns)
    session.oneway = oneway or None


def _is_noted(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> bool:
    """Whether the reply is complete: subscriptions that are kept are kept before it is given."""
    if not session.is_durable:
        return True
    bayeux.ownership.note(session)
    bayeux.hub.keeper.after(owe(bayeux, message, exchange, reply))
    return False


def _channels(bayeux: Bayeux, exchange: Exchange, message: Json) -> list[Channel]:
    """What the message names, as a string or as an array of strings."""
    subscription = message.get("subscription")
    if subscription is None:
        raise Refused(BayeuxError.SUBSCRIPTION_MISSING)
    names = subscription if isinstance(subscription, list) else [subscription]
    if len(names) > bayeux.options.max_subscriptions:
        raise too_many(bayeux)
    channels: list[Channel] = exchange.take_progress() or []
    for name in islice(names, len(channels), None):
        channel = bayeux.channels.get(name) if isinstance(name, str) else None
        if channel is None:
            raise Refused(BayeuxError.SUBSCRIPTION_INVALID)
        channels.append(channel)
        if len(channels) % _NAMES == 0 and bayeux.is_turn_over():
            exchange.progress = channels
            raise Unfinished
    if not channels:
        raise Refused(BayeuxError.SUBSCRIPTION_INVALID)
    return channels
