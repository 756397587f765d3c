"""Handles the deadlines of sessions: held connects, lazy messages, retries, lost contact, ends."""

from collections import deque
from dataclasses import replace

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.status import first_entries
from holdfast.bayeux.state.unstored_replies import owes_reply, unstored_replies
from holdfast.delivery.basics import error_codes
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.letters.exempt import leaves_no_letter
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.ports.error_handler import Failure
from holdfast.delivery.queues.dispatcher import Dispatcher

_WRITTEN = SettledBy.WRITTEN
# How long the end of a session is postponed while dead letters cannot be stored.
_POSTPONED_S = 1.0
_NO_VERDICT = Failure(error_codes.RESPONSE_TIMEOUT, "no verdict in time", by_client=False)
_NO_CONTACT = Failure(error_codes.NO_CONNECTION, "no connect in time", by_client=False)


class DueSessions:
    """Handles the deadlines of sessions."""

    def __init__(self, life: SessionLife) -> None:
        self._life, self._state, self._clock = life, life.state, life.clock
        self._answers, self._ends = life.answers, life.ends
        self._undelivered, self._failures = life.undelivered, life.failures
        # Due sessions that this turn had no time for.
        self._due: deque[Session] = deque()

    def tick(self, now: float) -> None:
        """Handle the due sessions, over several turns if necessary."""
        if self._due:
            return
        self._due.extend(self._state.sessions.timers.ring(now))
        if self._due:
            self._state.backlog.begin(self._handle_next, now)

    def _handle_next(self, now: float) -> bool:
        """Handle the next one. Returns whether any is left."""
        session = self._due.popleft()
        try:
            self.handle(session, now)
        except BaseException:
            self._state.log_fault(session)
        if not session.is_gone:
            self._clock.schedule(session)
        return bool(self._due)

    def handle(self, session: Session, now: float) -> None:
        """Handle the session's passed deadlines."""
        if session.is_gone:
            # Work for another session has ended this one.
            return
        self._handle_messages(session, now)
        if session.terms is not None or session.dispatcher is not None:
            self._handle_dispatcher(session, now)
            if session.is_gone:
                return
        self._handle_contact(session, now)

    def _handle_messages(self, session: Session, now: float) -> None:
        if session.is_late(now) and session.is_reachable:
            if session.queue.count:
                self._state.hub.make_ready(session)
            else:
                session.lazy_due = 0.0
        if session.quiet_until and session.quiet_until <= now:
            session.quiet_until = 0.0
            self._state.hub.make_ready(session)

    def _handle_dispatcher(self, session: Session, now: float) -> None:
        if self._undelivered.is_congested:
            # Dead letters cannot be stored now. Retry in the next tick.
            return
        first_due = session.queue.first_due()
        if (
            first_due
            and first_due <= now
            and not unstored_replies(session)
            and self._clock.is_silent_since(session, first_due)
        ):
            self._miss_verdict(session, now)
        if session.is_gone:
            return
        if (
            session.ends_at
            and session.ends_at <= now
            and session.held_connect is None
            and self._clock.is_silent_since(session, session.ends_at)
        ):
            self._ends.end_with_letters(
                session, error_codes.NO_CONNECTION, text="the session's timeout is over", now=now
            )
            return
        dispatcher = session.dispatcher
        if dispatcher is not None and 0.0 < dispatcher.hold_ends_at <= now:
            # The clock of timestamps decides, and may go slower than this one for some time.
            self._clock.schedule_hold_end(session, now)
            if dispatcher.hold_ends_at <= now:
                self._life.resume(session, now, "until")
        if session.dispatcher is not None:
            self._try_again(session, session.dispatcher, now)

    def _miss_verdict(self, session: Session, now: float) -> None:
        entry = next(iter(session.queue.in_flight().values()))
        channel, attempts = entry.message.channel, entry.attempts
        failure = replace(_NO_VERDICT, channel=channel, attempts=attempts)
        self._failures.react_to(session, failure, now, entry)
        self._state.waiting_places.assign_to(session)

    def _try_again(self, session: Session, dispatcher: Dispatcher, now: float) -> None:
        """Make the next attempt if it is due. Without attempts left, the session ends."""
        if dispatcher.deadline is None or now < dispatcher.deadline:
            return
        before = dispatcher.state
        dispatcher.due(now)
        if dispatcher.state is not before:
            self._state.journal.dispatcher(session, dispatcher.state)
        if dispatcher.is_dead:
            self._ends.end_with_letters(
                session, error_codes.DELIVERY_ENDED, text="the last attempt failed", now=now
            )
        elif dispatcher.flows(now):
            self._state.hub.flow_again(session)
            self._state.waiting_places.assign_to(session)

    def _handle_contact(self, session: Session, now: float) -> None:
        if session.held_connect is not None:
            if session.deadline <= now:
                self._answers.release(session, session.held_connect, now)
        elif session.carrier is not None and session.carrier.is_draining():
            # The session's timeout starts when the reply has left. Check again soon.
            self._clock.await_return(session, now)
            self._clock.ring_soon(session, now)
        elif session.deadline <= now:
            if owes_reply(session):
                # The client is waiting for this server.
                self._clock.await_return(session, now)
            elif self._clock.is_silent_since(session, session.deadline):
                self._lose(session, now)

    def _lose(self, session: Session, now: float) -> None:
        """Treat the client as lost, because its timeout ended."""
        if session.terms is None and session.queue.settling is _WRITTEN:
            self._ends.end(session, SessionInput.EXPIRE)
            self._undelivered.discard_rest(session, Reason.SESSION_EXPIRED)
            return
        if self._undelivered.is_congested:
            session.deadline = now + _POSTPONED_S
            return
        if self._is_missed_by_nobody(session):
            self._ends.end(session, SessionInput.LAPSE)
            self._undelivered.discard_rest(session, Reason.SESSION_EXPIRED)
            return
        # From now on the dispatcher waits, for as long as the session may last.
        self._clock.detach(session, now)
        self._state.presence.show(session, session.subscriptions)
        is_named = session.terms is not None and session.terms.is_named
        if session.takes_messages or not is_named:
            # A stopped session can still be taken over by its name.
            self._failures.react_to(session, _NO_CONTACT, now)

    def _is_missed_by_nobody(self, session: Session) -> bool:
        """Return whether the session ends without dead letters: no delivery has failed."""
        terms, dispatcher = session.terms, session.dispatcher
        if session.is_durable or (terms is not None and terms.is_named):
            return False
        if dispatcher is not None and not dispatcher.gives_up():
            return False
        entries = first_entries(session.queue, session.queue.count)
        return all(leaves_no_letter(entry.message) for entry in entries)
