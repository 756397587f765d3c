"""Living sessions as operators see them, and what they may do to them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import orjson

from app.bayeux.codec import Json
from app.bayeux.grammar import ILLEGAL, CommandRefused
from app.bayeux.life import State
from app.bayeux.sessions import Session
from app.bayeux.terms import Terms, TermsInvalid, patience_s
from app.delivery import dispatcher, error_codes
from app.delivery.counters import Reason
from app.delivery.entries import Entry, Settling
from app.delivery.queue import CallbackQueue, QueueLimits

if TYPE_CHECKING:
    from app.bayeux.commands import Registry
    from app.bayeux.properties import ClientView, NodeView, SessionView
    from app.bayeux.server import Bayeux

# What one command shows of a queue, in bytes, if that is more than one entry.
_SHOWN = 1024**2
_NS_PER_MS = 1_000_000


# What is known of one session


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
    return wall_ms(bayeux, session.deadline + (patience_s(terms) if waits else 0.0))


def last_seen_ms(bayeux: "Bayeux", session: Session) -> int:
    """When its client was heard of; rather too early, as far as the times that are kept tell."""
    if is_connected(session):
        return bayeux.node.now_ms()
    if session.ends_at:
        seen = session.ends_at - patience_s(session.terms)
    elif session.deadline != float("inf"):
        seen = session.deadline - session.rest_interval_s - bayeux.options.max_interval_s
    else:
        return created_ms(session)
    return max(created_ms(session), wall_ms(bayeux, min(seen, bayeux.now)))


# What is in a queue


def first_entries(queue: CallbackQueue, count: int) -> Iterator[Entry]:
    """The first entries, in the order of their delivery; what waits is none yet: `seq` is 0."""
    for entries in (queue.handed.values(), queue.returned):
        for entry in entries:
            if count <= 0:
                return
            yield entry
            count -= 1
    for message in queue.waiting[: max(count, 0)]:
        yield Entry(message)


def remove_first(bayeux: "Bayeux", session: Session, count: int) -> int:
    """Discard the first entries; how many there were."""
    gone = session.queue.take_first(count)
    bayeux.exits.discarded(session, gone, Reason.CLEARED)
    return len(gone)


# What may be done


def kill(bayeux: "Bayeux", session: Session, who: str) -> None:
    """The session ends, and what is in its queue becomes dead letters."""
    bayeux.give_up(session, error_codes.GIVEN_UP, f"ended by {who}", by=who)


def set_timeout(bayeux: "Bayeux", session: Session, timeout_ms: int) -> None:
    """Wait that long for a client that does not come back; 0 is for ever."""
    if session.terms is None:
        raise CommandRefused(ILLEGAL, "this session has agreed on no timeout")
    terms = replace(session.terms, timeout=timeout_ms)
    try:
        Terms.of(terms.to_json())
    except TermsInvalid:
        raise CommandRefused(ILLEGAL, "so long a timeout cannot be agreed on") from None
    session.terms = terms
    refresh(bayeux, session)
    bayeux.ownership.note(session)


def refresh(bayeux: "Bayeux", session: Session) -> None:
    """Its time begins anew."""
    if session.deadline == float("inf"):
        bayeux.clock.lie(session)
    else:
        bayeux.clock.touch(session)


# Commands


class LiveRegistry:
    """What is there at the moment of one command."""

    def __init__(
        self, bayeux: "Bayeux", *, version: str, started_ms: int, is_available: bool = True
    ) -> None:
        self._bayeux = bayeux
        self._version = version
        self._started_ms = started_ms
        self.node_id = bayeux.node.name
        self.now_ms = bayeux.node.now_ms()
        self.is_available = is_available

    def node(self) -> "NodeView":
        # Its lists are made when they are asked for; nobody sets them, as the type allows.
        return cast("NodeView", _Node(self._bayeux, self._version, self._started_ms))

    def client(self, subject: str) -> "ClientView | None":
        sessions = [each for each in self._bayeux.sessions if each.subject == subject]
        return _Client(self._bayeux, sessions) if sessions else None

    def session(self, key: str) -> "SessionView | None":
        session = find(self._bayeux, key)
        return None if session is None else _Session(self._bayeux, session)


class _Node:
    """This server."""

    def __init__(self, bayeux: "Bayeux", version: str, started_ms: int) -> None:
        self._bayeux = bayeux
        self.id = bayeux.node.name
        self.version = version
        self.started_ms = started_ms
        self.published = bayeux.hub.counters.published
        self.acked = bayeux.hub.counters.acked

    @cached_property
    def subjects(self) -> Sequence[str]:
        return sorted({session.subject for session in self._bayeux.sessions})

    @cached_property
    def sessions(self) -> Sequence[str]:
        return sorted(session.key for session in self._bayeux.sessions)

    @cached_property
    def connected(self) -> Sequence[str]:
        return sorted(each.key for each in self._bayeux.sessions if is_connected(each))

    @cached_property
    def channels(self) -> Sequence[str]:
        return sorted({name for session in self._bayeux.sessions for name in session.subscriptions})

    @cached_property
    def subscriptions(self) -> int:
        return sum(len(session.subscriptions) for session in self._bayeux.sessions)


class _Client:
    """A subject. Nothing waits for it but in its sessions' queues."""

    waiting = 0

    def __init__(self, bayeux: "Bayeux", sessions: Sequence[Session]) -> None:
        self._bayeux = bayeux
        self._sessions = sessions
        self.sessions: Sequence[str] = sorted(session.key for session in sessions)
        self.created_ms = min(map(created_ms, sessions))
        self.acked = sum(session.acked for session in sessions)

    def end(self, who: str) -> None:
        for session in self._sessions:
            if session.state is not State.GONE:
                kill(self._bayeux, session, who)


class _Session:
    """One session; what is counted begins anew with the server."""

    alive_since_ms: int | None = None
    polling_since_ms: int | None = None

    def __init__(self, bayeux: "Bayeux", session: Session) -> None:
        self._bayeux = bayeux
        self._session = session
        terms, queue = session.terms, session.queue
        self.published = session.published
        self.acked = session.acked
        self.exceptions = session.exceptions
        self.last_exception = session.last_exception
        limit = limits(bayeux, session)
        self.name = session.name
        self.subject = session.subject
        self.number = int(session.key.rpartition("/")[2])
        self.state = contact(session).name
        self.is_active = hold_of(session) is None
        self.is_durable = session.is_durable
        self.takes_ptp = terms is not None and terms.ptp
        self.created_ms = created_ms(session)
        self.expires_ms = expires_ms(bayeux, session)
        self.timeout_ms = 0 if terms is None else terms.timeout
        self.entries = queue.count
        self.max_entries = limit.entries
        self.bytes = queue.size
        self.channels: Sequence[str] = sorted(session.subscriptions)
        self.subscribed = len(session.subscriptions)

    def activate(self, active: bool, who: str) -> None:
        if active:
            self._bayeux.resume(self._session)
        elif self.is_active:
            self._bayeux.hold_back(self._session, "dispatcherActive=false", who)

    def set_timeout(self, timeout_ms: int, who: str) -> None:
        set_timeout(self._bayeux, self._session, timeout_ms)

    def refresh(self) -> None:
        refresh(self._bayeux, self._session)

    def end(self, who: str) -> None:
        kill(self._bayeux, self._session, who)

    def clear(self, who: str) -> int:
        return self._bayeux.clear(self._session)

    def remove(self, count: int, who: str) -> int:
        return remove_first(self._bayeux, self._session, count)

    def peek(self, count: int) -> Sequence[Json]:
        shown: list[Json] = []
        size = 0
        for entry in first_entries(self._session.queue, count):
            size += len(entry.message.wire)
            if shown and size > _SHOWN:
                break
            shown.append(orjson.loads(entry.message.wire))
        return shown

    def take(self, count: int, who: str) -> Sequence[Json]:
        shown = self.peek(count)
        self.remove(len(shown), who)
        return shown

    def forget_exception(self) -> None:
        self._session.last_exception = ""


if TYPE_CHECKING:
    _registry: type[Registry] = LiveRegistry
