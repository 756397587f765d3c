"""`/meta/connect`: the request that waits for messages, and when it does not wait."""

from app.bayeux.advice import multiple_clients_advice, reconnect_advice, session_advice
from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.exchange import Exchange, PendingConnect
from app.bayeux.life import Input, State
from app.bayeux.server import Bayeux
from app.bayeux.sessions import Session


def connect(
    bayeux: Bayeux, exchange: Exchange, session: Session, message: Json, reply: Json
) -> None:
    """Answer now, or hold the exchange until there is something to say."""
    bayeux.supersede(session)
    is_first = session.state is State.HANDSHAKEN
    session.advance(Input.CONNECT)
    timeout_s = _heed_advice(bayeux, session, message)
    if _must_advise(exchange, session, message):
        reply["advice"] = session_advice(session, bayeux.options)
    session.pipe = exchange.pipe
    session.connection_type = exchange.connection_type
    reply["successful"] = True
    slot = len(exchange.replies) + len(exchange.connects)
    exchange.connects.append(PendingConnect(slot, reply, message.get("ext") or {}))
    if exchange.size > 1 or bayeux.is_stopping:
        return
    pause_s = session.queue.pause_s()
    if session.queue.entries and not pause_s and session.queue.has_urgent():
        return
    if _crowds_browser(bayeux, exchange):
        _send_away(bayeux, reply)
        return
    if is_first or timeout_s <= 0:
        return
    session.quiet_until = bayeux.now + pause_s if pause_s else 0.0
    bayeux.hold(session, exchange, timeout_s)


def _heed_advice(bayeux: Bayeux, session: Session, message: Json) -> float:
    """The hold time; the client may ask for less than ours, and for an interval, for this time."""
    advice = message.get("advice") or {}
    session.rest_interval_s = session.interval_s
    interval = advice.get("interval")
    if isinstance(interval, int) and interval >= 0:
        longest = max(session.timeout_s, session.interval_s)
        session.rest_interval_s = min(interval / 1000, longest)
    timeout = advice.get("timeout")
    if isinstance(timeout, (int, float)) and timeout >= 0:
        return min(timeout / 1000, session.timeout_s)
    return session.timeout_s


def _must_advise(exchange: Exchange, session: Session, message: Json) -> bool:
    switched = session.connection_type not in (None, exchange.connection_type)
    due = switched or not session.is_advised or "advice" in message
    session.is_advised = True
    return due


def _crowds_browser(bayeux: Bayeux, exchange: Exchange) -> bool:
    """Whether this browser has as many connects held as it may have."""
    limit = bayeux.options.max_sessions_per_browser
    if limit < 0 or exchange.pipe is not None or exchange.browser is None:
        return False
    return bayeux.sessions.held_by(exchange.browser) >= limit


def _send_away(bayeux: Bayeux, reply: Json) -> None:
    reply["advice"] = multiple_clients_advice(bayeux.options)
    reply["successful"] = reply["advice"]["reconnect"] != "none"


def unknown_session(bayeux: Bayeux, session: Session | None) -> Refused:
    """The refusal of a connect: handshake again, unless the session ended in this very request."""
    reconnect = "handshake" if session is None else "none"
    return Refused(BayeuxError.SESSION_UNKNOWN, advice=reconnect_advice(bayeux.options, reconnect))
