"""The life of a session before its end: terms, connections, queue holds.

`SessionEnds` ends it; `DueSessions` handles its deadlines.
"""

from holdfast.bayeux.advice import session_advice
from holdfast.bayeux.expiry.expired_messages import MessageExpiry
from holdfast.bayeux.expiry.session_clock import SessionClock
from holdfast.bayeux.expiry.unconnected import UnconnectedSessions
from holdfast.bayeux.replies.answers import Answers
from holdfast.bayeux.session import Exchange, Pipe, Session
from holdfast.bayeux.sessions.channel_holds import ChannelHolds
from holdfast.bayeux.sessions.ends import SessionEnds
from holdfast.bayeux.sessions.login_events import LoginEvents
from holdfast.bayeux.sessions.owner import SessionOwner
from holdfast.bayeux.sessions.reauthorization import Reauthorizations
from holdfast.bayeux.sessions.topic_life import TopicLife
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.terms import Terms
from holdfast.delivery.basics.notices import HELD, RESUMED
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.queues.dispatcher import Dispatcher, QueueHold
from holdfast.delivery.settling.failures import Failures
from holdfast.delivery.settling.hand_overs import HandOvers
from holdfast.delivery.settling.settlement import Settlement
from holdfast.delivery.settling.undelivered import Undelivered


class SessionLife:
    """Changes sessions for clients, deadlines, operators and extensions."""

    def __init__(
        self,
        state: ServerState,
        *,
        unconnected: UnconnectedSessions,
        clock: SessionClock,
        channel_holds: ChannelHolds,
        owner: SessionOwner,
        settlement: Settlement[Session],
        undelivered: Undelivered[Session],
        hand_overs: HandOvers[Session],
        failures: Failures[Session],
        message_expiry: MessageExpiry,
        reauthorizations: Reauthorizations,
        answers: Answers,
        login_events: LoginEvents,
        ends: SessionEnds,
        topics: TopicLife,
    ) -> None:
        self.state = state
        self.unconnected = unconnected
        self.clock = clock
        self.channel_holds = channel_holds
        self.owner = owner
        self.settlement = settlement
        self.undelivered = undelivered
        self.hand_overs = hand_overs
        self.failures = failures
        self.message_expiry = message_expiry
        self.reauthorizations = reauthorizations
        self.answers = answers
        self.login_events = login_events
        self.ends = ends
        self.topics = topics

    def open(self, session: Session) -> None:
        """Register a new session."""
        self.state.sessions.add(session)
        self.unconnected.add(session)
        self.state.journal.session(session, "opened")
        if session.dispatcher is not None and session.dispatcher.hold_record is not None:
            self.state.journal.held("client", receiver=session.key)

    def is_to_be_durable(self, session: Session) -> bool:
        """Return whether the session is to be durable."""
        match self.state.options.durable:
            case "none":
                return False
            case "named":
                return session.terms is not None and session.terms.is_named
            case "acked":
                return session.terms is not None or session.queue.settling is not SettledBy.WRITTEN

    def make_durable(self, session: Session, now: float) -> None:
        """Make the session durable. The store gets its record when the turn ends."""
        if not session.is_durable:
            self.state.hub.make_durable(session)
        self.owner.note(session, now)

    def bind(self, pipe: Pipe, session: Session, now: float) -> None:
        """Bind the connection to this session, and to no other."""
        if pipe.session is not session:
            self.detach(pipe, now)
            pipe.session = session

    def attach(self, pipe: Pipe, session: Session, now: float) -> None:
        """Allow messages for the session to be pushed over this connection."""
        self.bind(pipe, session, now)
        session.pipe = pipe
        # Lazy messages may have waited only for a connection.
        self.clock.schedule(session)
        self.drained(pipe)

    def detach(self, pipe: Pipe, now: float) -> None:
        """Detach a lost connection. Its session waits for the client to return."""
        session = pipe.session
        pipe.session = None
        if session is None:
            return
        if session.pipe is pipe:
            session.pipe = None
        if session.held_connect is not None and session.held_connect.pipe is pipe:
            self.state.sessions.release_connect(session, session.held_connect)
            self.clock.await_return(session, now)

    def drained(self, pipe: Pipe) -> None:
        """Resume sending on a connection that takes bytes again."""
        session = pipe.session
        if session is not None and session.queue.count and not session.deliver_only:
            self.state.hub.make_ready(session)

    def farewell_advice(self, session: Session) -> Json:
        """Advise the client to reconnect, at once if the next server will know its session.

        If the store is away, it will know durable ones only. Other clients must handshake again, so
        their return is spread out. The delay is as short as possible, because clients add it to
        each of their attempts.
        """
        state = self.state
        newcomers = len(state.sessions) - state.hub.durables
        is_known = session.is_durable or state.store.is_available
        session.rest_interval_s = 0.0 if is_known else state.admission.spread_s(newcomers)
        return session_advice(session, self.state.options)

    def agree(self, session: Session, terms: Terms | None, *, acks: bool) -> None:
        """Set how the session's entries are settled, and what failures mean for it."""
        session.terms = terms
        if acks:
            session.queue.settling = SettledBy.BATCH
            session.deliver_only = True
        if terms is None:
            return
        session.deliver_only = True
        session.queue.gives_verdicts = not terms.oneway
        if terms.oneway:
            session.queue.settling = SettledBy.WRITTEN
        elif not acks:
            session.queue.settling = SettledBy.VERDICT
        session.queue.response_timeout_s = 0.0 if terms.oneway else terms.response_timeout / 1000
        session.queue.limit(terms.queue.get("maxEntries"), terms.queue.get("maxBytes"))
        session.dispatcher = Dispatcher(terms.policy)
        if terms.dispatcher_active is False:
            now_ms = self.state.node.now_ms()
            session.dispatcher.hold_back(QueueHold("asked for at handshake", session.name, now_ms))
            self.state.notices.report(HELD, session.key, "itself")

    def hold_connect(
        self, session: Session, exchange: Exchange, timeout_s: float, now: float
    ) -> None:
        """Hold the connect until a message arrives or its timeout ends."""
        self.state.sessions.hold_connect(session, exchange)
        session.deadline = now + timeout_s
        is_still = session.dispatcher is None or session.dispatcher.deadline is None
        if is_still and not session.quiet_until and not session.lazy_due:
            # All other deadlines of the session are in the timers already.
            self.state.sessions.timers.ring_by(session, session.deadline)
        else:
            self.clock.schedule(session)

    def hold_back(
        self, session: Session, reason: str, *, who: str, now: float, until_ms: int | None = None
    ) -> None:
        """Hold the queue back until it is resumed, or until `until_ms`."""
        dispatcher = self.failures.dispatcher(session, now)
        dispatcher.hold_back(QueueHold(reason, who, self.state.node.now_ms(), until_ms))
        self.state.notices.report(HELD, session.key, who)
        self.state.journal.held("operator", receiver=session.key)
        self.state.work.requeue_new(session)
        self.owner.note(session, now)

    def resume(
        self, session: Session, now: float, by: str = "operator", who: str | None = None
    ) -> None:
        """End a queue hold. `who` is the operator's name."""
        dispatcher = session.dispatcher
        if dispatcher is None or dispatcher.hold_record is None:
            return
        dispatcher.resume(now)
        self.state.notices.report(RESUMED, session.key, who or by)
        self.state.journal.released(by, receiver=session.key)
        self.state.presence.show(session, session.subscriptions)
        self.state.hub.flow_again(session)
        self.state.waiting_places.assign_to(session)
        self.owner.note(session, now)

    def clear(self, session: Session) -> int:
        """Discard the session's queue. Returns the number of entries."""
        queue = session.queue
        # What a shared queue has in flight, a session of another shard has.
        messages = [*queue.new] if session.has_shared_queue else queue.messages()
        if len(messages) < queue.count:
            queue.remove_messages(messages)
        else:
            queue.clear()
        self.undelivered.clear_out(session, messages, Reason.CLEARED)
        return len(messages)

    def store_is_back(self) -> None:
        """Look at durable queues when the turn ends: their entries can be handed over again."""
        for session in self.state.sessions:
            if session.is_durable and session.queue.count:
                self.state.hub.make_ready(session)
        for queue in self.state.waiting_places.queues():
            self.state.hub.make_ready(queue)
