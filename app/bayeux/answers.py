"""What leaves: answers to requests with the messages that travel along, and pushes."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from app.bayeux.advice import reconnect_advice
from app.bayeux.codec import Json, encode_reply
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import ConnectionType, Exchange, Pipe
from app.bayeux.extension_chain import run_outgoing
from app.bayeux.life import State
from app.bayeux.sessions import Session
from app.delivery.counters import Reason
from app.delivery.entries import Carried, Settling
from app.delivery.keeper import Batch
from app.delivery.messages import Event

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

_GONE, _AWAY = State.GONE, State.AWAY
_WRITTEN = Settling.WRITTEN


class Answers:
    """Completes exchanges and pushes to sockets."""

    def __init__(self, bayeux: "Bayeux") -> None:
        self._bayeux = bayeux
        self._witness = bayeux.witness
        # The most frequent events, for which nothing should be looked up.
        self._handed_out = None if bayeux.witness is None else bayeux.witness.handed
        self._written_out = None if bayeux.witness is None else bayeux.witness.written
        # Whether the store is there, while that is asked only once.
        self._has_store: bool | None = None

    def begin_round(self) -> None:
        """Many sessions are told something, one behind the other."""
        self._has_store = self._bayeux.hub.keeper.is_available

    def end_round(self) -> None:
        """That was all for now."""
        self._has_store = None
        if self._handed_out is not None:
            self._handed_out.end()
        if self._written_out is not None:
            self._written_out.end()

    def tell(self, session: Session) -> None:
        """The session has something waiting: let it know, if it can be reached and may be."""
        bayeux, queue = self._bayeux, session.queue
        if not queue.count:
            return
        may_have_to_wait = (
            session.dispatcher is not None
            or session.is_durable
            or session.reauthorization is not None
        )
        if may_have_to_wait and not self.may_take(session):
            return
        if session.pipe is not None and not session.deliver_only:
            self._push(session, session.pipe)
        elif (
            session.held is not None
            and session.quiet_until <= bayeux.now
            and queue.has_news(bayeux.guard.held)
        ):
            self.release(session, session.held)

    def complete(self, exchange: Exchange) -> None:
        """Send all replies, with the messages that travel along."""
        session = exchange.session
        if session is None:
            exchange.carrier.answer(exchange, ())
            return
        connect = exchange.connect
        if connect is not None:
            slot, reply, ext = connect
            if session.extensions:
                # First of all: what they deliver now travels along.
                run_outgoing(session, reply, ext, self._bayeux.now)
            exchange.replies.insert(slot, encode_reply(reply, session.extensions))
        client_id = exchange.client_id
        if session.state is _AWAY or (client_id is not None and client_id != session.client_id):
            # It waited so long that the session is another client's, or nobody's.
            self._send_replies(exchange)
            return
        travels = connect is not None or (session.queue.count and self._carries(exchange, session))
        if travels and session.is_plain and not exchange.waits_for_store:
            self._send_plainly(exchange, session)
            return
        messages = self.take(session) if travels else ()
        if exchange.waits_for_store or (messages and self._must_be_known(session)):
            self._send_when_known(exchange, session, messages)
        else:
            self._send(exchange, session, messages, None)

    def _send_replies(self, exchange: Exchange) -> None:
        """Nothing travels with them; a refusal that they confirm is in the store before."""
        if exchange.waits_for_store:
            self._bayeux.hub.keeper.after(partial(self._send_replies, exchange))
        else:
            exchange.carrier.answer(exchange, ())

    def _must_be_known(self, session: Session) -> bool:
        """Whether the store must confirm what was handed over before the client may see it.

        So it is if another loss must be counted, or if the store is silent: it may die without
        having read of the hand-over, which nobody would count then.
        """
        if not session.is_durable:
            return False
        return session.queue.carries_repeats or not self._bayeux.hub.keeper.is_prompt

    def _send_plainly(self, exchange: Exchange, session: Session) -> None:
        """What is written is done, and only what is not was ever in anybody's hands."""
        carrier, queue = exchange.carrier, session.queue
        if carrier.answer(exchange, queue.waiting):
            session.lazy_due = 0.0
            if queue.count:
                if self._written_out is not None:
                    self._written_out.add(session, queue.waiting, self._bayeux.now)
                queue.pour_out()
        else:
            self.take(session)
            self._not_written(session, None)
        if carrier.is_draining():
            self._bayeux.sessions.timers.ring_by(session, self._bayeux.now)
        self._rest(exchange, session)

    def _send_when_known(
        self, exchange: Exchange, session: Session, messages: Sequence[Event]
    ) -> None:
        client_id, carried = session.client_id, session.queue.carried
        authorized_at = session.authorized_at
        session.carrier = exchange.carrier
        if session.held is None:
            # It is not the client who takes its time.
            self._bayeux.clock.rest(session)
        if session.state is _GONE:
            # So late nothing travels any more, and what is told of an end is told with it.
            self._bayeux.exits.discard(session, Reason.SESSION_ENDED)

        def send() -> None:
            if session.has_left or session.client_id != client_id:
                exchange.carrier.answer(exchange, ())
            elif session.authorized_at == authorized_at:
                self._send(exchange, session, messages, carried)
            else:
                # It may not have some of these any more; those that are left come again.
                self._send(exchange, session, (), carried)
                self._not_written(session, carried)

        self._bayeux.hub.keeper.after(send)

    def _send(
        self,
        exchange: Exchange,
        session: Session,
        messages: Sequence[Event],
        carried: Carried | None,
    ) -> None:
        """With `carried` something may have been handed over since."""
        carrier = exchange.carrier
        taken = carrier.answer(exchange, messages)
        if messages:
            if taken:
                session.lazy_due = 0.0
                self._written(session, carried)
            else:
                self._not_written(session, carried)
            if carrier.is_draining():
                self._bayeux.sessions.timers.ring_by(session, self._bayeux.now)
        self._rest(exchange, session)

    def _rest(self, exchange: Exchange, session: Session) -> None:
        """The client has its answer, and its time runs."""
        if session.state is _GONE:
            self._bayeux.exits.discard(session, Reason.SESSION_ENDED)
        elif session.held is None and (exchange.connect is not None or exchange.is_handshake):
            session.carrier = exchange.carrier
            self._bayeux.clock.rest(session)

    def _carries(self, exchange: Exchange, session: Session) -> bool:
        """Whether waiting messages travel with an answer that is not a connect's."""
        if session.dispatcher is not None and not session.flows(self._bayeux.now):
            return False
        if exchange.is_handshake:
            # With a part of them the client would wait for the others.
            allowed = self._bayeux.options.allow_message_delivery_during_handshake
            return allowed and not session.queue.window
        if session.state is _GONE:
            return True
        if session.deliver_only:
            return False
        return exchange.carrier.connection_type is not ConnectionType.CALLBACK_POLLING

    def take(self, session: Session) -> Sequence[Event]:
        """What is to be handed over now, in the form that this session gets it."""
        queue, bayeux = session.queue, self._bayeux
        if queue.mortals:
            bayeux.exits.expire(session)
        if session.unfinished or session.reauthorization is not None:
            return ()
        if session.is_durable and self.lacks_store:
            return ()
        limit = -1 if session.terms is None else session.terms.max_entries
        dispatcher = session.dispatcher
        if dispatcher is not None and not (dispatcher.is_calm or dispatcher.flows(bayeux.now)):
            limit = 0
        messages = None
        if limit < 0 and (not queue.window or queue.window >= queue.count):
            messages = queue.pass_on(bayeux.now, bayeux.guard.held)
        if messages is None:
            return self._take_again(session, limit)
        first = queue.seq - len(messages) + 1
        if session.is_durable:
            if messages:
                ids = [message.id for message in messages]
                bayeux.hub.keeper.hand_over(session.key, Batch(queue.batch, first, ids))
        elif self._handed_out is not None and messages and queue.settling is not _WRITTEN:
            self._handed_out.add(session, messages, bayeux.now)
        dress = session.dress
        return messages if dress is None else dress.first(session, messages, first)

    def _take_again(self, session: Session, limit: int) -> Sequence[Event]:
        """As `take`, if something was handed over before, or not all may be handed over now."""
        queue, bayeux = session.queue, self._bayeux
        if queue.handed:
            bayeux.settlement.lost(session, bayeux.now)
        if limit and session.state is not _GONE:
            # Of what travels with a goodbye nothing is tried again.
            limit = bayeux.settlement.make_room(session, limit)
        entries = queue.hand_over(bayeux.now, limit, bayeux.guard.held)
        # What the receiver had, and finds no place in this batch, waits again.
        bayeux.expiry.watch(session)
        if self._witness is not None:
            self._witness.handed_again(session, entries)
        if session.is_durable:
            bayeux.settlement.mark(session, entries)
            bayeux.settlement.mark(session, queue.set_aside)
        dress = session.dress
        if dress is None:
            return [entry.message for entry in entries]
        return dress.again(session, entries)

    def may_take(self, session: Session) -> bool:
        """Whether anything may be handed over now: what is kept waits while the store is away."""
        dispatcher = session.dispatcher
        if dispatcher is not None and not (
            dispatcher.is_calm or dispatcher.flows(self._bayeux.now)
        ):
            return False
        if session.unfinished:
            # It may say of this that it does not want it.
            return False
        if session.reauthorization is not None:
            # Some of this may be none of its business any more.
            return False
        return not (session.is_durable and self.lacks_store)

    @property
    def lacks_store(self) -> bool:
        """Whether the store could not be told how far a durable session's entries have come.

        Then no batch is counted either: after a restart it would speak for what it did not carry.
        """
        has_store = self._has_store
        return not (self._bayeux.hub.keeper.is_available if has_store is None else has_store)

    def _written(self, session: Session, carried: Carried | None) -> None:
        queue, bayeux = session.queue, self._bayeux
        settled = queue.written(carried)
        if settled:
            if self._written_out is not None and not session.is_durable:
                self._written_out.add(session, settled, bayeux.now)
            bayeux.settlement.acked(session, settled, bayeux.now)
        if session.oneway:
            oneway = self._oneway(session, session.oneway, carried)
            bayeux.settlement.took(session, queue.settle(oneway), bayeux.now)

    def _oneway(self, session: Session, oneway: set[str], carried: Carried | None) -> list[int]:
        """What nobody will say anything of: its subscription wants it just to be written."""
        handed, numbers = session.queue.handed, (carried or session.queue.carried).numbers
        return [
            seq
            for seq in numbers
            if seq in handed and session.subscription(handed[seq].message.channel) in oneway
        ]

    def _not_written(self, session: Session, carried: Carried | None) -> None:
        is_back = self._bayeux.settlement.not_written(session, carried, self._bayeux.now)
        self._bayeux.expiry.watch(session)
        if is_back and session.held is not None:
            # It has asked again meanwhile.
            self._bayeux.hub.make_ready(session)

    def release(self, session: Session, exchange: Exchange) -> None:
        """Answer the held connect."""
        self._bayeux.sessions.unhold(session, exchange)
        self.complete(exchange)

    def release_with(self, session: Session, exchange: Exchange, advice: Json) -> None:
        """Answer the held connect, with this advice."""
        if exchange.connect is not None:
            exchange.connect[1]["advice"] = advice
        self.release(session, exchange)

    def dismiss(self, session: Session) -> None:
        """Answer the session's held connect for the last time."""
        if session.held is not None:
            advice = reconnect_advice(self._bayeux.options, "none")
            self.release_with(session, session.held, advice)

    def refuse_held(self, session: Session, refused: Refused) -> None:
        """Answer the held connect, which nothing travels with, by an error."""
        exchange = session.held
        if exchange is not None:
            self._bayeux.sessions.unhold(session, exchange)
            if exchange.connect is not None:
                _, reply, _ = exchange.connect
                refused.fill(reply)
                exchange.replies.append(encode_reply(reply))
            exchange.carrier.answer(exchange, ())

    def supersede(self, session: Session, exchange: Exchange) -> None:
        """A newer connect has come: the held one is answered as overtaken."""
        exchange.is_superseded = True
        self.refuse_held(session, Refused(BayeuxError.CONNECT_SUPERSEDED))

    def _push(self, session: Session, pipe: Pipe) -> None:
        if pipe.is_draining():
            return
        queue = session.queue
        if session.is_plain and pipe.push(queue.waiting):
            session.lazy_due = 0.0
            if self._written_out is not None:
                self._written_out.add(session, queue.waiting, self._bayeux.now)
            queue.pour_out()
            return
        messages = self.take(session)
        if not messages:
            return
        if pipe.push(messages):
            session.lazy_due = 0.0
            self._written(session, None)
        else:
            # The connection is about to be lost; nobody is told anything over it any more.
            self._bayeux.settlement.not_written(session, None, self._bayeux.now)
            self._bayeux.expiry.watch(session)
