"""Everything that administrative commands are about, as it is at the moment of one command."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, cast

import orjson

from app.bayeux import interventions
from app.bayeux.codec import Json
from app.bayeux.sessions import Session
from app.bayeux.standing import (
    contact,
    created_ms,
    expires_ms,
    find,
    first_entries,
    hold_of,
    is_connected,
    is_stalled,
    limits,
    since_ms,
)
from app.delivery import dispatcher
from app.delivery.entries import Settling
from app.delivery.json_text import to_json

if TYPE_CHECKING:
    from app.bayeux.commands import Registry
    from app.bayeux.server import Bayeux
    from app.bayeux.views import ClientView, NodeView, SessionView

# What one command shows of a queue, in bytes, if that is more than one entry.
_SHOWN = 1024**2
# xmlBlaster's run levels; the others are before and after there is anybody to ask.
_RUNNING, _STOPPING = 9, 6


@dataclass(frozen=True, slots=True)
class Process:
    """What the server's process says of itself; it began at so many ms since 1970."""

    version: str
    started_ms: int
    hostname: str = ""
    port: int | None = None


class LiveRegistry:
    """What is there at the moment of one command."""

    def __init__(self, bayeux: "Bayeux", process: Process, *, is_available: bool = True) -> None:
        self._bayeux = bayeux
        self._process = process
        self.node_id = bayeux.node.name
        self.now_ms = bayeux.node.now_ms()
        self.is_available = is_available

    def node(self) -> "NodeView":
        # Its lists are made when they are asked for; nobody sets them, as the type allows.
        return cast("NodeView", _Node(self._bayeux, self._process))

    def client(self, subject: str) -> "ClientView | None":
        sessions = [each for each in self._bayeux.sessions if each.subject == subject]
        return _Client(self._bayeux, sessions) if sessions else None

    def session(self, key: str) -> "SessionView | None":
        session = find(self._bayeux, key)
        return None if session is None else _Session(self._bayeux, session)


class _Node:
    """This server."""

    def __init__(self, bayeux: "Bayeux", process: Process) -> None:
        self._bayeux = bayeux
        self.id = bayeux.node.name
        self.version = process.version
        self.hostname = process.hostname
        self.port = process.port
        self.started_ms = process.started_ms
        self.runlevel = _STOPPING if bayeux.is_stopping else _RUNNING
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
    def subscriptions(self) -> Sequence[str]:
        return sorted(chain.from_iterable(map(_subscriptions, self._bayeux.sessions)))

    @cached_property
    def subscribed(self) -> int:
        return sum(len(session.subscriptions) for session in self._bayeux.sessions)


def _subscriptions(session: Session) -> list[str]:
    """Who has it, and to what: together they tell a subscription from all others."""
    return [f"{session.name} {channel}" for channel in sorted(session.subscriptions)]


class _Client:
    """A subject. Nothing waits for it but in its sessions' queues."""

    waiting = 0

    def __init__(self, bayeux: "Bayeux", sessions: Sequence[Session]) -> None:
        self._bayeux = bayeux
        self._sessions = sessions
        self.sessions: Sequence[str] = sorted(session.key for session in sessions)
        self.max_sessions = bayeux.options.max_sessions_per_subject
        self.created_ms = min(map(created_ms, sessions))
        self.acked = sum(session.acked for session in sessions)

    def end(self, who: str) -> None:
        if self._sessions:
            interventions.kill_all(self._bayeux, self._sessions, who)


def _agreed(bayeux: "Bayeux", session: Session) -> str:
    """As `ext` of a handshake; what others read has no secrets in it."""
    acks = session.queue.settling is Settling.BATCH
    return to_json({"ack": acks, "delivery": bayeux.ownership.policy(session) or False}).decode()


class _Session:
    """One session; what is counted begins anew with the server."""

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
        self.is_stalled = is_stalled(session)
        self.takes_ptp = terms is not None and terms.ptp
        self.created_ms = created_ms(session)
        self.expires_ms = expires_ms(bayeux, session)
        self.alive_since_ms = since_ms(bayeux, session, dispatcher.State.ALIVE)
        self.polling_since_ms = since_ms(bayeux, session, dispatcher.State.POLLING)
        self.timeout_ms = 0 if terms is None else terms.timeout
        most = bayeux.options.max_sessions_per_subject
        self.max_sessions = most if terms is None else min(most, terms.max_sessions)
        self.qos = _agreed(bayeux, session)
        self.entries = queue.count
        self.max_entries = limit.entries
        self.bytes = queue.size
        self.channels: Sequence[str] = sorted(session.subscriptions)
        self.subscriptions: Sequence[str] = _subscriptions(session)
        self.unsubscribed = session.unsubscribed
        self.subscribed = len(session.subscriptions) + session.unsubscribed

    def activate(self, active: bool, who: str) -> None:
        if active:
            self._bayeux.resume(self._session)
        elif self.is_active:
            self._bayeux.hold_back(self._session, "dispatcherActive=false", who)

    def set_timeout(self, timeout_ms: int, who: str) -> None:
        interventions.set_timeout(self._bayeux, self._session, timeout_ms)

    def refresh(self) -> None:
        interventions.refresh(self._bayeux, self._session)

    def end(self, who: str) -> None:
        interventions.kill(self._bayeux, self._session, who)

    def send_away(self) -> None:
        interventions.send_away(self._bayeux, self._session)

    def subscribe(self, channel: str) -> None:
        interventions.subscribe(self._bayeux, self._session, channel)

    def unsubscribe(self, channel: str) -> None:
        interventions.unsubscribe(self._bayeux, self._session, channel)

    def clear(self, who: str) -> int:
        return self._bayeux.clear(self._session)

    def remove(self, count: int, who: str) -> int:
        return interventions.remove_first(self._bayeux, self._session, count)

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
