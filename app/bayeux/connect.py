"""`/meta/connect`: the request that waits for messages, and when it does not wait."""

from app.bayeux.advice import multiple_clients_advice, reconnect_advice, session_advice
from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import ConnectionType, Exchange
from app.bayeux.life import Input, State
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session
from app.delivery.entries import Settling
from app.delivery.error_codes import GIVEN_UP

_CONNECTED = State.CONNECTED
_VERDICT = Settling.VERDICT


def connect(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> bool:
    """Answer now, or hold the exchange until there is something to say."""
    if exchange.connect is not None:
        # One answer carries one batch.
        raise Refused(BayeuxError.CONNECT_SUPERSEDED)
    if session.held is not None:
        bayeux.answers.supersede(session, session.held)
    _look_for_lost_reply(bayeux, session)
    is_first = session.state is not _CONNECTED
    if is_first:
        session.advance(Input.CONNECT)
        session.first_connect = bayeux.now
    dispatcher = session.dispatcher
    if dispatcher is not None and not dispatcher.is_calm:
        before = dispatcher.state
        dispatcher.contact(bayeux.now)
        if dispatcher.state is not before and bayeux.witness is not None:
            bayeux.witness.dispatcher(session, dispatcher.state)
        if dispatcher.is_dead and not session.is_closed:
            bayeux.give_up(session, GIVEN_UP, "the last attempt failed")
            raise unknown_session(bayeux, exchange, message)
    bayeux.clock.rise(session)
    session.rest_interval_s = session.interval_s
    advice = message.get("advice")
    timeout_s = _heed(advice, session) if advice else session.timeout_s
    kind = exchange.carrier.connection_type
    if kind is not session.connection_type or not session.is_advised or "advice" in message:
        # It was asked for, or may be another than the client knows.
        session.connection_type, session.is_advised = kind, True
        reply["advice"] = session_advice(session, bayeux.options)
    session.pipe = exchange.pipe
    reply["successful"] = True
    exchange.connect = (len(exchange.replies), reply, message.get("ext") or {})
    if bayeux.is_stopping:
        reply["advice"] = bayeux.farewell_advice(session)
    elif exchange.is_alone and not exchange.is_aborted:
        _hold_if_silent(bayeux, exchange, session, reply, 0.0 if is_first else timeout_s)
    return False


def _look_for_lost_reply(bayeux: Bayeux, session: Session) -> None:
    """Who does not acknowledge cannot say that a reply was lost: its connection may."""
    queue, carrier = session.queue, session.carrier
    if queue.settling is not _VERDICT:
        return
    if queue.is_restored:
        bayeux.settlement.reply_lost(session, bayeux.now, is_whole=False)
    elif carrier is not None and carrier.is_lost():
        # One frame of a socket may arrive, and the next one be lost.
        is_whole = carrier.connection_type is not ConnectionType.WEBSOCKET
        bayeux.settlement.reply_lost(session, bayeux.now, is_whole=is_whole)
    queue.is_restored = False
    queue.hear(queue.seq)


def _hold_if_silent(
    bayeux: Bayeux, exchange: Exchange, session: Session, reply: Json, timeout_s: float
) -> None:
    """CometD's order: messages first, then a crowded browser, then whether to wait at all."""
    pause_s, queue = 0.0, session.queue
    if queue.count and bayeux.answers.may_take(session) and queue.has_news(bayeux.guard.held):
        pause_s = queue.pause_s() if timeout_s else 0.0
        if not pause_s and (queue.has_urgent() or session.is_late(bayeux.now)):
            return
    if _crowds_browser(bayeux, exchange):
        _send_away(bayeux, reply)
    elif timeout_s > 0:
        session.quiet_until = bayeux.now + pause_s if pause_s else 0.0
        bayeux.hold(session, exchange, timeout_s)


def _heed(advice: Json, session: Session) -> float:
    """The hold time; the client may ask for less than ours, and for an interval, for this time."""
    interval, timeout = advice.get("interval"), advice.get("timeout")
    if isinstance(interval, int) and interval >= 0:
        longest = max(session.timeout_s, session.interval_s)
        session.rest_interval_s = min(interval / 1000, longest)
    if isinstance(timeout, (int, float)) and timeout >= 0:
        return min(timeout / 1000, session.timeout_s)
    return session.timeout_s


def _crowds_browser(bayeux: Bayeux, exchange: Exchange) -> bool:
    """Whether this browser has as many connects held as it may have."""
    limit = bayeux.options.max_sessions_per_browser
    if limit < 0 or exchange.pipe is not None or exchange.browser is None:
        return False
    return bayeux.sessions.held_by_browser.get(exchange.browser, 0) >= limit


def _send_away(bayeux: Bayeux, reply: Json) -> None:
    reply["advice"] = multiple_clients_advice(bayeux.options)
    reply["successful"] = reply["advice"]["reconnect"] != "none"


def unknown_session(bayeux: Bayeux, exchange: Exchange, message: Json) -> Refused:
    """The refusal of a connect: handshake again, unless the session ended in this very request."""
    session, options = exchange.session, bayeux.options
    is_over = session is not None and session.has_left and not session.may_return
    if is_over or bayeux.sessions.was_replaced(message.get("clientId")):
        advice = reconnect_advice(options, "none")
    elif exchange.browser is None and not options.trust_client_session:
        # A client that keeps no cookie would handshake again and again, as fast as it can.
        advice = reconnect_advice(options, "handshake", bayeux.admission.delay_s())
    else:
        advice = reconnect_advice(options, "handshake")
    return Refused(BayeuxError.SESSION_UNKNOWN, advice=advice)
