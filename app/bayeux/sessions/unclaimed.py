"""Named sessions that messages are addressed to before any client has come."""

from dataclasses import replace

from holdfast.bayeux.limits.usage import Payer
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.slots import SessionSlots
from holdfast.bayeux.sessions.takeover import leave
from holdfast.bayeux.wire.destinations import Destination
from holdfast.bayeux.wire.terms import Terms, TermsInvalid
from holdfast.delivery.basics.error_codes import CODES, NO_CONNECTION
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.shared_queues.shared_queues import EXHAUSTED, OverQuota, Undeliverable
from holdfast.delivery.shared_queues.subjects import UNKNOWN
from holdfast.delivery.shared_queues.unclaimed_names import leave_unclaimed
from holdfast.settings import Settings


class UnclaimedSessions:
    """Creates these sessions as if a client had made a handshake with the name, and left.

    Until a client comes, they take no messages to their subject.
    """

    def __init__(self, life: SessionLife, slots: SessionSlots) -> None:
        self._life, self._slots = life, slots

    def open(self, destination: Destination, size: int, payer: Payer, now: float) -> Session:
        """Create a session for a message of this size. Raises `Undeliverable` before any change."""
        life, state = self._life, self._life.state
        if not state.options.ptp_create_session:
            raise Undeliverable(UNKNOWN)
        terms = _terms_of(destination, state.options)
        session = state.sessions.draft(CallbackQueue(state.queue_limits, state.counters))
        session.go_by(terms.key)
        life.agree(session, terms, acks=False)
        self._check(session, size, payer)
        leave_unclaimed(session)
        session.created = state.node.stamp()
        life.open(session)
        state.sessions.name(session, terms.key)
        if payer.accounts:
            state.sessions.usages.charge(session, payer)
        if life.is_to_be_durable(session):
            life.make_durable(session, now)
        leave(life, session, now)
        state.subjects.join(session)
        return session

    def _check(self, draft: Session, size: int, payer: Payer) -> None:
        """Check that there is room for the session, without evicting another."""
        state = self._life.state
        siblings = state.sessions.names.of_subject(draft.subject)
        if any(each.key == draft.key for each in siblings):
            # The session exists, and its delivery has stopped.
            raise Undeliverable(UNKNOWN)
        if len(siblings) >= state.options.max_sessions_per_subject:
            raise Undeliverable(CODES["user.configuration.maxSession"])
        lacking = draft.queue.lacks_room(size)
        if lacking is not None:
            raise Undeliverable(CODES[lacking.value])
        quota = state.quotas.used_up_by(payer)
        if quota:
            raise OverQuota(quota)
        if self._slots.free() <= 0:
            raise Undeliverable(EXHAUSTED)
        if self._life.is_to_be_durable(draft) and not state.store.is_available:
            raise Undeliverable(NO_CONNECTION)


def _terms_of(destination: Destination, options: Settings) -> Terms:
    """Return the terms of a client that asks only for the name. Raises `Undeliverable`."""
    try:
        terms = Terms.of({"session": destination.key})
    except TermsInvalid as invalid:
        raise Undeliverable(UNKNOWN) from invalid
    most = options.max_sessions_per_subject
    return replace(terms, max_sessions=most).waiting_at_most(options.max_session_timeout_s)
