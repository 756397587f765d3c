"""Subscriptions of sessions, whoever adds them or takes them away."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.bayeux.codec import Json
from app.bayeux.errors import BayeuxError, Refused
from app.bayeux.sessions import Session
from app.delivery.channels import Channel

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux


def join(
    bayeux: "Bayeux", session: Session, patterns: Mapping[str, Channel], message: Json
) -> None:
    """Subscribe the session to all of these, as far as it may be; raises `Refused`."""
    more = sum(name not in session.subscriptions for name in patterns)
    if more and len(session.subscriptions) + more > bayeux.options.max_subscriptions:
        raise too_many(bayeux)
    routes = bayeux.hub.routes
    for channel in patterns.values():
        bayeux.rights.check_system(session, channel)
    if not bayeux.rights.are_open:
        for name, channel in patterns.items():
            bayeux.rights.check_subscribe(session, channel, message, exists=name in routes)
    for name, channel in patterns.items():
        routes.add(channel, session)
        session.subscriptions.add(name)


def part(bayeux: "Bayeux", session: Session, pattern: str) -> None:
    """Take a subscription away, if the session has it."""
    if pattern not in session.subscriptions:
        return
    bayeux.hub.routes.remove(pattern, session)
    session.subscriptions.remove(pattern)
    session.unsubscribed += 1
    if session.oneway is not None:
        session.oneway.discard(pattern)


def too_many(bayeux: "Bayeux") -> Refused:
    """What is said to a session that wants more than it may have."""
    return Refused(BayeuxError.SUBSCRIPTIONS_EXCEEDED, str(bayeux.options.max_subscriptions))
