"""Named sessions: taken over by a new client, left by one that will come back."""

from typing import TYPE_CHECKING

from app.bayeux.advice import reconnect_advice
from app.bayeux.caller import UNKNOWN
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.life import Input
from app.bayeux.sessions import Session

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux


def take_over(bayeux: "Bayeux", session: Session, draft: Session, browser: str) -> None:
    """The client that handshook with `draft` speaks for the session from now on."""
    _dismiss_client(bayeux, session)
    bayeux.sessions.rename(session, draft.client_id, browser)
    session.advance(Input.RESUME)
    session.extensions = draft.extensions
    session.attributes = draft.attributes
    session.caller = draft.caller
    session.timeout_s = draft.timeout_s
    session.interval_s = session.rest_interval_s = draft.interval_s
    session.deliver_only = draft.deliver_only
    session.dress = draft.dress
    session.terms = draft.terms
    bayeux.sessions.names.hold(session)
    session.role, session.warrant = draft.role, draft.warrant
    session.is_advised = session.is_resumed = True
    session.ends_at = 0.0
    bayeux.places.desert(session)
    _take_queue(bayeux, session, draft)
    before = None if session.dispatcher is None else session.dispatcher.state
    if bayeux.witness is not None:
        bayeux.witness.session(session, "taken_over")
    _take_dispatcher(bayeux, session, draft)
    after = None if session.dispatcher is None else session.dispatcher.state
    if after is not None and after is not before and bayeux.witness is not None:
        bayeux.witness.dispatcher(session, after)


def _take_queue(bayeux: "Bayeux", session: Session, draft: Session) -> None:
    """What the old client had in hands comes again, on the terms of the new one."""
    queue = session.queue
    bayeux.settlement.change_hands(session, bayeux.now)
    queue.take_terms(draft.queue)


def _take_dispatcher(bayeux: "Bayeux", session: Session, draft: Session) -> None:
    old, new = session.dispatcher, draft.dispatcher
    if old is None or new is None or old.is_dead:
        session.dispatcher = new
        session.is_closed = session.is_given_up = False
        return
    old.policy = new.policy
    old.contact(bayeux.now)
    if new.hold_record is not None and old.hold_record is None:
        old.hold(new.hold_record)
        if bayeux.witness is not None:
            bayeux.witness.held("client", receiver=session.key)
    elif draft.terms is not None and draft.terms.dispatcher_active:
        bayeux.resume(session, "client")


def leave(bayeux: "Bayeux", session: Session, reconnect: str = "none") -> None:
    """The client goes and may come back: everything waits, under the name of the session."""
    _dismiss_client(bayeux, session, reconnect)
    bayeux.settlement.change_hands(session, bayeux.now)
    session.advance(Input.LEAVE)
    if bayeux.witness is not None:
        bayeux.witness.session(session, "left")
    bayeux.clock.lie(session)
    bayeux.ownership.note(session)


def _dismiss_client(bayeux: "Bayeux", session: Session, reconnect: str = "none") -> None:
    """Nobody speaks for the session at the moment."""
    advice = reconnect_advice(bayeux.options, reconnect)
    bayeux.answers.refuse_held(session, Refused(BayeuxError.SESSION_UNKNOWN, advice=advice))
    pipe = session.pipe
    session.pipe = None
    session.carrier = None
    session.caller = UNKNOWN
    session.quiet_until = session.lazy_due = 0.0
    if pipe is not None and pipe.session is session:
        pipe.session = None
