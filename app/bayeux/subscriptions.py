"""Adding and removing of subscriptions, for clients, operators and restarts."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from holdfast.bayeux.codec import Json
from holdfast.bayeux.errors import ErrorReply, Refused
from holdfast.bayeux.quotas import check_subscriptions, count_subscriptions
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.sessions import Session
from holdfast.bayeux.subscribe_qos import PLAIN, SubscribeQos
from holdfast.delivery.channels import Channel, overlaps
from holdfast.delivery.selections import Filter


def join(
    state: ServerState,
    session: Session,
    patterns: Mapping[str, Channel],
    message: Json,
    qos: SubscribeQos = PLAIN,
) -> None:
    """Subscribe the session to all of the patterns, or to none.

    The QoS replaces that of existing subscriptions. Raises `Refused`.
    """
    more = check_join(state, session, patterns, message, qos)
    for channel in patterns.values():
        add(state, session, channel, qos)
        if state.presence.is_visible(channel):
            state.presence.join(channel.name, session)
    if more:
        count_subscriptions(state, session, more)
        state.work.look(session)


def check_join(
    state: ServerState,
    session: Session,
    patterns: Mapping[str, Channel],
    message: Json,
    qos: SubscribeQos = PLAIN,
) -> int:
    """Check that the session may subscribe to the patterns; return how many are new to it.

    Raises `Refused`.
    """
    if qos.filter is not None:
        _check_filters(state, session, qos.filter, patterns)
    if qos.choice:
        _refuse_choice(state, patterns, qos.choice)
    more = sum(name not in session.subscriptions for name in patterns)
    if more:
        _check_room(state, session, more)
    routes = state.routes
    for channel in patterns.values():
        state.rights.check_system(session, channel, message)
    if not state.rights.are_open:
        for name, channel in patterns.items():
            state.rights.check_subscribe(session, channel, message, exists=name in routes)
    return more


def add(state: ServerState, session: Session, channel: Channel, qos: SubscribeQos) -> None:
    """Add a subscription, or replace the QoS of an existing one."""
    routes = state.routes
    if qos.filter is not None:
        qos = replace(qos, filter=routes.filters.shared(qos.filter))
    routes.add(channel, session, qos.selection(session.name) if qos.is_selective else None)
    session.subscriptions.add(channel.name)
    if qos is not PLAIN and qos != PLAIN:
        if session.subscription_qos is None:
            session.subscription_qos = {}
        session.subscription_qos[channel.name] = qos
        session.has_newest_only |= qos.newest_only
    elif session.subscription_qos is not None:
        session.subscription_qos.pop(channel.name, None)


def _check_filters(
    state: ServerState, session: Session, filter: Filter, patterns: Mapping[str, Channel]
) -> None:
    """Check that subscriptions to these patterns may have the filter; raises `Refused`."""
    options, filters = state.options, state.routes.filters
    known = session.subscription_qos or {}
    others = sum(qos.filter is not None for name, qos in known.items() if name not in patterns)
    if others + len(patterns) > options.max_session_filters:
        most = str(options.max_session_filters)
        raise Refused(ErrorReply.SUBSCRIPTIONS_EXCEEDED, "filter", most)
    if len(filters) >= options.max_filters and not filters.shared(filter).uses:
        raise Refused(ErrorReply.SUBSCRIPTIONS_USED_UP, "filter")


def _refuse_choice(state: ServerState, patterns: Iterable[str], option: str) -> None:
    """Refuse an option by which a receiver would choose among the messages of a work queue."""
    for work in state.options.work_patterns:
        if any(overlaps(work, pattern) for pattern in patterns):
            raise Refused(ErrorReply.DELIVERY_INVALID, "user.illegalArgument", option)


def _check_room(state: ServerState, session: Session, more: int) -> None:
    """Check that the session may have this many more subscriptions; raises `Refused`."""
    options, wanted = state.options, len(session.subscriptions) + more
    if wanted > options.max_subscriptions:
        raise too_many(state)
    most = options.max_total_subscriptions
    # A session that uses up the total must not keep others from subscribing.
    if state.routes.count + more > most and wanted > most // options.max_sessions:
        state.counters.subscriptions_refused += 1
        raise Refused(ErrorReply.SUBSCRIPTIONS_USED_UP)
    check_subscriptions(state, session, more)


def part(state: ServerState, session: Session, pattern: str) -> None:
    """Remove the subscription, if the session has it."""
    if pattern not in session.subscriptions:
        return
    state.routes.remove(pattern, session)
    session.subscriptions.remove(pattern)
    if state.presence.is_used:
        state.presence.leave(pattern, session)
    session.unsubscribed += 1
    if session.subscription_qos is not None:
        session.subscription_qos.pop(pattern, None)
    state.work.relieve(session)


def too_many(state: ServerState) -> Refused:
    """Return the refusal of a subscription beyond the limit."""
    return Refused(ErrorReply.SUBSCRIPTIONS_EXCEEDED, str(state.options.max_subscriptions))
