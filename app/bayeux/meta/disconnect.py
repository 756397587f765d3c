"""`/meta/disconnect`: a client ends its session or leaves it."""

from collections.abc import Mapping
from enum import Enum

from holdfast.bayeux.replies.pending import begin_pending
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.takeover import leave
from holdfast.bayeux.state.unstored_replies import (
    unstored_publishes,
    unstored_replies,
    when_publishes_stored,
)
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.known_options import SAID_BY_RECEIVERS, QosInvalid, refuse_others
from holdfast.delivery.basics.error_codes import DELIVERY_ENDED
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason

_OPTIONS = SAID_BY_RECEIVERS | {"end", "discard"}


class DisconnectMode(Enum):
    """The effect of a disconnect on a named session. Other sessions end and are discarded."""

    # The session waits for its next client.
    LEAVES = "leaves"
    # The session ends, and its queue becomes dead letters.
    ENDS = "ends"
    # The session ends, and its queue is discarded.
    DISCARDS = "discards"


def disconnect_mode_of(message: Json) -> DisconnectMode:
    """Return the mode that the client requests. Raises `Refused`."""
    asked = (message.get("ext") or {}).get("delivery")
    if asked is None:
        return DisconnectMode.LEAVES
    try:
        return _disconnect_mode(asked)
    except QosInvalid as invalid:
        error = ErrorReply.DELIVERY_INVALID
        raise Refused(error, "user.illegalArgument", str(invalid)) from invalid


def _disconnect_mode(asked: object) -> DisconnectMode:
    if not isinstance(asked, Mapping):
        raise QosInvalid("delivery")
    refuse_others(asked, _OPTIONS)
    for name in ("end", "discard"):
        if not isinstance(asked.get(name), bool | None):
            raise QosInvalid(name)
    if asked.get("end"):
        return DisconnectMode.DISCARDS if asked.get("discard") else DisconnectMode.ENDS
    if asked.get("discard"):
        # A session that continues keeps its queue.
        raise QosInvalid("discard")
    return DisconnectMode.LEAVES


def disconnect(
    life: SessionLife, exchange: Exchange, *, session: Session, message: Json, reply: Json
) -> bool:
    """End the session. Waiting messages travel with this reply, unless they would overtake others.

    A named session only becomes away, unless its client ends it. Returns whether the reply is
    complete.
    """
    mode = disconnect_mode_of(message)
    if unstored_publishes(session):
        _disconnect_when_published(
            life, exchange, session=session, message=message, reply=reply, mode=mode
        )
        return False
    if not _disconnect(life, exchange, session=session, reply=reply, mode=mode, now=exchange.now):
        return True
    life.state.when_kept(begin_pending(life.answers, message, exchange, reply))
    return False


def _disconnect_when_published(
    life: SessionLife,
    exchange: Exchange,
    *,
    session: Session,
    message: Json,
    reply: Json,
    mode: DisconnectMode,
) -> None:
    client_id = session.client_id
    fulfil = begin_pending(life.answers, message, exchange, reply)

    def disconnect_then(now: float) -> None:
        reply["successful"] = True
        # Another client may have taken it over in the meantime.
        if session.client_id == client_id and not session.has_left:
            must_wait = _disconnect(
                life, exchange, session=session, reply=reply, mode=mode, now=now
            )
        else:
            must_wait = unstored_replies(session) > 0
        if must_wait:
            life.state.when_kept(fulfil)
        else:
            fulfil(now)

    when_publishes_stored(session, disconnect_then)


def _disconnect(
    life: SessionLife,
    exchange: Exchange,
    *,
    session: Session,
    reply: Json,
    mode: DisconnectMode,
    now: float,
) -> bool:
    """Disconnect the session. Returns whether the reply must wait for the store.

    It must if it confirms dead letters, or if earlier replies wait: cometd.js closes its socket at
    this reply only when no connect is outstanding.
    """
    reply["successful"] = True
    is_named = session.terms is not None and session.terms.is_named
    if is_named and mode is DisconnectMode.LEAVES:
        leave(life, session, now)
        return unstored_replies(session) > 0
    leaves_letters = is_named and mode is DisconnectMode.ENDS
    if leaves_letters:
        why = "its session was ended by its client"
        life.undelivered.dead_letter_all(session, DELIVERY_ENDED, why, now)
    # Before the rest is handed over or discarded: another session of the subject may get these.
    life.undelivered.requeue_all(session, now)
    # The client may have processed these, so they are not sent again while it leaves.
    under_way = life.undelivered.discard_in_flight(session)
    life.answers.dismiss(session, now)
    under_way += life.undelivered.discard_in_flight(session)
    life.ends.end(session, SessionInput.END if leaves_letters else SessionInput.DISCONNECT)
    must_wait = unstored_replies(session) > 0
    # A reply that waits carries no messages. Over HTTP, this reply takes another connection than
    # the connects, so the rest could arrive before messages that are under way.
    if must_wait or (under_way and exchange.pipe is None):
        life.undelivered.discard_rest(session, Reason.SESSION_ENDED)
    return must_wait or leaves_letters
