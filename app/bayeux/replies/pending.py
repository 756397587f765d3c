"""Replies that wait for the store or an extension. They keep their position among the others."""

from collections.abc import Callable
from functools import partial

from holdfast.bayeux.extending.chain import run_outgoing
from holdfast.bayeux.replies.answers import Answers
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.state.backlog import Step
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.state.unstored_replies import begin_reply, end_reply
from holdfast.bayeux.wire.codec import Json, encode_reply, ext_of


def finish(message: Json, exchange: Exchange, *, reply: Json, now: float, place: int) -> bytes:
    """Run the session's extensions on the reply, then encode it.

    The reply to a successful handshake stays open at its place: messages may travel with it.
    """
    session = exchange.session
    if session is None:
        return encode_reply(reply)
    if exchange.is_handshake:
        return exchange.open(place, reply, ext_of(message))
    if session.extensions:
        run_outgoing(session, reply, ext_of(message), now, batch=None)
    return encode_reply(reply, session.extensions)


def begin_pending(answers: Answers, message: Json, exchange: Exchange, reply: Json) -> Step:
    """Reserve a pending reply's position. Call the result once, in a later turn, to complete it."""
    place = len(exchange.replies)
    exchange.replies.append(b"")
    exchange.pending_replies += 1
    if exchange.session is not None:
        exchange.client_id = exchange.session.client_id

    def fulfil(now: float) -> None:
        exchange.replies[place] = finish(message, exchange, reply=reply, now=now, place=place)
        exchange.pending_replies -= 1
        if not exchange.pending_replies:
            answers.complete(exchange, now)

    return fulfil


def finish_later(state: ServerState, session: Session, fulfil: Step) -> Callable[[], None]:
    """Return what completes a pending reply once the store has all changes before its call.

    The reply to a disconnect waits for it, because the client then closes its connection.
    """
    begin_reply(session)
    return partial(state.when_kept, partial(_finish_now, session, fulfil))


def _finish_now(session: Session, fulfil: Step, now: float) -> None:
    end_reply(session)
    fulfil(now)


def finish_when_kept(state: ServerState, session: Session, fulfil: Step) -> None:
    """Complete a pending reply once the store has all earlier changes."""
    finish_later(state, session, fulfil)()
