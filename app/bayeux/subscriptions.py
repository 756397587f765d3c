"""Adding and removing of subscriptions, for clients and operators."""

from collections.abc import Mapping

from holdfast.bayeux.codec import Json
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.sessions import Session
from holdfast.delivery.channels import Channel


def join(
    state: ServerState, session: Session, patterns: Mapping[str, Channel], message: Json
) -> None:
    """Subscribe the session to all of the patterns that it may have; raises `Refused`."""
    more = sum(name not in session.subscriptions for name in patterns)
    if more:
        _check_room(state, session, more)
    routes = state.hub.routes
    for channel in patterns.values():
        state.rights.check_system(session, channel)
    if not state.rights.are_open:
        for name, channel in patterns.items():
            state.rights.check_subscribe(session, channel, message, exists=name in routes)
    for name, channel in patterns.items():
        routes.add(channel, session)
        session.subscriptions.add(name)


def _check_room(state: ServerState, session: Session, more: int) -> None:
    """Check that the session may have this many more subscriptions; raises `Refused`."""
    options, wanted = state.options, len(session.subscriptions) + more
    if wanted > options.max_subscriptions:
        raise too_many(state)
    most = options.max_total_subscriptions
    # A session that uses up the total must not keep others from subscribing.
    if state.hub.routes.count + more > most and wanted > most // options.max_sessions:
        state.hub.counters.subscriptions_refused += 1
        raise Refused(ErrorReply.SUBSCRIPTIONS_USED_UP)


def part(state: ServerState, session: Session, pattern: str) -> None:
    """Remove the subscription, if the session has it."""
    if pattern not in session.subscriptions:
        return
    state.hub.routes.remove(pattern, session)
    session.subscriptions.remove(pattern)
    session.unsubscribed += 1
    if session.oneway is not None:
        session.oneway.discard(pattern)


def too_many(state: ServerState) -> Refused:
    """Return the refusal of a subscription beyond the limit."""
    return Refused(ErrorReply.SUBSCRIPTIONS_EXCEEDED, str(state.options.max_subscriptions))
