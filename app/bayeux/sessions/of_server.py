"""Sessions of the server itself, one for each webhook: the worker that has it calls the webhook.

They are named sessions as clients have them, with all that happens to these: their queues, holds,
dead letters and subscriptions outlive the process. No client can claim their names.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.bayeux.session import Pipe, Session
from holdfast.bayeux.sessions.life import SessionLife
from holdfast.bayeux.sessions.takeover import take_over
from holdfast.bayeux.wire.identity import SERVER
from holdfast.bayeux.wire.terms import Terms
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.queues.receivers import WEBHOOKS

_NUMBER = 1


def subject_of(webhook: str) -> str:
    """Return the subject of a webhook."""
    return f"{WEBHOOKS}{webhook}"


def key_of(webhook: str) -> str:
    """Return the key of a webhook's session."""
    return f"{subject_of(webhook)}/{_NUMBER}"


def begin(
    life: SessionLife, webhook: str, options: Mapping[str, Any], *, pipe: Pipe, now: float
) -> Session:
    """Begin a webhook's session, or go on with it as its next client, over this connection.

    Args:
        options: What a client would ask for in `ext.delivery`.
    """
    state = life.state
    draft = _draft(life, webhook, options, now)
    session = state.sessions.named(draft.key)
    if session is None:
        session = draft
        life.open(session)
        state.sessions.name(session, session.key)
        state.subjects.join(session)
    else:
        take_over(life, session, draft, now)
    if life.is_to_be_durable(session):
        life.make_durable(session, now)
    life.bind(pipe, session, now)
    return session


def _draft(life: SessionLife, webhook: str, options: Mapping[str, Any], now: float) -> Session:
    state = life.state
    session = state.sessions.draft(CallbackQueue(state.queue_limits, state.counters))
    session.created = state.node.stamp()
    session.timeout_s = state.options.timeout_s
    session.interval_s = session.rest_interval_s = state.options.interval_s
    session.deadline = now + state.options.timeout_s + state.options.max_interval_s
    session.identity.role = SERVER
    # It waits forever, whatever the settings say of clients, and takes only what it subscribes to.
    name = {"name": key_of(webhook), "timeout": 0}
    terms = Terms.of({**options, "session": name, "ptp": False}, is_kept=True)
    life.agree(session, replace(terms, is_granted=True), acks=False)
    session.go_by(key_of(webhook))
    for extension in state.installed.of(session):
        agreed = extension.resume(session, now)
        if agreed is not None:
            session.extensions += (agreed,)
    return session
