"""Everything that administrative commands are about, as it is at the moment of one command."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

import orjson

from app.bayeux import interventions
from app.bayeux.codec import Json
from app.bayeux.life import State
from app.bayeux.sessions import Session
from app.bayeux.standing import (
    contact,
    created_ms,
    expires_ms,
    find,
    first_entries,
    hold_of,
    is_connected,
    limits,
    since_ms,
)
from app.delivery import dispatcher

if TYPE_CHECKING:
    from app.bayeux.commands import Registry
    from app.bayeux.server import Bayeux
    from app.bayeux.views import ClientView, NodeView, SessionView

# What one command shows of a queue, in bytes, if that is more than one entry.
_SHOWN = 1024**2


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
                interventions.kill(self._bayeux, session, who)


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
        self.takes_ptp = terms is not None and terms.ptp
        self.created_ms = created_ms(session)
        self.expires_ms = expires_ms(bayeux, session)
        self.alive_since_ms = since_ms(bayeux, session, dispatcher.State.ALIVE)
        self.polling_since_ms = since_ms(bayeux, session, dispatcher.State.POLLING)
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
        interventions.set_timeout(self._bayeux, self._session, timeout_ms)

    def refresh(self) -> None:
        interventions.refresh(self._bayeux, self._session)

    def end(self, who: str) -> None:
        interventions.kill(self._bayeux, self._session, who)

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
