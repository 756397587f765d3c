"""The status of living sessions, for operators."""

from collections.abc import Iterator

from holdfast.bayeux.expiry.unconnected import seen_earlier_ms
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.bayeux.wire.terms import session_timeout_s
from holdfast.delivery.basics.node import NS_PER_MS, Node
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.queues import dispatcher
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.settings import Settings


def find(sessions: Sessions, key: str) -> Session | None:
    """Return the session of this name, whether the client or the server chose it."""
    named = sessions.named(key)
    if named is not None:
        return named
    return next((session for session in sessions if session.key == key), None)


def hold_of(session: Session) -> dispatcher.QueueHold | None:
    """Return the queue hold, if there is one."""
    return None if session.dispatcher is None else session.dispatcher.hold_record


def limits(options: Settings, session: Session) -> QueueLimits:
    """Return the limits of the session's queue."""
    agreed = {} if session.terms is None else session.terms.queue
    return QueueLimits(
        min(options.max_queue, agreed.get("maxEntries", options.max_queue)),
        min(options.max_queue_bytes, agreed.get("maxBytes", options.max_queue_bytes)),
    )


def created_ms(session: Session) -> int:
    return session.created // NS_PER_MS


def wall_ms(node: Node, moment: float, now: float) -> int:
    """Convert a time of the core's clock to milliseconds since 1970."""
    return node.now_ms() + round((moment - now) * 1000)


def since_ms(
    node: Node, session: Session, state: dispatcher.DispatcherState, now: float
) -> int | None:
    """Return when the dispatcher entered the state, or None if it is in another one."""
    if session.connection_state is not state:
        return None
    since = None if session.dispatcher is None else session.dispatcher.since
    return created_ms(session) if since is None else wall_ms(node, since, now)


def expires_ms(options: Settings, node: Node, session: Session, now: float) -> int | None:
    """Return when the session ends unless its client returns, or None if it does not expire."""
    if session.ends_at:
        return wall_ms(node, session.ends_at, now)
    if session.has_connection or session.is_absent:
        return None
    terms = session.terms
    if terms is None:
        waits = hold_of(session) is not None and session.queue.settling is not SettledBy.WRITTEN
    else:
        waits = hold_of(session) is not None or terms.retries != 0
    return wall_ms(
        node, session.deadline + (_session_timeout_s(options, session) if waits else 0.0), now
    )


def _session_timeout_s(options: Settings, session: Session) -> float:
    return session_timeout_s(session.terms, options.max_session_timeout_s)


def last_seen_ms(options: Settings, node: Node, session: Session, now: float) -> int:
    """Return when the client was last seen, or an earlier time if that is not known exactly."""
    if session.has_connection:
        return node.now_ms()
    earlier_ms = seen_earlier_ms(session)
    if earlier_ms and session.is_away:
        # The client left before this server started.
        return earlier_ms
    if session.ends_at:
        seen = session.ends_at - _session_timeout_s(options, session)
    elif not session.is_absent:
        seen = session.deadline - session.rest_interval_s - options.max_interval_s
    else:
        return created_ms(session)
    return max(created_ms(session), wall_ms(node, min(seen, now), now))


def first_entries(queue: CallbackQueue, count: int) -> Iterator[Entry]:
    """Yield the first entries in delivery order. New ones have `seq` 0."""
    count = max(count, 0)
    tried = queue.tried()[:count]
    yield from tried
    yield from map(Entry, queue.new[: count - len(tried)])
