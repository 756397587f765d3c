"""`/meta/handshake`: a client becomes a session."""

from collections.abc import Awaitable, Callable

from app.bayeux.advice import reconnect_advice, session_advice
from app.bayeux.claims import claim
from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import Exchange, Source
from app.bayeux.extension import ServerExtension, SessionExtension
from app.bayeux.options import Durable
from app.bayeux.places import busy, later
from app.bayeux.reading import check_ext
from app.bayeux.server import Bayeux, Outcome
from app.bayeux.sessions import Session
from app.bayeux.takeover import take_over
from app.delivery.counters import Reason
from app.delivery.entries import Settling
from app.delivery.json_text import NoNumber, has_no_number
from app.delivery.queue import CallbackQueue


class Handshake:
    """One handshake on its way through the extensions, some of which may take their time."""

    def __init__(
        self,
        bayeux: Bayeux,
        exchange: Exchange,
        message: Json,
        reply: Json,
    ) -> None:
        self._bayeux = bayeux
        self._exchange = exchange
        self._message = message
        self._reply = reply
        # Called when the reply is complete, unless `start` completed it.
        self.fulfil: Callable[[], None] | None = None
        self._next = 0
        self._session = self._draft()

    def start(self) -> bool:
        """Whether the reply is complete; otherwise `fulfil` is called when it is."""
        try:
            self._check_connection_types()
            if self._message.get("ext"):
                check_ext(self._bayeux, self._message)
            self._bayeux.rights.check_handshake(self._session, self._message)
            return self._negotiate()
        except BaseException as error:
            self._refuse(error)
            return True

    def _draft(self) -> Session:
        bayeux, options = self._bayeux, self._bayeux.options
        queue = CallbackQueue(options.queue_limits, bayeux.hub.counters)
        session = bayeux.sessions.draft(queue)
        session.caller = self._exchange.caller
        session.timeout_s = options.timeout_s
        session.interval_s = session.rest_interval_s = options.interval_s
        session.deliver_only = options.meta_connect_deliver_only
        # Extensions may take their time, but not longer than this.
        session.created = bayeux.node.stamp()
        session.deadline = bayeux.now + options.timeout_s + options.max_interval_s
        return session

    def _check_connection_types(self) -> None:
        ours = self._bayeux.options.connection_types
        theirs = self._message.get("supportedConnectionTypes")
        if not isinstance(theirs, list) or not any(kind in theirs for kind in ours):
            self._reply["supportedConnectionTypes"] = ours
            raise Refused(BayeuxError.CONNECTION_TYPES_UNSUPPORTED)

    def _negotiate(self) -> bool:
        bayeux, session = self._bayeux, self._session
        while self._next < len(bayeux.extensions):
            extension = bayeux.extensions[self._next]
            self._next += 1
            outcome = extension.negotiate(session, self._message, self._reply, bayeux.now)
            if outcome is not None and isinstance(outcome, Awaitable):
                bayeux.handshakes_pending += 1
                bayeux.run_later(outcome, self._resume)
                return False
            self._check_reply(extension)
            self._install(outcome)
        return self._accept()

    def _check_reply(self, extension: ServerExtension) -> None:
        """What an extension agrees to must be what its client reads."""
        if has_no_number(self._reply):
            raise NoNumber(f"{type(extension).__name__} put NaN or infinity into the reply")

    def _resume(self, outcome: Outcome, now: float) -> None:
        """An extension that took its time is done."""
        self._bayeux.handshakes_pending -= 1
        self._bayeux.now = now
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            self._check_reply(self._bayeux.extensions[self._next - 1])
            self._install(outcome)
            if not self._negotiate():
                return
        except BaseException as error:
            self._refuse(error)
        self._fulfil()

    def _fulfil(self) -> None:
        if self.fulfil is not None:
            self.fulfil()

    def _refuse(self, error: BaseException) -> None:
        """Nothing is left of a client that was not let in."""
        bayeux, session = self._bayeux, self._session
        bayeux.hub.remove(session)
        bayeux.sessions.timers.drop(session)
        bayeux.exits.discard(session, Reason.SESSION_ENDED)
        if not isinstance(error, Refused):
            # Nobody gets in by a fault of ours, and nobody is sent away for good by one either.
            bayeux.log.error("a handshake could not be handled", exc_info=error)
            error = later(bayeux, BayeuxError.SERVER_FAULT)
        # What some extension agreed to is not agreed any more.
        self._reply.pop("ext", None)
        error.fill(self._reply)
        advice = reconnect_advice(bayeux.options, "none")
        self._reply["advice"] = advice | self._reply.get("advice", {})

    def _install(self, extension: SessionExtension | None) -> None:
        if extension is not None:
            self._session.extensions += (extension,)

    def _accept(self) -> bool:
        """Whether the reply is complete: who is promised that all is kept must be known first."""
        bayeux, exchange, draft = self._bayeux, self._exchange, self._session
        if bayeux.is_stopping:
            raise busy(bayeux)
        is_durable = _is_durable(bayeux, draft)
        if not _can_write_down(bayeux, draft, is_durable=is_durable):
            raise busy(bayeux)
        browser, pipe = exchange.browser, exchange.pipe
        if browser is None:
            browser = exchange.new_browser = bayeux.new_id()
        session = self._settle_in(draft, browser)
        if exchange.new_browser is not None:
            session.newcomer_since = bayeux.now
        session.needs_cookie = not exchange.is_cookieless
        session.is_of_page = exchange.source is Source.PAGE
        session.connection_type = exchange.carrier.connection_type
        exchange.session = session
        exchange.is_handshake = True
        if pipe is not None:
            bayeux.bind(pipe, session)
        self._reply |= {
            "successful": True,
            "clientId": session.client_id,
            "version": "1.0",
            "minimumVersion": "1.0",
            "supportedConnectionTypes": bayeux.options.connection_types,
            "advice": session_advice(session, bayeux.options),
        }
        waiting = 0 if session.queue.window else session.queue.count
        if waiting and bayeux.options.allow_message_delivery_during_handshake:
            # cometd.js waits for this many messages before it connects.
            self._reply["x-messages"] = waiting
        if is_durable:
            self._keep(session)
        return not is_durable

    def _settle_in(self, draft: Session, browser: str) -> Session:
        """The draft becomes a session, or the client of one that is there already."""
        bayeux, terms = self._bayeux, draft.terms
        bayeux.budgets.spend_claim(draft)
        if terms is None or not terms.is_named:
            bayeux.places.give()
            self._open(draft, browser)
            return draft
        known = claim(bayeux, draft, terms, self._message, browser)
        if known is not None:
            take_over(bayeux, known, draft, browser)
            return known
        self._open(draft, browser)
        bayeux.sessions.name(draft, terms.key)
        return draft

    def _open(self, session: Session, browser: str) -> None:
        self._bayeux.sessions.add(session, browser)
        self._bayeux.places.arrive(session)
        if self._bayeux.witness is not None:
            self._bayeux.witness.session(session, "opened")
            if session.dispatcher is not None and session.dispatcher.hold_record is not None:
                self._bayeux.witness.held("client", receiver=session.key)

    def _keep(self, session: Session) -> None:
        bayeux = self._bayeux
        if not session.is_durable:
            session.is_durable = True
            bayeux.hub.durables += 1
        bayeux.ownership.note(session)
        bayeux.hub.keeper.after(self._fulfil)


def _is_durable(bayeux: Bayeux, session: Session) -> bool:
    match bayeux.options.durable:
        case Durable.NONE:
            return False
        case Durable.NAMED:
            return session.terms is not None and session.terms.is_named
        case Durable.ACKED:
            return session.terms is not None or session.queue.settling is not Settling.WRITTEN


def _can_write_down(bayeux: Bayeux, draft: Session, *, is_durable: bool) -> bool:
    """Whether the store can take what it must: a session, and what others leave that end for it."""
    if is_durable and not bayeux.hub.keeper.is_available:
        return False
    clears = draft.terms is not None and draft.terms.clear_sessions
    return not (clears and bayeux.exits.is_crowded)


def check_capacity(bayeux: Bayeux, message: Json) -> None:
    """Turn clients away while there is no room or no time for them, before anything is made."""
    # Who comes back to a session of its own needs no further place.
    has_room = bayeux.places.has_room or _asks_for_name(message)
    if bayeux.is_stopping or not has_room or not bayeux.admission.admit(bayeux.now):
        raise busy(bayeux)


def _asks_for_name(message: Json) -> bool:
    asked = (message.get("ext") or {}).get("delivery")
    return isinstance(asked, dict) and "session" in asked
