"""Quotas of addresses and subjects: sessions, subscriptions, and what waits for or because of them.

Who is over a quota gets 429 for what would take more. What is there stays, and so do all others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.bayeux.advice import reconnect_advice
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.sessions import Session
from holdfast.bayeux.usage import BYTES, SESSIONS, SUBSCRIPTIONS, TOPICS
from holdfast.delivery.notices import OVERSPENT
from holdfast.delivery.receivers import NOBODY

# Not earlier: quotas are used less only when sessions end, unsubscribe or fetch what waits.
_RETRY_S = 5.0


def check_session(state: ServerState, draft: Session) -> None:
    """Check that one more session may be opened. Raises `Refused` before any change."""
    kind = used_up(state, draft)
    if kind:
        raise _refused(state, draft, kind, "handshake")


def used_up(state: ServerState, session: Session) -> str:
    """Return which quota forbids one more session on account of this one; empty if none does."""
    limits = state.options.quotas
    # Clients on this machine are not counted.
    for usage in state.sessions.usages.of(session) if session.caller.network else ():
        usage.count(state.node.now_ms())
        if 0 < limits.sessions <= len(usage.sessions):
            return SESSIONS
        if 0 < limits.bytes <= usage.bytes:
            return BYTES
    return ""


def check_subscriptions(state: ServerState, session: Session, more: int) -> None:
    """Check that the session may have more subscriptions. Raises `Refused` before any change."""
    limits = state.options.quotas
    for usage in state.sessions.usages.of(session) if session.caller.network else ():
        usage.count(state.node.now_ms())
        if 0 < limits.subscriptions < usage.subscriptions + more:
            raise _refused(state, session, SUBSCRIPTIONS, "retry")
        if 0 < limits.bytes <= usage.bytes:
            raise _refused(state, session, BYTES, "retry")


def count_subscriptions(state: ServerState, session: Session, more: int) -> None:
    """Count the session's new subscriptions at once: many may come before the next count."""
    for usage in state.sessions.usages.of(session):
        usage.subscriptions += more


def too_much_waits(
    state: ServerState, session: Session, kind: str, outcomes: Sequence[Mapping[str, Any]]
) -> Refused:
    """Return the refusal of a message that would wait, with what befell it if it was addressed."""
    refused = _refused(state, session, kind, "retry")
    if outcomes:
        refused.ext = {"delivery": {"destinations": outcomes}}
    return refused


def too_many_topics(state: ServerState, session: Session) -> Refused:
    """Return the refusal of a message that would make another topic."""
    return _refused(state, session, TOPICS, "retry")


def _refused(state: ServerState, session: Session, kind: str, reconnect: str) -> Refused:
    network, subject = session.caller.network, session.subject
    state.sessions.usages.exceeded[kind] += 1
    who = network if subject == NOBODY else f"{network} as {subject}"
    state.notices.report(OVERSPENT, who, kind)
    delay_s = _RETRY_S if reconnect == "retry" else _RETRY_S + state.admission.delay_s()
    advice = reconnect_advice(state.options, reconnect, delay_s)
    return Refused(ErrorReply.BUDGET_EXCEEDED, kind, advice=advice)
