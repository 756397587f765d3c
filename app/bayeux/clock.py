"""What time does to sessions: held connects, lazy messages, attempts, lost contact, ends."""

from collections import deque
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from app.bayeux.life import Input, State
from app.bayeux.sessions import Session
from app.bayeux.standing import first_entries
from app.bayeux.terms import patience_s
from app.delivery import error_codes
from app.delivery.counters import Reason
from app.delivery.entries import Settling
from app.delivery.messages import Message
from app.delivery.reactions import Failure

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

_GONE, _HANDSHAKEN = State.GONE, State.HANDSHAKEN
_WRITTEN = Settling.WRITTEN
# While nothing more can be written down, sessions are not given up.
_POSTPONED_S = 1.0
# The two clocks may drift apart by so much before it counts as a jump.
_JUMP_MS = 1000
_NO_VERDICT = Failure(error_codes.RESPONSE_TIMEOUT, "no verdict in time", by_client=False)
_NO_CONTACT = Failure(error_codes.NO_CONNECTION, "no connect in time", by_client=False)


class Clock:
    """Looks at sessions whose time has come."""

    def __init__(self, bayeux: "Bayeux") -> None:
        self._bayeux = bayeux
        # What wall time was ahead of the core's.
        self._ahead_ms = 0.0
        # Whose time has come, but not their turn.
        self._due: deque[Session] = deque()

    def touch(self, session: Session) -> None:
        """Whatever a client sends proves that it is alive."""
        bayeux = self._bayeux
        due = bayeux.now + bayeux.options.max_interval_s
        if session.held is None and session.deadline < due and session.state is not _GONE:
            session.deadline = due
        if session.state is _HANDSHAKEN or session.deadline == inf:
            bayeux.places.hear(session)

    def rest(self, session: Session) -> None:
        """From now on the client has this long to come back."""
        bayeux = self._bayeux
        due = bayeux.now + session.rest_interval_s + bayeux.options.max_interval_s
        session.deadline = due
        dispatcher = session.dispatcher
        if dispatcher is not None:
            if dispatcher.deadline is not None:
                self.wind(session)
                return
            # What was handed over a moment ago may have to be answered for before.
            if 0.0 < session.queue.response_timeout_s < due - bayeux.now:
                due = min(due, session.queue.first_due() or due)
        bayeux.sessions.timers.ring_by(session, due)

    def lie(self, session: Session) -> None:
        """The client has left a session that waits for its return."""
        session.deadline = inf
        timeout_s = patience_s(session.terms, self._bayeux.options.max_session_timeout_s)
        session.ends_at = self._bayeux.now + timeout_s if timeout_s else 0.0
        self._bayeux.places.desert(session)
        self.wind(session)

    def rise(self, session: Session) -> None:
        """The client is there."""
        session.ends_at = 0.0
        self._bayeux.places.leave(session)

    def wind(self, session: Session) -> None:
        """Look at the session when something of it falls due."""
        self._bayeux.sessions.timers.ring_by(session, session.next_due())

    def wind_hold(self, session: Session) -> None:
        """End the session's holdback when it says that it ends."""
        bayeux, dispatcher = self._bayeux, session.dispatcher
        hold = None if dispatcher is None else dispatcher.hold_record
        if hold is None or hold.until is None:
            session.hold_ends_at = 0.0
        else:
            left_ms = max(hold.until - bayeux.node.now_ms(), 0)
            session.hold_ends_at = bayeux.now + left_ms / 1000
        self.wind(session)

    def follow_wall(self) -> None:
        """What ends at a moment of the wall clock follows it when it jumps.

        It does so if somebody sets it, and after a time in which the server did not run.
        """
        bayeux = self._bayeux
        ahead_ms = bayeux.node.now_ms() - bayeux.now * 1000
        if abs(ahead_ms - self._ahead_ms) > _JUMP_MS:
            self._ahead_ms = ahead_ms
            for session in bayeux.sessions:
                if session.hold_ends_at:
                    self.wind_hold(session)

    def linger(self, session: Session, message: Message) -> None:
        """A lazy message waits for company, but not for ever."""
        due = self._bayeux.now + (message.linger_s or 0.0)
        if not session.lazy_due or due < session.lazy_due:
            session.lazy_due = due
            self._bayeux.sessions.timers.ring_by(session, due)

    def tick(self) -> None:
        """Look at those whose time has come, in as many turns as that takes."""
        bayeux = self._bayeux
        if self._due:
            return
        self._due.extend(bayeux.sessions.timers.ring(bayeux.now))
        if self._due:
            bayeux.backlog.begin(self._look_at_next)

    def _look_at_next(self) -> bool:
        """Whether anybody is left."""
        session = self._due.popleft()
        try:
            self.look_at(session)
        except BaseException:
            self._bayeux.log_fault(session)
        if session.state is not _GONE:
            self.wind(session)
        return bool(self._due)

    def look_at(self, session: Session) -> None:
        """Do what is due."""
        if session.state is _GONE:
            # What was done for another session has ended this one.
            return
        self._look_at_messages(session)
        if session.terms is not None or session.dispatcher is not None:
            self._look_at_dispatcher(session)
            if session.state is _GONE:
                return
        self._look_at_contact(session)

    def _look_at_messages(self, session: Session) -> None:
        bayeux = self._bayeux
        if session.is_late(bayeux.now) and session.is_reachable:
            if session.queue.count:
                bayeux.hub.make_ready(session)
            else:
                session.lazy_due = 0.0
        if session.quiet_until and session.quiet_until <= bayeux.now:
            session.quiet_until = 0.0
            bayeux.hub.make_ready(session)

    def _look_at_dispatcher(self, session: Session) -> None:
        bayeux, dispatcher = self._bayeux, session.dispatcher
        if bayeux.exits.is_crowded:
            # What fails now could not be written down: it fails a little later.
            return
        first_due = session.queue.first_due()
        if first_due and first_due <= bayeux.now:
            entry = next(iter(session.queue.handed.values()))
            channel, attempts = entry.message.channel, entry.attempts
            failure = replace(_NO_VERDICT, channel=channel, attempts=attempts)
            bayeux.settlement.fail(session, failure, bayeux.now, entry)
        if session.ends_at and session.ends_at <= bayeux.now and session.held is None:
            bayeux.give_up(session, error_codes.NO_CONNECTION, "the session's timeout is over")
            return
        if dispatcher is None:
            return
        if session.hold_ends_at and session.hold_ends_at <= bayeux.now:
            bayeux.resume(session, "until")
        if dispatcher.deadline is not None and dispatcher.deadline <= bayeux.now:
            before = dispatcher.state
            dispatcher.due(bayeux.now)
            if dispatcher.state is not before and bayeux.witness is not None:
                bayeux.witness.dispatcher(session, dispatcher.state)
            if dispatcher.is_dead and not session.is_closed:
                bayeux.give_up(session, error_codes.GIVEN_UP, "the last attempt failed")
            elif dispatcher.flows(bayeux.now):
                bayeux.hub.flow_again(session)

    def _look_at_contact(self, session: Session) -> None:
        bayeux = self._bayeux
        if session.held is not None:
            if session.deadline <= bayeux.now:
                bayeux.answers.release(session, session.held)
        elif session.carrier is not None and session.carrier.is_draining():
            # Its time begins when the answer has left; look again in a moment.
            self.rest(session)
            bayeux.sessions.timers.ring_by(session, bayeux.now)
        elif session.deadline <= bayeux.now:
            self._lose(session)

    def _lose(self, session: Session) -> None:
        """Nothing was heard of the client for too long."""
        bayeux = self._bayeux
        if session.terms is None and session.queue.settling is _WRITTEN:
            bayeux.end(session, Input.EXPIRE)
            bayeux.exits.discard(session, Reason.SESSION_EXPIRED)
            return
        if bayeux.exits.is_crowded:
            session.deadline = bayeux.now + _POSTPONED_S
            return
        if self._is_missed_by_nobody(session):
            # What is on its way to it still is dealt with as that of others who are given up.
            session.is_given_up = True
            bayeux.end(session, Input.EXPIRE)
            bayeux.exits.discard(session, Reason.SESSION_EXPIRED)
            return
        # From now on it is the dispatcher that waits, for as long as the session may last.
        self.lie(session)
        if not (session.is_given_up and session.terms is not None and session.terms.is_named):
            # Who was refused for good may still handshake by its name.
            bayeux.settlement.fail(session, _NO_CONTACT, bayeux.now)

    def _is_missed_by_nobody(self, session: Session) -> bool:
        """Whether it would be given up, and leave no letter: then no delivery fails with it."""
        terms, dispatcher = session.terms, session.dispatcher
        if session.is_durable or (terms is not None and terms.is_named):
            return False
        if dispatcher is not None and not dispatcher.gives_up():
            return False
        entries = first_entries(session.queue, session.queue.count)
        return all(entry.message.leaves_no_letter for entry in entries)
