"""The protocol as a whole: requests in, answers out; no I/O, no clock of its own."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from app.bayeux.admission import Admission
from app.bayeux.advice import reconnect_advice, session_advice
from app.bayeux.codec import Json, encode, encode_reply
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import ConnectionType, Exchange, PendingConnect, Pipe
from app.bayeux.extension_chain import ServerExtension, SessionExtension, run_outgoing
from app.bayeux.life import Input, State
from app.bayeux.options import ChannelRule, Options
from app.bayeux.rights import Rights
from app.bayeux.services import Services
from app.bayeux.sessions import Session, Sessions
from app.delivery.channels import Channel, Channels, Kind
from app.delivery.counters import Reason
from app.delivery.hub import Hub
from app.delivery.messages import Message

_ORDINARY_RULE = ChannelRule()
_NO_MESSAGES: Sequence[Message] = ()
_GONE = State.GONE

Outcome = SessionExtension | Exception | None


class RunLater(Protocol):
    """Awaits something outside the core and comes back with what became of it, and the time."""

    def __call__(
        self, work: Awaitable[object], done: Callable[[Outcome, float], None], /
    ) -> None: ...


class Bayeux:
    """One Bayeux server.

    Requests come in by `dispatch.receive`. The shell calls `flush` at the end of a turn in which
    `on_ready` was called, `tick` every tenth of a second, `abort` and `detach` when connections are
    lost.
    """

    log = logging.getLogger("app.bayeux")

    def __init__(
        self,
        options: Options,
        *,
        new_id: Callable[[], str],
        random: Callable[[], float],
        on_ready: Callable[[], None],
        run_later: RunLater,
    ) -> None:
        self.options = options
        self.new_id = new_id
        self.run_later = run_later
        self.now = 0.0
        # The exchange whose messages are being handled: what its session has travels with it.
        self.present: Exchange | None = None
        self.is_stopping = False
        # Handshakes whose extensions take their time.
        self.handshakes_pending = 0
        self.channels = Channels(options.channel_limits)
        self.hub: Hub[Session] = Hub(on_ready=on_ready, linger=self._linger)
        self.sessions = Sessions(new_id, trusting=options.trust_client_session)
        self.admission = Admission(options.handshake_rate, random)
        self.rights = Rights(self.channels)
        self.services = Services(self.channels)
        self.extensions: tuple[ServerExtension, ...] = ()
        # Those that want to see each published message.
        self._eventful: tuple[ServerExtension, ...] = ()
        # Credentials are nobody's business even if no extension looks at them.
        self.owned_ext = frozenset({"authentication"})

    def extend(self, extension: ServerExtension) -> None:
        """Install an extension, behind those that are there."""
        self.extensions += (extension,)
        if type(extension).event is not ServerExtension.event:
            self._eventful += (extension,)
        self.owned_ext |= extension.owns

    # What the shell calls

    def flush(self, now: float) -> None:
        """The turn ends: tell all who have something waiting."""
        self.now = now
        for session in self.hub.take_ready():
            try:
                self._tell(session)
            except Exception:
                self._log_fault(session)

    def tick(self, now: float) -> None:
        """Time has passed: held connects, lazy messages, expired sessions."""
        self.now = now
        for session in self.sessions.timers.ring(now):
            try:
                self._look_at_clock(session)
            except Exception:
                self._log_fault(session)
            if session.state is not _GONE:
                self.sessions.timers.ring_by(session, session.next_due())

    def abort(self, exchange: Exchange, now: float) -> None:
        """Nobody waits for this exchange any more; what its session did not get stays queued."""
        self.now = now
        session = exchange.session
        if session is not None and session.held is exchange:
            self.sessions.unhold(session, exchange)
            self._rest(session)

    def bind(self, pipe: Pipe, session: Session) -> None:
        """The connection serves this session from now on, and no other."""
        if pipe.session is not session:
            self.detach(pipe, self.now)
            pipe.session = session

    def attach(self, pipe: Pipe, session: Session) -> None:
        """Messages for the session may be sent over this connection."""
        self.bind(pipe, session)
        session.pipe = pipe
        self.drained(pipe)

    def detach(self, pipe: Pipe, now: float) -> None:
        """The connection is lost; the session lives on for a while."""
        self.now = now
        session = pipe.session
        pipe.session = None
        if session is None:
            return
        if session.pipe is pipe:
            session.pipe = None
        if session.held is not None and session.held.pipe is pipe:
            self.sessions.unhold(session, session.held)
            self._rest(session)

    def drained(self, pipe: Pipe) -> None:
        """The connection takes bytes again."""
        session = pipe.session
        if session is not None and session.queue.entries and not session.deliver_only:
            self.hub.make_ready(session)

    def stop(self, now: float) -> None:
        """Answer all held connects and hold no more; clients come back spread over some seconds."""
        self.now = now
        self.is_stopping = True
        for session in list(self.sessions):
            try:
                if session.held is not None:
                    self._release_with(session, session.held, self.farewell_advice(session))
            except Exception:
                self._log_fault(session)

    def farewell_advice(self, session: Session) -> Json:
        """Come back in a while: to the server that will have taken the place of this one."""
        session.rest_interval_s = self.admission.delay_s()
        return session_advice(session, self.options)

    # What handlers, extensions and services call

    def broadcast(
        self,
        channel: Channel,
        event: Json,
        *,
        sender: Session | None = None,
        lazy_s: float | None = None,
    ) -> None:
        """Publish an event to the subscribers of a channel; a lazy one may wait for company."""
        if self._eventful:
            self._complete_event(event)
        wire = encode(event)
        if len(wire) > self.options.max_message_size:
            raise Refused(BayeuxError.MESSAGE_TOO_LARGE, str(self.options.max_message_size))
        rule = self._rule(channel) if self.options.channels else _ORDINARY_RULE
        message = Message(wire, linger_s=rule.lazy_timeout_s if lazy_s is None else lazy_s)
        leave_out = None if sender is None or self._echoes(rule, sender) else sender
        self.hub.publish(channel, message, leave_out=leave_out)

    def _complete_event(self, event: Json) -> None:
        for extension in self._eventful:
            extension.event(event)

    def _echoes(self, rule: ChannelRule, sender: Session) -> bool:
        """Whether publishers get their own messages if they subscribed."""
        return (
            self.options.broadcast_to_publisher
            and rule.broadcast_to_publisher
            and sender.broadcast_to_publisher
        )

    def publish(self, channel: str, data: object, *, lazy_s: float | None = None) -> None:
        """Publish from within the server; with `lazy_s` the message may wait that long."""
        found = self.channels.get(channel)
        if found is None or found.is_wild or found.kind is not Kind.BROADCAST:
            raise ValueError(f"{channel!r} is no channel to publish on")
        self.broadcast(found, {"channel": found.name, "data": data}, lazy_s=lazy_s)

    def deliver_event(self, session: Session, event: Json, *, lazy_s: float | None = None) -> None:
        """Give an event to one session alone; with `lazy_s` it may wait that long."""
        if not session.is_gone:
            self._complete_event(event)
            self.hub.deliver(session, Message(encode(event), linger_s=lazy_s))

    def end_by_server(self, session: Session) -> None:
        """End a session and let its client know."""
        if session.is_gone:
            return
        pipe = session.pipe
        event: Json = {"channel": "/meta/disconnect", "successful": True}
        if pipe is None:
            self.deliver_event(session, event)
            self.dismiss(session)
        else:
            self._complete_event(event)
            goodbye = Message(encode(event))
            # The other way round: cometd.js closes its socket when no connect is outstanding.
            self.dismiss(session)
            pipe.push([goodbye])
            pipe.end()
        self.end(session, Input.DISCONNECT)
        if self.present is None or self.present.session is not session:
            session.queue.discard(Reason.SESSION_ENDED)

    def dismiss(self, session: Session) -> bool:
        """Answer the session's held connect for the last time; whether there was one to answer."""
        if session.held is None:
            return False
        advice = reconnect_advice(self.options, "none")
        return self._release_with(session, session.held, advice)

    def supersede(self, session: Session, exchange: Exchange) -> None:
        """A newer connect has come: the held one is answered as overtaken."""
        self.sessions.unhold(session, exchange)
        if exchange.connect is not None:
            _, reply, _ = exchange.connect
            Refused(BayeuxError.CONNECT_SUPERSEDED).fill(reply)
            exchange.replies.append(encode_reply(reply))
        exchange.is_superseded = True
        exchange.carrier.answer(exchange, ())

    def hold(self, session: Session, exchange: Exchange, timeout_s: float) -> None:
        """Keep the connect until a message comes or the time is over."""
        self.sessions.hold(session, exchange)
        session.deadline = self.now + timeout_s
        self.sessions.timers.ring_by(session, session.next_due())

    def end(self, session: Session, seen: Input) -> None:
        """The session is gone; what is still in its queue is the caller's to deliver or discard."""
        self.hub.remove(session)
        self.sessions.remove(session, seen)
        self.log.debug("session %d ended: %s", session.number, seen.value)

    def complete(self, exchange: Exchange) -> bool:
        """Send all replies, with the messages that travel along; whether they left."""
        session = exchange.session
        if session is None:
            return exchange.carrier.answer(exchange, ())
        queue, messages = session.queue, _NO_MESSAGES
        if exchange.connect is not None:
            # Extensions first: what they deliver now travels along.
            self._finish_connect(exchange, session, exchange.connect)
            messages = queue.hand_over()
        elif queue.entries and self._carries(exchange, session):
            messages = queue.hand_over()
        taken = exchange.carrier.answer(exchange, messages)
        if messages:
            if taken:
                session.lazy_due = 0.0
            if exchange.carrier.is_draining():
                self.sessions.timers.ring_by(session, self.now)
            queue.written() if taken else queue.returned()
        if session.state is _GONE:
            queue.discard(Reason.SESSION_ENDED)
        elif exchange.connect is not None or exchange.is_handshake:
            session.carrier = exchange.carrier
            self._rest(session)
        return taken

    def _finish_connect(
        self, exchange: Exchange, session: Session, connect: PendingConnect
    ) -> None:
        slot, reply, ext = connect
        if session.extensions:
            run_outgoing(session, reply, ext, self.now)
        exchange.replies.insert(slot, encode_reply(reply))

    # Sessions and time

    def _carries(self, exchange: Exchange, session: Session) -> bool:
        """Whether waiting messages travel with an answer that is not a connect's."""
        if exchange.is_handshake:
            return self.options.allow_message_delivery_during_handshake
        if session.state is _GONE:
            return True
        if session.deliver_only:
            return False
        return exchange.carrier.connection_type is not ConnectionType.CALLBACK_POLLING

    def touch(self, session: Session) -> None:
        """Whatever a client sends proves that it is alive."""
        due = self.now + self.options.max_interval_s
        if session.held is None and session.deadline < due and session.state is not _GONE:
            session.deadline = due

    def _rest(self, session: Session) -> None:
        """From now on the client has this long to come back."""
        session.deadline = self.now + session.rest_interval_s + self.options.max_interval_s
        self.sessions.timers.ring_by(session, session.deadline)

    def _release(self, session: Session, exchange: Exchange) -> bool:
        self.sessions.unhold(session, exchange)
        return self.complete(exchange)

    def _release_with(self, session: Session, exchange: Exchange, advice: Json) -> bool:
        if exchange.connect is not None:
            exchange.connect[1]["advice"] = advice
        return self._release(session, exchange)

    def _tell(self, session: Session) -> None:
        if not session.queue.entries:
            return
        if session.pipe is not None and not session.deliver_only:
            self._push(session, session.pipe)
        elif session.held is not None and session.quiet_until <= self.now:
            self._release(session, session.held)

    def _push(self, session: Session, pipe: Pipe) -> None:
        if pipe.is_draining():
            return
        if pipe.push(session.queue.hand_over()):
            session.lazy_due = 0.0
            session.queue.written()
        else:
            session.queue.returned()

    def _look_at_clock(self, session: Session) -> None:
        if session.state is _GONE:
            # What was done for another session has ended this one.
            return
        if session.is_late(self.now) and session.is_reachable:
            if session.queue.entries:
                self.hub.make_ready(session)
            else:
                session.lazy_due = 0.0
        if session.quiet_until and session.quiet_until <= self.now:
            session.quiet_until = 0.0
            self.hub.make_ready(session)
        if session.held is not None:
            if session.deadline <= self.now:
                self._release(session, session.held)
        elif session.carrier is not None and session.carrier.is_draining():
            # Its time begins when the answer has left; look again in a moment.
            self._rest(session)
            self.sessions.timers.ring_by(session, self.now)
        elif session.deadline <= self.now:
            self.end(session, Input.EXPIRE)
            session.queue.discard(Reason.SESSION_EXPIRED)

    def _log_fault(self, session: Session) -> None:
        # One session's trouble, whoever made it, must not become that of all behind it.
        self.log.exception("session %d could not be served", session.number)

    def _linger(self, session: Session, message: Message) -> None:
        """A lazy message waits for company, but not for ever."""
        due = self.now + (message.linger_s or 0.0)
        if not session.lazy_due or due < session.lazy_due:
            session.lazy_due = due
            self.sessions.timers.ring_by(session, due)

    def _rule(self, channel: Channel) -> ChannelRule:
        for name in channel.lookups:
            if name in self.options.channels:
                return self.options.channels[name]
        return _ORDINARY_RULE
