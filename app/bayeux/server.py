"""The protocol as a whole: requests in, answers out; no I/O, no clock of its own."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from app.bayeux.admission import Admission
from app.bayeux.advice import session_advice
from app.bayeux.answers import Answers
from app.bayeux.backlog import Backlog
from app.bayeux.budgets import Budgets
from app.bayeux.clock import Clock
from app.bayeux.codec import Json
from app.bayeux.error_handlers import ErrorHandlers
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import Exchange, Pipe
from app.bayeux.expiry import Expiry
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.hooks import HookFailed, check_hook, is_own, names_of
from app.bayeux.identities import Identities
from app.bayeux.life import Input, State
from app.bayeux.options import ChannelRule, Options
from app.bayeux.ownership import Ownership
from app.bayeux.places import Places
from app.bayeux.qos import Qos
from app.bayeux.reauthorization import reauthorize, recheck
from app.bayeux.reserved import RESERVED_EXT, refuse_ext
from app.bayeux.retrials import Retrials
from app.bayeux.rights import Rights
from app.bayeux.services import Services
from app.bayeux.sessions import Session, Sessions
from app.bayeux.terms import Terms
from app.delivery.channels import Channel, Channels, Kind
from app.delivery.counters import Reason
from app.delivery.dispatcher import Dispatcher, Hold
from app.delivery.entries import Settling
from app.delivery.error_codes import GIVEN_UP, ErrorCode
from app.delivery.guard import Guard
from app.delivery.hub import Hub
from app.delivery.json_text import NoNumber, to_json, to_strict_json
from app.delivery.keeper import Keeper, Kept
from app.delivery.messages import Message
from app.delivery.node import Node
from app.delivery.notices import HELD, RESUMED, Notices
from app.delivery.settlement import Settlement
from app.delivery.witness import Witness

_ORDINARY_RULE = ChannelRule()
_GONE = State.GONE
# What the journal calls them.
_ENDINGS = {Input.DISCONNECT: "ended", Input.EXPIRE: "expired", Input.FAIL: "given_up"}

Outcome = SessionExtension | BaseException | None
# After so many sessions, others have their turn if this one has lasted long enough.
_TOLD = 16


def _never() -> bool:
    return False


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

    def __init__(
        self,
        options: Options,
        *,
        new_id: Callable[[], str],
        random: Callable[[], float],
        on_ready: Callable[[], None],
        run_later: RunLater,
        node: Node,
        keeper: Keeper,
        witness: Witness | None = None,
        is_turn_over: Callable[[], bool] = _never,
    ) -> None:
        self.log = logging.getLogger("app.bayeux")
        self.options = options
        self.new_id = new_id
        self.run_later = run_later
        # Whether what can be done in parts should go on in a later turn.
        self.is_turn_over = is_turn_over
        self._on_ready = on_ready
        # Whether the shell knows already that it must call `flush`.
        self._is_awake = False
        self.backlog = Backlog(self._wake, is_turn_over)
        self.now = 0.0
        # The exchange whose messages are being handled: what its session has travels with it.
        self.present: Exchange | None = None
        self.is_stopping = False
        # Handshakes whose extensions take their time.
        self.handshakes_pending = 0
        self.channels = Channels(options.channel_limits)
        self.node = node
        self.witness = witness
        self.clock = Clock(self)
        self.retrials = Retrials(self)
        self.answers = Answers(self)
        self.guard = Guard(options.guard)
        self.notices = Notices()
        self.hub: Hub[Session] = Hub(
            on_ready=self._wake,
            linger=self.clock.linger,
            keeper=keeper,
            witness=witness,
            notices=self.notices,
        )
        self.ownership = Ownership(self, random)
        self.settlement: Settlement[Session] = Settlement(
            self.ownership, keeper, self.hub.counters, node, self.guard, witness, self.notices
        )
        self.exits = self.settlement.exits
        self.hub.turned_away = self.exits.turned_away
        self.hub.recheck = partial(recheck, self)
        self.expiry = self.hub.expiry = Expiry(self)
        self.sessions = Sessions(new_id, first=node.stamp() // 1000)
        self.identities = Identities(self)
        self.places = Places(self)
        self.admission = Admission(options.handshake_rate, random)
        self.budgets = Budgets(self, options.budgets)
        self.rights = Rights(self.channels)
        self.services = Services(self.channels)
        self.error_handlers = ErrorHandlers(self.channels)
        self.extensions: tuple[ServerExtension, ...] = ()
        # Those that want to see each published message.
        self._eventful: tuple[ServerExtension, ...] = ()
        # Whether any is not ours: what those make of messages may have no form in JSON.
        self._has_others = False
        # Credentials are nobody's business even if no extension looks at them.
        self.owned_ext = frozenset({"authentication"})
        # What looks at a key of `ext` before anything of its message has effect.
        self.ext_checks: dict[str, tuple[Callable[[Json], None], ...]] = {
            name: (partial(refuse_ext, name),) for name in RESERVED_EXT
        }

    def extend(self, extension: ServerExtension) -> None:
        """Install an extension, behind those that are there."""
        kind = type(extension).__name__
        check_hook(f"{kind}.resume", extension.resume)
        check_hook(f"{kind}.event", extension.event)
        self.extensions += (extension,)
        self._has_others |= not is_own(extension)
        if type(extension).event is not ServerExtension.event:
            self._eventful += (extension,)
        for name in extension.owns:
            # A reserved name is refused until somebody owns it.
            others = self.ext_checks.get(name, ()) if name in self.owned_ext else ()
            self.ext_checks[name] = (*others, extension.check)
        self.owned_ext |= extension.owns

    # What the shell calls

    def flush(self, now: float) -> None:
        """The turn ends: tell all who have something waiting, and go on with what takes long."""
        self.now = now
        self._is_awake = False
        ready = self.hub.take_ready()
        if ready:
            self._tell(ready)
        if self.backlog:
            self.backlog.go_on()

    @property
    def has_more(self) -> bool:
        """Whether another turn must follow."""
        return self.hub.has_ready or bool(self.backlog)

    def _wake(self) -> None:
        if not self._is_awake:
            self._is_awake = True
            self._on_ready()

    def _tell(self, ready: list[Session]) -> None:
        watch = self.hub.watch
        looks = () if watch is None else watch.look(ready, self.guard.held)
        if self.hub.durables:
            # Of the others the store hears nothing.
            self.answers.begin_round()
        for place, session in enumerate(ready, 1):
            try:
                self.answers.tell(session)
            except BaseException:
                self.log_fault(session)
            if place % _TOLD == 0 and self.is_turn_over():
                self.hub.put_back(ready[place:])
                break
        self.answers.end_round()
        if watch is not None and looks:
            watch.told(looks, self.node.stamp())

    def tick(self, now: float) -> None:
        """Time has passed: held connects, lazy messages, expired messages and sessions."""
        self.now = now
        self.clock.follow_wall()
        self.expiry.tick()
        self.clock.tick()
        self.places.tick()
        self.retrials.tick()
        self.notices.beat(now)
        if self.witness is not None:
            self.witness.beat(now)

    def abort(self, exchange: Exchange, now: float) -> None:
        """Nobody waits for this exchange any more; what its session did not get stays queued."""
        self.now = now
        exchange.is_aborted = True
        session = exchange.session
        if session is not None and session.held is exchange:
            self.sessions.unhold(session, exchange)
            self.clock.rest(session)

    def bind(self, pipe: Pipe, session: Session) -> None:
        """The connection serves this session from now on, and no other."""
        if pipe.session is not session:
            self.detach(pipe, self.now)
            pipe.session = session

    def attach(self, pipe: Pipe, session: Session) -> None:
        """Messages for the session may be sent over this connection."""
        self.bind(pipe, session)
        session.pipe = pipe
        # Lazy messages may have waited for a way to their client only.
        self.clock.wind(session)
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
            self.clock.rest(session)

    def drained(self, pipe: Pipe) -> None:
        """The connection takes bytes again."""
        session = pipe.session
        if session is not None and session.queue.count and not session.deliver_only:
            self.hub.make_ready(session)

    def stop(self, now: float) -> None:
        """Answer all held connects and hold no more; clients come back spread over some seconds."""
        self.now = now
        self.is_stopping = True
        self.notices.end_window()
        for session in list(self.sessions):
            try:
                if session.held is not None:
                    advice = self.farewell_advice(session)
                    self.answers.release_with(session, session.held, advice)
            except BaseException:
                self.log_fault(session)

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
        qos: Qos | None = None,
        done: Callable[[Kept], None] | None = None,
    ) -> Kept | None:
        """Publish an event to the subscribers of a channel; a lazy one may wait for company.

        None says that the store must keep it first: then `done` tells what became of it.
        """
        if self._eventful:
            self._complete_event(event)
        is_touched = sender is None or self._has_others or not self.rights.are_open
        wire = self._write(event, sender) if is_touched else to_json(event)
        if len(wire) > self.options.max_message_size:
            raise Refused(BayeuxError.MESSAGE_TOO_LARGE, str(self.options.max_message_size))
        rule = self.rule(channel) if self.options.channels else _ORDINARY_RULE
        message = Message(
            wire,
            id=self.node.stamp(),
            channel=channel.name,
            sender="" if sender is None else sender.name,
            linger_s=rule.lazy_timeout_s if lazy_s is None else lazy_s,
        )
        if self.guard.held:
            self.guard.published(channel.name, message.sender, self.now)
        persistent = rule.durable
        if qos is not None:
            qos.qualify(message, sender)
            persistent = rule.durable if qos.persistent is None else qos.persistent
        leave_out = None if sender is None or self._echoes(rule, sender) else sender
        return self.hub.publish(
            channel, message, leave_out=leave_out, persistent=persistent, done=done
        )

    def _complete_event(self, event: Json) -> None:
        for extension in self._eventful:
            try:
                extension.event(event)
            except Exception:
                raise
            except BaseException as error:
                # Whoever publishes, a task of another extension perhaps, has nothing to do with it.
                raise HookFailed(f"event hook of {type(extension).__name__}") from error

    def _write(self, event: Json, sender: Session | None) -> bytes:
        """The event as JSON; what an extension made of it may have none, which is its error."""
        try:
            return to_strict_json(event)
        except NoNumber as error:
            raise NoNumber(f"{error}: {self._authors(sender)}") from error

    def _authors(self, sender: Session | None) -> str:
        """Who may have put something into an event that its client did not say."""
        asked = () if sender is None else sender.extensions
        seeing = [each for each in asked if type(each).incoming is not SessionExtension.incoming]
        return names_of([*seeing, *self._eventful]) or "from who published it"

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
            channel = str(event.get("channel", ""))
            wire = to_strict_json(event)
            message = Message(wire, id=self.node.stamp(), channel=channel, linger_s=lazy_s)
            self.hub.deliver(session, message)

    def reauthorize(self, session: Session) -> None:
        """Rights have changed: the session loses what it may not have any more.

        That is done when the turn ends, or in later ones; until then it is handed nothing.
        """
        reauthorize(self, session)

    def end_by_server(self, session: Session, by: str = "the server") -> None:
        """End a session and let its client know; what was kept for it becomes dead letters."""
        if session.is_gone:
            return
        keeps = session.is_durable or (session.terms is not None and session.terms.is_named)
        if keeps:
            self.exits.bury_all(session, GIVEN_UP, f"its session was ended by {by}", self.now)
        pipe = session.pipe
        event: Json = {"channel": "/meta/disconnect", "successful": True}
        if pipe is None:
            self.deliver_event(session, event)
            self.answers.dismiss(session)
        else:
            self._complete_event(event)
            goodbye = Message(to_json(event))
            # The other way round: cometd.js closes its socket when no connect is outstanding.
            self.answers.dismiss(session)
            pipe.push([goodbye])
            pipe.end()
        self.end(session, Input.DISCONNECT)
        # As what the store has not answered yet.
        session.is_given_up = keeps
        if self.present is None or self.present.session is not session:
            self.exits.discard(session, Reason.SESSION_ENDED)

    def hold(self, session: Session, exchange: Exchange, timeout_s: float) -> None:
        """Keep the connect until a message comes or the time is over."""
        self.sessions.hold(session, exchange)
        session.deadline = self.now + timeout_s
        is_still = session.dispatcher is None or session.dispatcher.deadline is None
        if is_still and not session.quiet_until and not session.lazy_due:
            # Of what falls due besides, the timers know since it was set.
            self.sessions.timers.ring_by(session, session.deadline)
        else:
            self.clock.wind(session)

    def agree(self, session: Session, terms: Terms | None, *, acks: bool) -> None:
        """How entries of this session are settled, and what failures mean for it."""
        session.terms = terms
        if acks:
            session.queue.settling = Settling.BATCH
            session.deliver_only = True
        if terms is None:
            return
        session.deliver_only = True
        if terms.oneway:
            session.queue.settling = Settling.WRITTEN
        elif not acks:
            session.queue.settling = Settling.VERDICT
        session.queue.response_timeout_s = 0.0 if terms.oneway else terms.response_timeout / 1000
        session.queue.limit(terms.queue.get("maxEntries"), terms.queue.get("maxBytes"))
        session.dispatcher = Dispatcher(terms.policy)
        if terms.dispatcher_active is False:
            now_ms = self.node.now_ms()
            session.dispatcher.hold(Hold("asked for at handshake", session.name, now_ms))
            self.notices.tell(HELD, session.key, "itself")

    def hold_back(
        self, session: Session, reason: str, who: str, until_ms: int | None = None
    ) -> None:
        """Hand nothing over to the session until somebody resumes it, or until then."""
        dispatcher = self.settlement.dispatcher(session, self.now)
        dispatcher.hold(Hold(reason, who, self.node.now_ms(), until_ms))
        self.notices.tell(HELD, session.key, who)
        if self.witness is not None:
            self.witness.held("operator", receiver=session.key)
        self.ownership.note(session)

    def resume(self, session: Session, by: str = "operator") -> None:
        """End a holdback."""
        dispatcher = session.dispatcher
        if dispatcher is None or dispatcher.hold_record is None:
            return
        dispatcher.resume(self.now)
        self.notices.tell(RESUMED, session.key, by)
        if self.witness is not None:
            self.witness.released(by, receiver=session.key)
        self.hub.flow_again(session)
        self.ownership.note(session)

    def release_channel(self, name: str, by: str = "operator") -> bool:
        """End the holdback of a channel; False if it was not held back."""
        is_released = self.guard.release(name)
        if is_released:
            self.hub.keeper.release(name)
            if self.witness is not None:
                self.witness.released(by, channel=name)
            # Who is subscribed no more, and has something of it, gets that with the next connect.
            for session in self.hub.routes.receivers(self.channels.named(name)):
                if session.queue.count:
                    self.hub.flow_again(session)
        return is_released

    def clear(self, session: Session) -> int:
        """Discard what is in the session's queue; how many entries that were."""
        entries = session.queue.clear()
        messages = [entry.message for entry in entries]
        self.exits.discarded(session, messages, Reason.CLEARED)
        return len(entries)

    def store_is_back(self) -> None:
        """What is kept may be handed over again."""
        for session in self.sessions:
            if session.is_durable and session.queue.count:
                self.hub.make_ready(session)

    def give_up(self, session: Session, code: ErrorCode, text: str, by: str = "") -> None:
        """The session ends, of itself or by somebody, and what it did not get is dead."""
        session.is_closed = session.is_given_up = True
        self.exits.bury_all(session, code, text, self.now)
        self.ownership.end(session, code, by)

    def end(self, session: Session, seen: Input) -> None:
        """The session is gone; what is still in its queue is the caller's to deliver or discard."""
        self.hub.remove(session)
        self.expiry.forget(session)
        if self.witness is not None:
            self.witness.session(session, _ENDINGS.get(seen, seen.value))
        if session.dispatcher is not None:
            session.dispatcher.end()
        if session.is_durable:
            self.hub.keeper.forget(session.key, session.queue.ids())
            session.is_durable = False
        self.sessions.remove(session, seen)
        self.places.leave(session)
        self.log.debug("session %s ended: %s", session.key, seen.value)

    def log_fault(self, session: Session) -> None:
        """Say that serving a session failed, in an `except` clause."""
        # One session's trouble, whoever made it, must not become that of all behind it.
        self.log.exception("session %s could not be served", session.key)

    def rule(self, channel: Channel) -> ChannelRule:
        """What is special about the channel."""
        for name in channel.lookups:
            if name in self.options.channels:
                return self.options.channels[name]
        return _ORDINARY_RULE
