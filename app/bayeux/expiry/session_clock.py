"""The deadlines of sessions and what changes them."""

from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from holdfast.bayeux.expiry.unconnected import UnconnectedSessions
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.bayeux.wire.terms import session_timeout_s
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.session_states import SessionState
from holdfast.delivery.routing.presence import Presence
from holdfast.settings import Settings

_HANDSHAKEN: Final = SessionState.HANDSHAKEN
# A larger difference between the clocks counts as a jump of the wall clock.
_JUMP_MS: Final = 1000


class SessionClock:
    """Sets the deadlines of sessions and schedules them in the timers.

    Args:
        unread_since: Returns when the oldest unread request arrived; infinity if there is none.
    """

    def __init__(
        self,
        options: Settings,
        sessions: Sessions,
        *,
        unconnected: UnconnectedSessions,
        presence: Presence[Session],
        node: Node,
        unread_since: Callable[[], float],
    ) -> None:
        self._max_interval_s = options.max_interval_s
        self._max_timeout_s = options.max_session_timeout_s
        self._sessions = sessions
        self._timers = sessions.timers
        self._unconnected = unconnected
        self._presence = presence
        self._node = node
        self._unread_since = unread_since
        # How far the wall clock is ahead of the core's clock.
        self._ahead_ms = 0.0

    def touch(self, session: Session, now: float) -> None:
        """Restart the client's timeout, because the client has sent something."""
        due = now + self._max_interval_s
        if session.held_connect is None and session.deadline < due and not session.is_gone:
            session.deadline = due
        if session.state is _HANDSHAKEN or session.is_absent:
            self._unconnected.hear(session)

    def await_return(self, session: Session, now: float) -> None:
        """Start the client's timeout. A client that took over the session is present from now."""
        if session.is_absent:
            self._presence.show(session, session.subscriptions)
        due = now + session.rest_interval_s + self._max_interval_s
        session.deadline = due
        dispatcher = session.dispatcher
        if dispatcher is not None:
            if dispatcher.deadline is not None:
                self.schedule(session)
                return
            # A verdict may be due earlier.
            queue = session.queue
            if queue.count and 0.0 < queue.response_timeout_s < due - now:
                due = min(due, queue.first_due() or due)
        self._timers.ring_by(session, due)

    def ring_soon(self, session: Session, now: float) -> None:
        """Schedule the session for the next tick. By then, the reply may have left."""
        self._timers.ring_by(session, now)

    def detach(self, session: Session, now: float) -> None:
        """Start waiting for a client that has left."""
        session.deadline = inf
        timeout_s = session_timeout_s(session.terms, self._max_timeout_s)
        session.ends_at = now + timeout_s if timeout_s else 0.0
        self._unconnected.note_absent(session)
        self.schedule(session)

    def attach(self, session: Session) -> None:
        """Stop waiting for the client, because it has connected."""
        if session.is_absent:
            self._presence.show(session, session.subscriptions)
        session.ends_at = 0.0
        self._unconnected.remove(session)

    def is_silent_since(self, session: Session, due: float) -> bool:
        """Return whether everything that the client sent by then is handled; else ask again."""
        return session.is_heard and self._unread_since() > due

    def schedule(self, session: Session) -> None:
        """Schedule the session for its next deadline."""
        self._timers.ring_by(session, session.next_due())

    def schedule_hold_end(self, session: Session, now: float) -> None:
        """Schedule the end of the session's queue hold."""
        dispatcher = session.dispatcher
        hold = None if dispatcher is None else dispatcher.hold_record
        if dispatcher is not None and hold is not None and hold.until is not None:
            left_ms = max(hold.until - self._node.now_ms(), 0)
            dispatcher.hold_ends_at = now + left_ms / 1000
        self.schedule(session)

    def follow_wall(self, now: float, wall_ms: int) -> None:
        """Reschedule wall-clock deadlines after the wall clock jumped.

        It jumps when it is set, and when the machine was suspended.
        """
        ahead_ms = wall_ms - now * 1000
        if abs(ahead_ms - self._ahead_ms) > _JUMP_MS:
            self._ahead_ms = ahead_ms
            for session in self._sessions:
                if session.dispatcher is not None and session.dispatcher.hold_ends_at:
                    self.schedule_hold_end(session, now)

    def begin_lingering(self, lingering: Sequence[tuple[Session, float]], now: float) -> None:
        """Start the delays of this turn's lazy messages."""
        for session, linger_s in lingering:
            due = now + linger_s
            if session.queue.count and (not session.lazy_due or due < session.lazy_due):
                session.lazy_due = due
                self._timers.ring_by(session, due)
