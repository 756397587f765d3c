"""What is known of living sessions, for operators: who is there, in which state, until when."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from app.bayeux.sessions import Session
from app.bayeux.terms import patience_s
from app.delivery import dispatcher
from app.delivery.entries import Entry, Settling
from app.delivery.queue import CallbackQueue, QueueLimits

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

_NS_PER_MS = 1_000_000


def find(bayeux: "Bayeux", key: str) -> Session | None:
    """The session of this key, whoever chose it."""
    named = bayeux.sessions.named(key)
    if named is not None:
        return named
    return next((session for session in bayeux.sessions if session.key == key), None)


def contact(session: Session) -> dispatcher.State:
    """What is known of its receiver; most sessions never need to be told."""
    return dispatcher.State.ALIVE if session.dispatcher is None else session.dispatcher.state


def hold_of(session: Session) -> dispatcher.Hold | None:
    """Why it is held back, if it is."""
    return None if session.dispatcher is None else session.dispatcher.hold_record


def is_connected(session: Session) -> bool:
    """Whether somebody is at the other end at this moment."""
    return session.held is not None or session.pipe is not None


def limits(bayeux: "Bayeux", session: Session) -> QueueLimits:
    """How much may wait for it."""
    ours = bayeux.options.queue_limits
    agreed = {} if session.terms is None else session.terms.queue
    return QueueLimits(
        min(ours.entries, agreed.get("maxEntries", ours.entries)),
        min(ours.bytes, agreed.get("maxBytes", ours.bytes)),
    )


def created_ms(session: Session) -> int:
    return session.created // _NS_PER_MS


def wall_ms(bayeux: "Bayeux", moment: float) -> int:
    """A moment of the core's clock as milliseconds since 1970."""
    return bayeux.node.now_ms() + round((moment - bayeux.now) * 1000)


def since_ms(bayeux: "Bayeux", session: Session, state: dispatcher.State) -> int | None:
    """Since when its receiver has been in this state; None if it is in another."""
    if contact(session) is not state:
        return None
    since = None if session.dispatcher is None else session.dispatcher.since
    return created_ms(session) if since is None else wall_ms(bayeux, since)


def is_stalled(session: Session) -> bool:
    """Whether what was sent to it last is still on its way."""
    return any(way is not None and way.is_draining() for way in (session.pipe, session.carrier))


def expires_ms(bayeux: "Bayeux", session: Session) -> int | None:
    """When it ends if nobody is heard of until then; None if it does not end by itself."""
    if session.ends_at:
        return wall_ms(bayeux, session.ends_at)
    if is_connected(session) or session.deadline == float("inf"):
        return None
    terms = session.terms
    if terms is None:
        waits = hold_of(session) is not None and session.queue.settling is not Settling.WRITTEN
    else:
        waits = hold_of(session) is not None or terms.retries != 0
    return wall_ms(bayeux, session.deadline + (_patience_s(bayeux, session) if waits else 0.0))


def _patience_s(bayeux: "Bayeux", session: Session) -> float:
    return patience_s(session.terms, bayeux.options.max_session_timeout_s)


def last_seen_ms(bayeux: "Bayeux", session: Session) -> int:
    """When its client was heard of; rather too early, as far as the times that are kept tell."""
    if is_connected(session):
        return bayeux.node.now_ms()
    if session.seen_ms and contact(session) is dispatcher.State.UNDEF:
        # It had left before this server began, and its clocks with it.
        return session.seen_ms
    if session.ends_at:
        seen = session.ends_at - _patience_s(bayeux, session)
    elif session.deadline != float("inf"):
        seen = session.deadline - session.rest_interval_s - bayeux.options.max_interval_s
    else:
        return created_ms(session)
    return max(created_ms(session), wall_ms(bayeux, min(seen, bayeux.now)))


def first_entries(queue: CallbackQueue, count: int) -> Iterator[Entry]:
    """The first entries, in the order of their delivery; what waits is none yet: `seq` is 0."""
    for entries in (queue.handed.values(), queue.returned.values()):
        for entry in entries:
            if count <= 0:
                return
            yield entry
            count -= 1
    for message in queue.waiting[: max(count, 0)]:
        yield Entry(message)
