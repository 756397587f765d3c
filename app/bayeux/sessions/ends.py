"""Ends sessions and settles their queues."""

from functools import partial

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.expiry.expired_messages import MessageExpiry
from holdfast.bayeux.expiry.unconnected import UnconnectedSessions
from holdfast.bayeux.replies.answers import Answers
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.login_events import LoginEvents
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.unstored_replies import owes_reply
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.delivery.basics.error_codes import DELIVERY_ENDED, ErrorCode
from holdfast.delivery.basics.json_text import to_strict_json
from holdfast.delivery.basics.notices import ENDED, SESSION_FAILED
from holdfast.delivery.basics.session_states import COUNTED_AS, SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.message import Message
from holdfast.delivery.settling.undelivered import Undelivered

# The journal's names for ends of sessions.
_ENDINGS = {
    SessionInput.DISCONNECT: "ended",
    SessionInput.EXPIRE: "expired",
    SessionInput.FAIL: "given_up",
}
_DISCONNECT = "/meta/disconnect"
_AUTHENTICATION = "user.security.authentication"


class SessionEnds:
    """Ends sessions and settles their queues."""

    def __init__(
        self,
        state: ServerState,
        answers: Answers,
        *,
        undelivered: Undelivered[Session],
        message_expiry: MessageExpiry,
        unconnected: UnconnectedSessions,
        login_events: LoginEvents,
    ) -> None:
        self._state = state
        self._answers = answers
        self._undelivered = undelivered
        self._message_expiry = message_expiry
        self._unconnected = unconnected
        self._login_events = login_events

    def end_by_server(self, session: Session, now: float, by: str = "the server") -> None:
        """End a session and inform its client.

        The queue of a durable or named session becomes dead letters. Any other queue leaves with
        the last reply, possibly to the request that ends the session; the rest is discarded when
        the turn ends.
        """
        if session.is_gone:
            return
        keeps = session.is_durable or (session.terms is not None and session.terms.is_named)
        if keeps:
            self._undelivered.dead_letter_all(
                session, DELIVERY_ENDED, f"its session was ended by {by}", now
            )
        goodbye, pipe = self._goodbye(), session.pipe
        if pipe is None:
            self._state.hub.deliver(session, goodbye)
            self._answers.dismiss(session, now)
        else:
            # After the reply, because cometd.js closes its socket when no connect is outstanding.
            self._answers.dismiss(session, now)
            pipe.push([goodbye])
            pipe.end()
        # Publishes that the store has not confirmed are settled like the queue.
        self.end(session, SessionInput.END if keeps else SessionInput.DISCONNECT)
        if session.queue.count:
            self._state.backlog.at_turn_end(partial(self._discard_rest, session))

    def _goodbye(self) -> Message:
        event = {"channel": _DISCONNECT, "successful": True}
        self._state.installed.complete(event)
        return Message(to_strict_json(event), id=self._state.node.stamp(), channel=_DISCONNECT)

    def _discard_rest(self, session: Session, now: float) -> None:
        if not (session.unfinished or owes_reply(session)):
            # Otherwise a reply is still to come, and discards what it does not carry.
            self._undelivered.discard_rest(session, Reason.SESSION_ENDED)

    def end_with_letters(
        self, session: Session, code: ErrorCode, *, text: str, now: float, by: str = ""
    ) -> None:
        """End the session and dead-letter its queue. `by` names who ended it, if known."""
        session.advance(SessionInput.STOP)
        self._undelivered.dead_letter_all(session, code, text, now)
        self.fail_session(session, code, by)

    def fail_session(self, session: Session, code: ErrorCode, by: str = "") -> None:
        """End the session because of an error, or for `by`. The caller has settled its queue."""
        if by:
            self._state.notices.report(ENDED, session.key, by)
        else:
            self._state.notices.report(SESSION_FAILED, session.key, code.text)
        # A client without rights would only handshake again and go on refusing.
        is_denied = code.is_type_of(_AUTHENTICATION)
        advice = reconnect_advice(self._state.options, "none" if is_denied else "handshake")
        self._answers.refuse_held(session, Refused(ErrorReply.SESSION_UNKNOWN, advice=advice))
        self.end(session, SessionInput.EXPEL if is_denied else SessionInput.FAIL)
        # Messages that arrived while the last reply was created.
        self._undelivered.discard_rest(session, Reason.SESSION_ENDED)

    def end(self, session: Session, seen: SessionInput) -> None:
        """Mark the session as ended. The caller must deliver or discard its queue."""
        session.advance(seen)
        self._state.subjects.leave(session)
        self._state.waiting_places.requeue_all(session)
        self._state.requests.session_ended(session)
        how = COUNTED_AS.get(seen, seen)
        if self._state.presence.is_used:
            for name in session.subscriptions:
                self._state.presence.leave(name, session)
        self._state.hub.remove(session)
        self._message_expiry.forget(session)
        self._state.journal.session(session, _ENDINGS[how])
        if session.is_durable:
            self._state.store.forget(session.key, session.queue.ids())
            session.is_durable = False
        self._state.sessions.remove(session, how)
        self._unconnected.remove(session)
        self._login_events.ended(session, how.value)
        self._state.log.debug("session %s ended: %s", session.key, seen.value)
