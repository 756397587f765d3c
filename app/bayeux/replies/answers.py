"""Answers requests, also held connects, with the messages that travel along; and pushes."""

from collections.abc import Sequence
from functools import partial

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.expiry.expired_messages import MessageExpiry, drop_outdated
from holdfast.bayeux.expiry.session_clock import SessionClock
from holdfast.bayeux.replies.arrivals import Arrivals
from holdfast.bayeux.replies.writing import most_of_reply, write_open_reply
from holdfast.bayeux.session import Exchange, Pipe, Session
from holdfast.bayeux.state.changed_rights import rights_changed_at
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.unstored_replies import begin_reply, end_reply
from holdfast.bayeux.wire.codec import Json, encode_reply
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.receipts import Taken
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.message import Event, Message
from holdfast.delivery.requests.request import request_of
from holdfast.delivery.settling.hand_overs import HandOvers
from holdfast.delivery.settling.undelivered import Undelivered

# How many messages may be in replies that wait for the store. Further hand-overs wait until it has
# caught up. A message in such a reply takes half a kilobyte until the store has its hand-over.
_MOST_BEHIND = 5_000


class Answers:
    """Completes exchanges and pushes events to pipes."""

    def __init__(
        self,
        state: ServerState,
        clock: SessionClock,
        *,
        arrivals: Arrivals,
        hand_overs: HandOvers[Session],
        undelivered: Undelivered[Session],
        message_expiry: MessageExpiry,
    ) -> None:
        self._state = state
        self._store, self._sessions = state.store, state.sessions
        self._clock = clock
        self._arrivals = arrivals
        self._hand_overs = hand_overs
        self._undelivered = undelivered
        self._message_expiry = message_expiry
        self._journal, self._ledger = state.journal, state.ledger
        # The number of messages in replies that wait for the store, and the sessions whose
        # hand-overs wait until there are fewer, in order.
        self._behind = 0
        self._queueing: dict[Session, None] = {}
        # Whether the store is available, cached during a round.
        self._has_store: bool | None = None

    def begin_round(self) -> None:
        """Start a round of `send_news` for many sessions: the store is asked once for all."""
        self._has_store = self._store.is_available

    def end_round(self) -> None:
        """End the round: the next question asks the store again."""
        self._has_store = None
        self._journal.end_round()

    def send_news(self, session: Session, now: float) -> None:
        """Send the session its waiting messages, if it is reachable and may get them now."""
        queue = session.queue
        if not (queue.count or session.has_shared_queue):
            return
        may_have_to_wait = (
            session.dispatcher is not None or session.is_durable or session.pauses > 0
        )
        if may_have_to_wait and not self.may_take(session, now):
            return
        if session.pipe is not None and not session.deliver_only:
            self._push(session, session.pipe, now)
        elif (
            session.held_connect is not None
            and session.quiet_until <= now
            and queue.has_news(self._state.guard.held)
        ):
            self.release(session, session.held_connect, now)
        elif session.has_shared_queue:
            self._state.waiting_places.assign_from(session)

    def complete(self, exchange: Exchange, now: float) -> None:
        """Hand over the messages that travel with the replies, then write and send the replies."""
        session = exchange.session
        if session is None:
            exchange.carrier.answer(exchange, ())
            return
        client_id = exchange.client_id
        if session.is_away or (client_id is not None and client_id != session.client_id):
            # While it waited, the session was taken over or its client left.
            if exchange.waits_for_store:
                # The replies confirm its refusals.
                self._state.when_kept(partial(self._answer_former, exchange, session))
            else:
                self._answer_former(exchange, session, now)
            return
        travels = exchange.has_connect or (
            session.queue.count and self._carries(exchange, session, now)
        )
        if travels and session.is_plain and not exchange.waits_for_store:
            self._send_plain(exchange, session, now)
            return
        batch = self._batch_for(session, now) if travels else None
        if exchange.waits_for_store or (session.is_durable and self._must_be_kept(batch)):
            self._send_when_kept(exchange, session, batch, now)
        else:
            self._send(exchange, session, batch, now)

    def _answer_former(self, exchange: Exchange, session: Session, now: float) -> None:
        """Send replies to a client that lost or left its session. They carry no messages."""
        write_open_reply(exchange, session, batch=None, now=now, hub=self._state.hub)
        exchange.carrier.answer(exchange, ())
        if session.is_gone:
            self._undelivered.discard_rest(session, Reason.SESSION_ENDED)

    def _must_be_kept(self, batch: Batch | None) -> bool:
        """Return whether the store must confirm this hand-over before the client may see it.

        It must if a lost reply has to be counted, or if the store is silent: after a crash, a
        hand-over that the store has not recorded would not be counted. It must also if the store
        has other messages in its place: after a crash, an ack of it would settle them.
        """
        if batch is None:
            return False
        if batch.is_unexpected:
            return True
        return bool(batch.messages) and (batch.has_repeats or not self._store.is_prompt)

    def _send_plain(self, exchange: Exchange, session: Session, now: float) -> None:
        """Send messages directly from the queue of a plain session.

        Most messages take this way. Without a hand-over, they cost the core half as much time.
        """
        messages = self._as_of_now(session)
        has_hooks = bool(session.extensions)
        batch = (
            Batch(0, 0, messages=messages, handed_at=now)
            if has_hooks or exchange.is_handshake
            else None
        )
        travels = write_open_reply(exchange, session, batch=batch, now=now, hub=self._state.hub)
        # Messages that a hook delivered travel along.
        may_go = travels and (not has_hooks or session.is_plain)
        if may_go and (taken := exchange.carrier.answer(exchange, session.queue.new)):
            self._plain_taken(session, taken, now)
            self._after_reply(exchange, session, now)
            return
        batch = self._batch_for(session, now)
        if travels:
            self._send(exchange, session, batch, now)
            return
        exchange.carrier.answer(exchange, ())
        if batch is not None and batch.messages:
            self._arrivals.lost(session, batch, now)
        self._after_reply(exchange, session, now)

    def _send_when_kept(
        self, exchange: Exchange, session: Session, batch: Batch | None, now: float
    ) -> None:
        count = 0 if batch is None else len(batch.messages)
        client_id, changed_at = session.client_id, rights_changed_at(session)
        session.carrier = exchange.carrier
        if session.held_connect is None:
            self._clock.await_return(session, now)
        if session.is_gone:
            # A reply after the end carries no messages. The rest of the queue is discarded.
            self._undelivered.discard_rest(session, Reason.SESSION_ENDED)
        begin_reply(session)
        self._behind += count

        def send(now: float) -> None:
            end_reply(session)
            self._catch_up(count)
            if session.is_away or session.client_id != client_id:
                self._answer_former(exchange, session, now)
            elif session.is_gone:
                self._send_goodbye(exchange, session, now)
            elif batch is None or not batch.messages:
                self._send(exchange, session, batch, now)
            elif _may_still_get(session, changed_at) and session.flows(now):
                session.queue.leave_late(batch, now)
                self._send(exchange, session, batch, now)
            else:
                # The session was held back, or may have lost rights to some of these. The rest is
                # redelivered.
                self._send(exchange, session, None, now)
                self._arrivals.not_taken(session, batch, now)

        self._state.when_kept(send)

    def _catch_up(self, count: int) -> None:
        """Record that this many messages no longer wait for the store, and let others follow."""
        self._behind -= count
        if self._queueing and self._behind <= _MOST_BEHIND // 2:
            queueing, self._queueing = self._queueing, {}
            for session in queueing:
                if not session.is_gone:
                    self._state.hub.make_ready(session)

    def _send_goodbye(self, exchange: Exchange, session: Session, now: float) -> None:
        """Send a delayed reply whose session has ended, with the server's goodbye if it waits."""
        write_open_reply(exchange, session, batch=None, now=now, hub=self._state.hub)
        queue = session.queue
        # A session that leaves dead letters has nothing new except the server's goodbye.
        goodbye = queue.new if queue.count == len(queue.new) else ()
        if exchange.carrier.answer(exchange, goodbye) and goodbye:
            self._settle_new(session, now)
        self._undelivered.discard_rest(session, Reason.SESSION_ENDED)

    def _send(self, exchange: Exchange, session: Session, batch: Batch | None, now: float) -> None:
        """Write the open reply, then send replies and messages."""
        travels = write_open_reply(exchange, session, batch=batch, now=now, hub=self._state.hub)
        if batch is None or not batch.messages:
            exchange.carrier.answer(exchange, ())
        elif not travels:
            exchange.carrier.answer(exchange, ())
            self._arrivals.lost(session, batch, now)
        elif taken := exchange.carrier.answer(exchange, self._events(session, batch)):
            self._arrivals.answered(session, batch, taken, now)
        else:
            self._arrivals.not_taken(session, batch, now)
        self._after_reply(exchange, session, now)

    def _as_of_now(self, session: Session) -> Sequence[Message]:
        """Return the messages that wait for a plain session, after settling expired ones."""
        if session.queue.expiring:
            self._undelivered.expire_waiting(session)
            self._update_deadlines(session.queue.new)
        return session.queue.new

    def _settle_new(self, session: Session, now: float) -> None:
        """Settle messages sent to a plain session directly from its queue."""
        session.lazy_due = 0.0
        if session.queue.count:
            self._ledger.acked(session, session.queue.new, now)
            session.queue.settle_new()
            self._state.waiting_places.assign_to(session)

    def _after_reply(self, exchange: Exchange, session: Session, now: float) -> None:
        """Start the session's timeout, because the client has its reply."""
        if exchange.carrier.is_draining():
            self._clock.ring_soon(session, now)
        if session.is_gone:
            self._undelivered.discard_rest(session, Reason.SESSION_ENDED)
        elif session.held_connect is None and exchange.open_reply is not None:
            session.carrier = exchange.carrier
            self._clock.await_return(session, now)

    def _carries(self, exchange: Exchange, session: Session, now: float) -> bool:
        """Return whether messages may travel with the reply to anything other than a connect."""
        if exchange.is_handshake:
            return self._greets_with_messages(session, now)
        if session.dispatcher is not None and not session.flows(now):
            return False
        if session.is_gone:
            return True
        if session.deliver_only:
            return False
        return exchange.carrier.connection_type is not ConnectionType.CALLBACK_POLLING

    def _greets_with_messages(self, session: Session, now: float) -> bool:
        """Return whether the reply to a handshake carries messages: all that wait, or none.

        cometd.js connects only after it got as many as were announced.
        """
        if (
            not self._state.options.allow_message_delivery_during_handshake
            or session.has_left
            or not self.may_take(session, now)
        ):
            return False
        if session.is_durable and not self._store.is_prompt:
            # The reply would wait for the store, and its client might lose the session in the
            # meantime.
            return False
        queue = session.queue
        if self._state.work.far is not None:
            self._state.work.far.mark_doubtful(session)
        if queue.expiring:
            self._undelivered.expire_waiting(session)
        if session.drops_outdated:
            drop_outdated(session, self._undelivered)
        is_limited = queue.window or queue.has_tried or queue.has_former or self._state.guard.held
        return queue.count > 0 and not is_limited and not 0 <= most_of_reply(session) < queue.count

    def _batch_for(self, session: Session, now: float) -> Batch | None:
        """Hand over a batch, possibly an empty one, or return None if no reply is a batch now."""
        if self._state.work.far is not None:
            self._state.work.far.mark_doubtful(session)
        # Only messages with a lifetime, and redeliveries, may carry requests.
        may_carry_requests = bool(session.queue.expiring)
        if may_carry_requests:
            self._undelivered.expire_waiting(session)
        if not self._may_hand_over(session):
            return None
        if session.drops_outdated:
            drop_outdated(session, self._undelivered)
        limit = most_of_reply(session)
        if not session.flows(now):
            limit = 0
        batch = self._hand_overs.hand_over(session, limit, now)
        if batch.set_aside:
            # These entries wait again, so their lifetimes count again.
            self._message_expiry.watch(session)
        if may_carry_requests or batch.entries is not None:
            self._update_deadlines(batch.messages)
        return batch

    def _events(self, session: Session, batch: Batch) -> Sequence[Event]:
        """Return the batch's events as its receiver gets them.

        They exist only to be written: they take more memory than everything else in a hand-over.
        """
        events: Sequence[Event] = batch.messages
        if not events:
            return events
        for decorator in session.decorators:
            events = decorator.decorate(session, batch, events)
        return events

    def _update_deadlines(self, messages: Sequence[Message]) -> None:
        """Update the remaining time in requests."""
        now_ms = self._state.node.now_ms()
        for message in messages:
            request = request_of(message)
            if request is not None:
                wire = request.with_time_left(message.wire, now_ms)
                if wire is not message.wire:
                    message.wire = wire
                    message.frame = message.event_start = None

    def may_take(self, session: Session, now: float) -> bool:
        """Return whether anything may be handed over now. Durable queues wait for the store."""
        return session.flows(now) and self._may_hand_over(session)

    def _may_hand_over(self, session: Session) -> bool:
        """Return whether the server may hand over messages to the session now."""
        if session.unfinished or session.pauses:
            # The rest of its request may refuse what would be handed over.
            return False
        if not session.is_durable:
            return True
        if self._behind >= _MOST_BEHIND:
            self._queueing[session] = None
            return False
        return not self.lacks_store

    @property
    def lacks_store(self) -> bool:
        """Whether the store cannot record hand-overs to durable sessions now."""
        has_store = self._has_store
        return not (self._store.is_available if has_store is None else has_store)

    def _plain_taken(self, session: Session, taken: Taken, now: float) -> None:
        """Settle what a plain session got from its queue, or wait for the receipt."""
        if taken is True:
            self._settle_new(session, now)
        elif session.queue.count and (batch := self._batch_for(session, now)) is not None:
            self._arrivals.answered(session, batch, taken, now)

    def release(self, session: Session, exchange: Exchange, now: float) -> None:
        """Answer the held connect."""
        self._sessions.release_connect(session, exchange)
        self.complete(exchange, now)

    def release_with(self, session: Session, exchange: Exchange, advice: Json, now: float) -> None:
        """Answer the held connect with this advice."""
        if exchange.open_reply is not None:
            exchange.open_reply["advice"] = advice
        self.release(session, exchange, now)

    def dismiss(self, session: Session, now: float) -> None:
        """Answer the session's held connect for the last time."""
        if session.held_connect is not None:
            advice = reconnect_advice(self._state.options, "none")
            self.release_with(session, session.held_connect, advice, now)

    def refuse_held(self, session: Session, refused: Refused) -> None:
        """Answer the held connect with an error and without messages."""
        exchange = session.held_connect
        if exchange is not None:
            self._sessions.release_connect(session, exchange)
            reply = exchange.open_reply
            if reply is not None:
                exchange.is_written = True
                refused.fill(reply, self._state.counters.errors)
                exchange.replies[exchange.place] = encode_reply(reply)
            exchange.carrier.answer(exchange, ())

    def supersede(self, session: Session, exchange: Exchange) -> None:
        """Answer the held connect because a newer one has arrived."""
        exchange.is_superseded = True
        self.refuse_held(session, Refused(ErrorReply.CONNECT_SUPERSEDED))

    def _push(self, session: Session, pipe: Pipe, now: float) -> None:
        if pipe.is_draining():
            return
        if session.is_plain:
            waiting = self._as_of_now(session)
            if not waiting:
                return
            if taken := pipe.push(waiting):
                self._plain_taken(session, taken, now)
                return
        batch = self._batch_for(session, now)
        if batch is None or not batch.messages:
            return
        if taken := pipe.push(self._events(session, batch)):
            self._arrivals.answered(session, batch, taken, now)
        else:
            # The connection is about to close, so nothing more is sent on it.
            self._arrivals.not_taken(session, batch, now)


def _may_still_get(session: Session, changed_at: int) -> bool:
    """Return whether the rights of a session have not changed since then."""
    return rights_changed_at(session) == changed_at
