"""`/meta/disconnect`: a session ends because its client says so."""

from collections.abc import Mapping
from enum import Enum

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import Exchange
from app.bayeux.life import Input
from app.bayeux.owing import owe
from app.bayeux.qos import SAID_BY_RECEIVERS, QosInvalid, refuse_others
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.bayeux.takeover import leave
from app.delivery.counters import Reason
from app.delivery.error_codes import GIVEN_UP

_OPTIONS = SAID_BY_RECEIVERS | {"end", "discard"}


class Parting(Enum):
    """What a disconnect means for a named session; any other ends and is discarded."""

    # It waits for its next client.
    LEAVES = "leaves"
    # It ends, and what it did not get becomes dead letters.
    ENDS = "ends"
    # It ends, and what it did not get is discarded.
    DISCARDS = "discards"


def parting_of(message: Json) -> Parting:
    """What the client asks for. Raises `Refused`."""
    asked = (message.get("ext") or {}).get("delivery")
    if asked is None:
        return Parting.LEAVES
    try:
        return _parting(asked)
    except QosInvalid as invalid:
        error = BayeuxError.DELIVERY_INVALID
        raise Refused(error, "user.illegalArgument", str(invalid)) from invalid


def _parting(asked: object) -> Parting:
    if not isinstance(asked, Mapping):
        raise QosInvalid("delivery")
    refuse_others(asked, _OPTIONS, {})
    for name in ("end", "discard"):
        if not isinstance(asked.get(name), bool | None):
            raise QosInvalid(name)
    if asked.get("end"):
        return Parting.DISCARDS if asked.get("discard") else Parting.ENDS
    if asked.get("discard"):
        # A session that goes on keeps what waits for it.
        raise QosInvalid("discard")
    return Parting.LEAVES


def disconnect(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> bool:
    """End the session. What still waits for it travels with this reply, if it may.

    A named session is only left, unless its client says that it shall end. Whether the reply is
    complete is returned.
    """
    parting = parting_of(message)
    if session.owed_publishes:
        _disconnect_when_published(bayeux, exchange, session, message, reply, parting)
        return False
    if not _disconnect(bayeux, session, reply, parting):
        return True
    bayeux.hub.keeper.after(owe(bayeux, message, exchange, reply))
    return False


def _disconnect_when_published(
    bayeux: Bayeux,
    exchange: Exchange,
    session: Session,
    message: Json,
    reply: Json,
    parting: Parting,
) -> None:
    client_id, before = session.client_id, session.when_published
    fulfil = owe(bayeux, message, exchange, reply)

    def disconnect_then() -> None:
        if before is not None:
            before()
        reply["successful"] = True
        # Unless somebody else has taken it over meanwhile.
        is_mine = session.client_id == client_id
        if is_mine and _disconnect(bayeux, session, reply, parting):
            bayeux.hub.keeper.after(fulfil)
        else:
            fulfil()

    session.when_published = disconnect_then


def _disconnect(bayeux: Bayeux, session: Session, reply: Json, parting: Parting) -> bool:
    """Whether the reply waits: who hears that the session has ended may rely on its letters."""
    reply["successful"] = True
    if session.has_left:
        return False
    is_named = session.terms is not None and session.terms.is_named
    if is_named and parting is Parting.LEAVES:
        leave(bayeux, session)
        return False
    leaves_letters = is_named and parting is Parting.ENDS
    if leaves_letters:
        _bury(bayeux, session)
    # It had these, and may have acted on them: it is not told again while it leaves.
    bayeux.exits.discard_handed(session, Reason.SESSION_ENDED)
    # Before this reply: cometd.js closes its socket only when no connect is outstanding.
    bayeux.answers.dismiss(session)
    bayeux.exits.discard_handed(session, Reason.SESSION_ENDED)
    bayeux.end(session, Input.DISCONNECT)
    return leaves_letters


def _bury(bayeux: Bayeux, session: Session) -> None:
    """Nobody comes back for what is in the queue, nor for what is still on its way into it."""
    bayeux.exits.bury_all(session, GIVEN_UP, "its session was ended by its client", bayeux.now)
    session.is_given_up = True
