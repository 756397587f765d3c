"""`/meta/handshake`: creates a session for a client."""

from collections.abc import Awaitable, Callable

from holdfast.bayeux.advice import reconnect_advice, session_advice
from holdfast.bayeux.extending.base import ServerExtension, SessionExtension
from holdfast.bayeux.limits.spread import spread
from holdfast.bayeux.publish.requests import MODE
from holdfast.bayeux.replies.pending import finish_when_kept
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.sessions.claims import Claims
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.slots import SessionSlots, busy, later
from holdfast.bayeux.sessions.takeover import take_over
from holdfast.bayeux.state.cursors import drop_cursors
from holdfast.bayeux.state.phase import Phase
from holdfast.bayeux.state.server_state import GivenUp, Outcome, ServerState
from holdfast.bayeux.subscribe.catching_up import give_cursors
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.starts import Starts, starts_of
from holdfast.delivery.basics.json_text import NoNumber, has_no_number
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.requests.reply_channels import reply_channel_of


class Handshake:
    """One handshake on its way through the extensions, some of which may be asynchronous."""

    def __init__(
        self,
        life: SessionLife,
        slots: SessionSlots,
        *,
        claims: Claims,
        exchange: Exchange,
        message: Json,
        reply: Json,
    ) -> None:
        self._life, self._state = life, life.state
        self._slots, self._claims = slots, claims
        self._exchange = exchange
        self._message = message
        self._reply = reply
        # Called when the reply is complete, unless `start` has completed it.
        self.fulfil: Callable[[float], None] | None = None
        self._next = 0
        # The start that the client requests by `ext.replay`, if any: cursors and their form.
        self._starts: Starts | None = None
        # The identity for a browser that has none.
        self._new_browser = ""
        self._session = self._draft(exchange.now)

    def start(self, now: float) -> bool:
        """Start. Returns whether the reply is complete; if not, `fulfil` is called later."""
        try:
            self._check_connection_types()
            if self._message.get("ext"):
                self._state.installed.check(self._message)
                replay = self._message["ext"].get("replay")
                self._starts = starts_of(replay, self._state.epoch)
            self._state.rights.check_handshake(self._session, self._message)
            return self._negotiate(now)
        except BaseException as error:
            self._refuse(error)
            return True

    def _draft(self, now: float) -> Session:
        options = self._state.options
        queue = CallbackQueue(self._state.queue_limits, self._state.counters)
        session = self._state.sessions.draft(queue, self._new_client_id())
        session.caller = self._exchange.speaker.caller
        session.timeout_s = options.timeout_s
        session.interval_s = session.rest_interval_s = options.interval_s
        session.deliver_only = options.meta_connect_deliver_only
        # Until the reply starts the client's timeout, which asynchronous extensions may delay.
        session.created = self._state.node.stamp()
        session.deadline = now + options.timeout_s + options.max_interval_s
        return session

    def _new_client_id(self) -> str:
        """Return an id in the bucket of the browser, which is new if it has no cookie."""
        browser, ids = self._exchange.browser, self._state.client_ids
        if browser is not None:
            bucket = ids.bucket_in(browser)
            # The browser of a session with a subject may belong to another shard.
            return ids.new(bucket if ids.owns(bucket) else None)
        client_id, self._new_browser = ids.new_pair()
        return client_id

    def _check_connection_types(self) -> None:
        ours = [*self._state.options.transports]
        theirs = self._message.get("supportedConnectionTypes")
        if not isinstance(theirs, list) or not any(kind in theirs for kind in ours):
            self._reply["supportedConnectionTypes"] = ours
            raise Refused(ErrorReply.CONNECTION_TYPES_UNSUPPORTED)

    def _negotiate(self, now: float) -> bool:
        session = self._session
        while self._next < len(self._state.installed.all):
            extension = self._state.installed.all[self._next]
            self._next += 1
            outcome = extension.negotiate(session, self._message, self._reply, now)
            if outcome is not None and isinstance(outcome, Awaitable):
                self._state.handshakes_pending += 1
                self._state.run_later(outcome, self._resume)
                return False
            self._check_reply(extension)
            self._install(outcome)
        return self._accept(now)

    def _check_reply(self, extension: ServerExtension) -> None:
        """Raise an exception if the extension made the reply unreadable for clients."""
        if has_no_number(self._reply):
            raise NoNumber(f"{type(extension).__name__} put NaN or infinity into the reply")

    def _resume(self, outcome: Outcome, now: float) -> None:
        """Continue when an asynchronous extension has finished."""
        self._state.handshakes_pending -= 1
        try:
            if isinstance(outcome, GivenUp):
                raise busy(self._state)
            if isinstance(outcome, BaseException):
                raise outcome
            self._check_reply(self._state.installed.all[self._next - 1])
            self._install(outcome)
            if not self._negotiate(now):
                return
        except BaseException as error:
            self._refuse(error)
        self._fulfil(now)

    def _fulfil(self, now: float) -> None:
        if self.fulfil is not None:
            self.fulfil(now)

    def _refuse(self, error: BaseException) -> None:
        """Refuse the client and undo everything."""
        session = self._session
        session.advance(SessionInput.DISCONNECT)
        self._state.hub.remove(session)
        self._state.sessions.timers.drop(session)
        self._life.undelivered.discard_rest(session, Reason.SESSION_ENDED)
        if not isinstance(error, Refused):
            # After a fault of the server, the client is refused but may try again.
            self._state.log.error("a handshake could not be handled", exc_info=error)
            error = later(self._state, ErrorReply.SERVER_FAULT)
        # Agreements of extensions are void.
        self._reply.pop("ext", None)
        error.fill(self._reply, self._state.counters.errors)
        advice = reconnect_advice(self._state.options, "none")
        self._reply["advice"] = advice | self._reply.get("advice", {})

    def _install(self, extension: SessionExtension | None) -> None:
        if extension is not None:
            self._session.extensions += (extension,)

    def _accept(self, now: float) -> bool:
        """Return whether the reply is complete. A promise of durability waits for the store."""
        exchange, draft = self._exchange, self._session
        if self._state.is_stopping or self._state.phase is Phase.LEFT or exchange.is_lost:
            # A client whose connection is lost may already have its session on a newer one. A
            # session that begins after the leave would be unknown to the next server.
            raise busy(self._state)
        is_durable = self._life.is_to_be_durable(draft)
        if not _can_write_down(self._life, draft, is_durable=is_durable):
            raise busy(self._state)
        browser, pipe = exchange.browser, exchange.pipe
        if exchange.speaker.is_spread:
            spread(draft)
        elif draft.subject != NOBODY:
            # The subject was unknown before.
            ids = self._state.client_ids
            bucket = ids.bucket_of(draft.subject)
            if not ids.owns(bucket):
                raise self._misplaced()
            draft.client_id, self._new_browser = ids.new(bucket), ids.new(bucket)
        if browser is None:
            browser = exchange.new_browser = self._new_browser
        # A browser with a cookie, even an invented one, was here before.
        is_new = not exchange.speaker.browsers
        draft.identity.shakes_hands(exchange.speaker, browser, is_new=is_new, now=now)
        session = self._settle_in(draft, now)
        self._state.subjects.join(session)
        if session is draft:
            self._life.login_events.began(session)
        session.transport = exchange.carrier.connection_type.value
        exchange.session, exchange.client_id = session, session.client_id
        exchange.is_handshake = exchange.replies_first = True
        if pipe is not None:
            self._life.bind(pipe, session, now)
        self._reply |= {
            "successful": True,
            "clientId": session.client_id,
            "version": "1.0",
            "minimumVersion": "1.0",
            "supportedConnectionTypes": [*self._state.options.transports],
            "advice": session_advice(session, self._state.options),
        }
        self._offer_cursors(session)
        self._offer_replies(session)
        if is_durable:
            self._life.make_durable(session, now)
            finish_when_kept(self._state, session, self._fulfil)
        return not is_durable

    def _misplaced(self) -> Refused:
        """Return the refusal of a client whose subject was not found in its credentials."""
        self._state.log.error("a subject has its home in another shard, which its handshake missed")
        return later(self._state, ErrorReply.SERVER_FAULT)

    def _offer_replies(self, session: Session) -> None:
        """Tell a client that wants replies its session's reply channel, which may be a kept one."""
        asked = self._message.get("ext") or {}
        channel = reply_channel_of(session) if asked.get(MODE) else None
        if channel is not None:
            self._reply.setdefault("ext", {})["ret"] = channel.name

    def _offer_cursors(self, session: Session) -> None:
        """Offer replay to Salesforce's clients; give cursors to a client that asks."""
        if self._state.keeps_history:
            self._reply.setdefault("ext", {})["replay"] = True
        drop_cursors(session)
        if self._starts is not None:
            give_cursors(self._state, session, self._starts)

    def _settle_in(self, draft: Session, now: float) -> Session:
        """Turn the draft into a session, or attach its client to an existing one."""
        terms = draft.terms
        self._state.budgets.spend_claim(draft, now)
        if terms is None or not terms.is_named:
            self._state.quotas.check_session(draft)
            self._slots.give(now)
            self._life.open(draft)
            return draft
        known = self._claims.claim(draft, terms, self._message, now)
        if known is not None:
            take_over(self._life, known, draft, now)
            return known
        self._life.open(draft)
        self._state.sessions.name(draft, terms.key)
        return draft


def _can_write_down(life: SessionLife, draft: Session, *, is_durable: bool) -> bool:
    """Return whether the store can take the session, and letters of sessions that it ends."""
    if is_durable and not life.state.store.is_available:
        return False
    clears = draft.terms is not None and draft.terms.clear_sessions
    return not (clears and life.undelivered.is_congested)


def check_capacity(state: ServerState, slots: SessionSlots, message: Json, now: float) -> None:
    """Raise `Refused` before any work if there is no session slot or no admission."""
    # A client that takes over its session needs no further slot.
    has_room = slots.has_room or _asks_for_name(message)
    if state.is_stopping or not has_room or not state.admission.admit(now):
        raise busy(state)


def _asks_for_name(message: Json) -> bool:
    asked = (message.get("ext") or {}).get("delivery")
    return isinstance(asked, dict) and "session" in asked
