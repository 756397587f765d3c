"""`/meta/disconnect`: a session ends because its client says so."""

from app.bayeux.codec import Json
from app.bayeux.exchange import Exchange
from app.bayeux.life import Input
from app.bayeux.owing import owe
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.bayeux.takeover import leave
from app.delivery.counters import Reason


def disconnect(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> bool:
    """End the session. What still waits for it travels with this reply, if it may.

    A named session is only left, unless its client says that it shall end.
    """
    if session.owed_publishes:
        _disconnect_when_published(bayeux, exchange, session, message, reply)
        return False
    _disconnect(bayeux, session, message, reply)
    return True


def _disconnect_when_published(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> None:
    client_id, before = session.client_id, session.when_published
    fulfil = owe(bayeux, message, exchange, reply)

    def disconnect_then() -> None:
        if before is not None:
            before()
        reply["successful"] = True
        if session.client_id == client_id:
            # Nobody else has taken it over meanwhile.
            _disconnect(bayeux, session, message, reply)
        fulfil()

    session.when_published = disconnect_then


def _disconnect(bayeux: Bayeux, session: Session, message: Json, reply: Json) -> None:
    reply["successful"] = True
    if session.has_left:
        return
    asked = (message.get("ext") or {}).get("delivery")
    ends = isinstance(asked, dict) and asked.get("end") is True
    if session.terms is not None and session.terms.is_named and not ends:
        leave(bayeux, session)
        return
    # It had these, and may have acted on them: it is not told again while it leaves.
    bayeux.exits.discard_handed(session, Reason.SESSION_ENDED)
    # Before this reply: cometd.js closes its socket only when no connect is outstanding.
    bayeux.answers.dismiss(session)
    bayeux.exits.discard_handed(session, Reason.SESSION_ENDED)
    bayeux.end(session, Input.DISCONNECT)
