"""`/meta/disconnect`: a session ends because its client says so."""

from app.bayeux.codec import Json
from app.bayeux.exchange import Exchange
from app.bayeux.life import Input
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.delivery.counters import Reason


def disconnect(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> None:
    """End the session. What still waits for it travels with this reply, if it may."""
    # It had these, and may have acted on them: it is not told again while it leaves.
    session.queue.discard_handed(Reason.SESSION_ENDED)
    # Before this reply: cometd.js closes its socket only when no connect is outstanding.
    if bayeux.dismiss(session):
        session.queue.discard_handed(Reason.SESSION_ENDED)
    bayeux.end(session, Input.DISCONNECT)
    reply["successful"] = True
