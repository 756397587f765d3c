"""Gives a named session to a new client, or leaves it waiting. `claims` decides who may have it."""

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.expiry.unconnected import forget_seen_earlier
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.wire.caller import UNKNOWN
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.error_codes import DELIVERY_ENDED
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.requests.reply_channels import take_reply_channel
from holdfast.delivery.shared_queues.subjects import DENIED
from holdfast.delivery.shared_queues.unclaimed_names import claim


def take_over(life: SessionLife, session: Session, draft: Session, now: float) -> None:
    """Make the client of the handshake `draft` the session's client."""
    state = life.state
    before = None if session.dispatcher is None else session.dispatcher.state
    _dismiss_client(life, session, ErrorReply.SESSION_TAKEN)
    state.sessions.rename(session, draft.client_id)
    was_away = session.is_away
    session.advance(SessionInput.RESUME)
    session.extensions = draft.extensions
    session.attributes = draft.attributes
    session.caller, session.identity = draft.caller, draft.identity
    is_first = claim(session)
    if is_first:
        state.sessions.usages.claim(session)
        life.login_events.began(session)
    else:
        # A restored session does not count for an address yet.
        state.sessions.usages.add(session)
    session.timeout_s = draft.timeout_s
    session.interval_s = session.rest_interval_s = draft.interval_s
    session.deliver_only = draft.deliver_only
    session.decorators = draft.decorators
    take_reply_channel(session, draft)
    session.terms = draft.terms
    state.sessions.names.claim(session)
    session.is_advised = session.is_resumed = True
    session.ends_at = 0.0
    life.unconnected.note_absent(session)
    _take_queue(life, session, draft, now)
    if is_first and not session.takes_addressed:
        life.undelivered.dead_letter_all(session, DENIED, "", now)
    state.journal.session(session, "taken_over")
    if not state.rights.are_open:
        # This client may have fewer rights than the previous one.
        life.reauthorizations.reauthorize(session)
    _take_dispatcher(life, session, draft, now)
    if was_away and session.dispatcher is not None:
        session.dispatcher.since = now
    # The session may be live now.
    state.waiting_places.assign_to(session)
    after = None if session.dispatcher is None else session.dispatcher.state
    if after is not None and after is not before:
        state.journal.dispatcher(session, after)


def _take_queue(life: SessionLife, session: Session, draft: Session, now: float) -> None:
    """Return the old client's in-flight entries to the queue, under the new client's terms."""
    queue = session.queue
    life.hand_overs.return_for_takeover(session, now)
    queue.take_terms(draft.queue)


def _take_dispatcher(life: SessionLife, session: Session, draft: Session, now: float) -> None:
    old, new = session.dispatcher, draft.dispatcher
    if old is None or new is None:
        session.dispatcher = new
        return
    old.policy = new.policy
    old.contact(now)
    if new.hold_record is not None and old.hold_record is None:
        old.hold_back(new.hold_record)
        life.state.journal.held("client", receiver=session.key)
        life.state.presence.show(session, session.subscriptions)
    elif draft.terms is not None and draft.terms.dispatcher_active:
        life.resume(session, now, "client")


def leave(life: SessionLife, session: Session, now: float, reconnect: str = "none") -> None:
    """Detach the client. The session waits for it under its name."""
    _dismiss_client(life, session, ErrorReply.SESSION_UNKNOWN, reconnect)
    life.hand_overs.return_for_takeover(session, now)
    session.advance(SessionInput.LEAVE)
    # The time is known now, and not from an earlier process.
    forget_seen_earlier(session)
    life.state.work.requeue_new(session)
    life.state.journal.session(session, "left")
    life.clock.detach(session, now)
    life.state.presence.show(session, session.subscriptions)
    life.owner.note(session, now)


def log_out(life: SessionLife, session: Session, now: float) -> None:
    """Detach the session's client, which may handshake again. An unnamed session ends."""
    if session.has_left:
        return
    if session.terms is not None and session.terms.is_named:
        leave(life, session, now, "handshake")
    else:
        life.ends.end_with_letters(
            session, DELIVERY_ENDED, text="its login has ended", now=now, by="the end of its login"
        )


def _dismiss_client(
    life: SessionLife, session: Session, error: ErrorReply, reconnect: str = "none"
) -> None:
    """Detach the session's client."""
    advice = reconnect_advice(life.state.options, reconnect)
    life.answers.refuse_held(session, Refused(error, advice=advice))
    pipe = session.pipe
    session.pipe = None
    session.carrier = None
    session.caller = UNKNOWN
    session.quiet_until = session.lazy_due = 0.0
    if pipe is not None and pipe.session is session:
        pipe.session = None
