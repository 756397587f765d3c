"""Brings a server to rest before its sessions are given to the next one, and takes that back."""

from collections import deque
from functools import partial

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.phase import Phase
from holdfast.bayeux.state.unstored_replies import owes_reply


def settle(bayeux: Bayeux, now: float) -> None:
    """Answer all held connects, over several turns if necessary, and hold no more.

    Their replies are those to any connect, so clients ask again at once: the next server. Read no
    request any more, and go on with turns and ticks until `unsettled` returns None.
    """
    state = bayeux.state
    if state.phase is Phase.SERVING:
        state.phase = Phase.LEAVING
    bayeux.streams.end_waits()
    state.notices.end_window()
    state.refused_publishes.flush()
    holding = deque(each for each in state.sessions if each.held_connect is not None)
    state.backlog.begin(partial(_release_next, bayeux, holding), now)


def _release_next(bayeux: Bayeux, holding: deque[Session], now: float) -> bool:
    """Answer one held connect. Returns whether there may be more."""
    session = holding.popleft() if holding else None
    if session is not None and session.held_connect is not None:
        try:
            bayeux.life.answers.release(session, session.held_connect, now)
        except BaseException:
            bayeux.state.log_fault(session)
    return bool(holding)


def unsettled(bayeux: Bayeux) -> str | None:
    """Return what is not finished yet, or None. Then `given` may be called.

    The store must have answered everything, too: wait for it, then ask again.
    """
    state = bayeux.state
    if state.handshakes_pending:
        return "a login"
    if state.backlog or state.is_awake:
        return "the end of a turn"
    if state.hub.waits_for_store:
        return "a publish"
    for session in state.sessions:
        if session.held_connect is not None:
            return "a connect"
        if session.unfinished or session.pauses:
            return "a request"
        if owes_reply(session):
            return "a reply to a client"
        if session.queue.coming:
            return "an answer of the store"
    return None if state.waiting_places.are_settled else "messages between two queues"


def take_back(bayeux: Bayeux, now: float) -> None:
    """Go on as before, because no other server goes on with the sessions."""
    state = bayeux.state
    state.phase = Phase.SERVING
    bayeux.streams.may_wait = True
    for session in state.sessions:
        if not session.is_absent and session.held_connect is None:
            # Its client could not be heard in the meantime.
            bayeux.life.clock.await_return(session, now)
        if session.queue.count:
            state.hub.make_ready(session)
    for receiver in state.waiting_places.queues():
        state.hub.make_ready(receiver)
