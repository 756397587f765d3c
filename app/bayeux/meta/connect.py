"""`/meta/connect`: waits for messages, or is answered at once."""

from typing import Final

from holdfast.bayeux.advice import (
    forget_told_timeout,
    multiple_clients_advice,
    reconnect_advice,
    session_advice,
    told_timeout_s,
)
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.subscription_details import known_details, lost_subscriptions
from holdfast.bayeux.wire.codec import Json, ext_of
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.session_states import SessionInput, SessionState
from holdfast.delivery.messages.entries import SettledBy

_HANDSHAKEN: Final = SessionState.HANDSHAKEN
_VERDICT: Final = SettledBy.VERDICT
# What a client that shows no session should send.
_MISSING: Final = {
    ErrorReply.CLIENT_ID_MISSING: ("send the clientId",),
    ErrorReply.COOKIE_MISSING: ("send the cookie",),
}
# A connect gets up to this many messages at once, even if the turn is over.
_FEW: Final = 10


def connect(
    life: SessionLife, exchange: Exchange, *, session: Session, message: Json, reply: Json
) -> bool:
    """Answer at once, or hold the exchange until there is something to send.

    Returns False: `Answers.complete` writes the reply after it has handed messages over.
    """
    state, now = life.state, exchange.now
    if exchange.open_reply is not None or exchange.is_lost:
        # One response carries one batch, and a lost connection has no use for it.
        raise Refused(ErrorReply.CONNECT_SUPERSEDED)
    if session.held_connect is not None:
        life.answers.supersede(session, session.held_connect)
    _look_for_lost_reply(life, session, now)
    is_first = session.state is _HANDSHAKEN
    if is_first:
        if lost_subscriptions(session):
            _forget_told(life, session, now)
        session.advance(SessionInput.CONNECT)
        session.identity.first_connect = now
    dispatcher = session.dispatcher
    if dispatcher is not None and not dispatcher.is_calm:
        before = dispatcher.state
        dispatcher.contact(now)
        if dispatcher.state is not before:
            state.journal.dispatcher(session, dispatcher.state)
            # Messages in shared queues may be assigned to it again.
            state.waiting_places.assign_to(session)
    life.clock.attach(session)
    session.rest_interval_s = session.interval_s
    advice = message.get("advice")
    timeout_s = _heed(advice, session) if advice else session.timeout_s
    transport = exchange.carrier.connection_type
    if transport != session.transport or not session.is_advised or "advice" in message:
        # The client asked for it, or it differs from what the client assumes.
        session.transport = transport.value
        reply["advice"] = session_advice(session, state.options)
        timeout_s = min(timeout_s, _advised(session))
    session.pipe = exchange.pipe
    reply["successful"] = True
    exchange.replies.append(exchange.open(len(exchange.replies), reply, ext_of(message)))
    if state.is_stopping:
        reply["advice"] = life.farewell_advice(session)
    elif exchange.is_alone:
        # The next server holds the next one.
        timeout_s = 0.0 if is_first or state.is_leaving else timeout_s
        _hold_if_silent(life, exchange, session=session, reply=reply, timeout_s=timeout_s)
    return False


def _forget_told(life: SessionLife, session: Session, now: float) -> None:
    """Remove the lost subscriptions listed in the handshake's reply, which has now arrived."""
    details = known_details(session)
    if details is None:
        return
    untold = {name: False for name, is_told in details.lost.items() if not is_told}
    if len(untold) < len(details.lost):
        details.lost = untold
        life.owner.note(session, now)


def _look_for_lost_reply(life: SessionLife, session: Session, now: float) -> None:
    """Detect a lost reply by its connection: clients without acks cannot report one."""
    queue, carrier = session.queue, session.carrier
    if queue.settling is not _VERDICT:
        return
    if queue.is_restored:
        life.hand_overs.return_lost(session, now, is_whole=False)
    elif carrier is not None and carrier.is_lost():
        # One WebSocket frame may arrive and the next one be lost.
        is_whole = carrier.connection_type is not ConnectionType.WEBSOCKET
        life.hand_overs.return_lost(session, now, is_whole=is_whole)
    queue.is_restored = False
    queue.hear(queue.seq)


def _hold_if_silent(
    life: SessionLife, exchange: Exchange, *, session: Session, reply: Json, timeout_s: float
) -> None:
    """Hold the connect, after CometD's checks in its order: messages, a crowded browser."""
    now, pause_s, queue = exchange.now, 0.0, session.queue
    if (
        queue.count
        and life.answers.may_take(session, now)
        and queue.has_news(life.state.guard.held)
    ):
        pause_s = queue.pause_s() if timeout_s else 0.0
        if not pause_s and (queue.has_urgent() or session.is_late(now)):
            if queue.count > _FEW and life.state.is_turn_over():
                # The end of the turn serves waiting sessions one by one, within its budget.
                life.hold_connect(session, exchange, timeout_s, now)
                life.state.hub.make_ready(session)
            return
    if _crowds_browser(life.state, exchange):
        _send_away(life.state, reply)
    elif timeout_s > 0:
        session.quiet_until = now + pause_s if pause_s else 0.0
        life.hold_connect(session, exchange, timeout_s, now)


def _advised(session: Session) -> float:
    """Take note that the client is told its times. Returns the timeout that it knew before."""
    timeout_s = told_timeout_s(session)
    if not session.is_advised:
        forget_told_timeout(session)
        session.is_advised = True
    return timeout_s


def _heed(advice: Json, session: Session) -> float:
    """Apply the interval that the client advises. Returns how long to hold this connect."""
    interval, timeout = advice.get("interval"), advice.get("timeout")
    if isinstance(interval, int) and interval >= 0:
        longest = max(session.timeout_s, session.interval_s)
        session.rest_interval_s = min(interval / 1000, longest)
    if isinstance(timeout, (int, float)) and timeout >= 0:
        return min(timeout / 1000, session.timeout_s)
    return session.timeout_s


def _crowds_browser(state: ServerState, exchange: Exchange) -> bool:
    """Return whether this browser already holds as many connects as allowed."""
    if exchange.pipe is not None or exchange.browser is None:
        return False
    limit = state.options.max_sessions_per_browser
    return 0 <= limit <= state.sessions.held_by_browser.get(exchange.browser, 0)


def _send_away(state: ServerState, reply: Json) -> None:
    reply["advice"] = multiple_clients_advice(state.options)
    reply["successful"] = reply["advice"]["reconnect"] != "none"


def unknown_session(state: ServerState, exchange: Exchange, error: ErrorReply) -> Refused:
    """Return the refusal of a connect without a session; its advice is to handshake again.

    The advice is not to if this request ended the session, or if another client took it over.
    """
    session, options = exchange.session, state.options
    is_over = session is not None and session.has_left and not session.may_return
    if is_over or error is ErrorReply.SESSION_TAKEN:
        advice = reconnect_advice(options, "none")
    elif exchange.browser is None and not options.trust_client_session:
        # A client without cookies would handshake again and again at full speed.
        advice = reconnect_advice(options, "handshake", state.admission.delay_s())
    else:
        advice = reconnect_advice(options, "handshake")
    return Refused(error, *missing_in(error), advice=advice)


def missing_in(error: ErrorReply) -> tuple[str, ...]:
    """Return what the client should send, as arguments of this error."""
    return _MISSING.get(error, ())
