"""All sessions of this server: by id, by name, and with the held connects of each browser."""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from holdfast.bayeux.limits.spread import is_spread
from holdfast.bayeux.limits.usage import Usages
from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.state.changed_session import ChangedSession
from holdfast.bayeux.state.former_client import remember_former_client
from holdfast.bayeux.state.named_sessions import NamedSessions
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.timers import Timers
from holdfast.delivery.queues.charged import ChargedQueue
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.queues.receivers import NOBODY
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.shared_queues.shared_queues import SharedQueueOwner

# Among several shards, this many numbers follow each other before the same shard gives the next
# one; a number says which shard gave it.
SHARDS: Final = 1000
# How many replaced client ids are remembered.
_REPLACED = 10_000


class Sessions:
    """All sessions, and the number of held connects of each browser."""

    def __init__(self, client_ids: ClientIds, *, first: int, shard: int | None = None) -> None:
        self._client_ids = client_ids
        self._by_id: dict[str, Session] = {}
        self.names = NamedSessions()
        self.usages = Usages(lambda subject: client_ids.owns(client_ids.bucket_of(subject)))
        # The browsers of clients whose sessions other clients have taken over.
        self._replaced: OrderedDict[str, Sequence[str]] = OrderedDict()
        # Held connects by browser.
        self.held_by_browser: dict[str, int] = {}
        # Numbers name sessions in data that outlives this process, so they are never reused.
        # Each shard gives only numbers that no other one gives.
        self._step = 1 if shard is None else SHARDS
        self._drafted = first if shard is None else first * SHARDS + shard
        self.created = 0
        self.timers: Timers[Session] = Timers()
        self.ended: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Session]:
        """All sessions, including those that are away."""
        return iter(self._by_id.values())

    def draft(self, queue: CallbackQueue, client_id: str | None = None) -> Session:
        """Create a session, with a new id by default. It does not exist until it is added."""
        self._drafted += self._step
        return Session(client_id or self._client_ids.new(), self._drafted, queue)

    def bucket_of(self, session: Session) -> int:
        """Return the bucket of the session: its subject's or, without one, its id's."""
        if session.subject != NOBODY and not is_spread(session):
            return self._client_ids.bucket_of(session.subject)
        return self._client_ids.bucket_in(session.client_id)

    def add(self, session: Session) -> None:
        """Register a session, whose id no other has."""
        assert session.client_id not in self._by_id
        self._by_id[session.client_id] = session
        self.usages.add(session)
        self.created += 1

    def named(self, key: str) -> Session | None:
        """Return the session with a name that its client chose."""
        return self.names.get(key)

    def of_subject(self, subject: str) -> Sequence[Session]:
        """Return all sessions of the subject, named or not."""
        return self.usages.of_subject(subject)

    def of_client(self, client_id: str | None) -> Session | None:
        """Return the session with a client id, from any browser. Not for ids from clients."""
        return None if client_id is None else self._by_id.get(client_id)

    def name(self, session: Session, key: str) -> None:
        """Register the session under this name, by which it can be taken over."""
        session.go_by(key)
        self.names.add(session)

    def rename(self, session: Session, client_id: str) -> None:
        """Give the session a new client id. The old client is advised not to return."""
        del self._by_id[session.client_id]
        browsers = session.identity.browsers
        remember_former_client(session, (session.client_id, *browsers))
        self.know_replaced({session.client_id: browsers})
        session.client_id = client_id
        self._by_id[client_id] = session

    def replaced_of(self, client_id: object) -> Sequence[str] | None:
        """Return the browsers of a client whose session another client has taken over.

        Returns None for all other ids.
        """
        return self._replaced.get(client_id) if type(client_id) is str else None

    def replaced(self) -> Mapping[str, Sequence[str]]:
        """The browsers of all such clients by id, oldest first."""
        return self._replaced

    def know_replaced(self, browsers: Mapping[str, Sequence[str]]) -> None:
        """Remember such clients, perhaps of an earlier process."""
        self._replaced |= browsers
        while len(self._replaced) > _REPLACED:
            self._replaced.popitem(last=False)

    def remove(self, session: Session, how: SessionInput) -> None:
        """Remove a session that has ended."""
        del self._by_id[session.client_id]
        self.names.remove(session)
        self.usages.remove(session)
        self.timers.drop(session)
        self.ended[how.value] += 1

    def hold_connect(self, session: Session, exchange: Exchange) -> None:
        """Record that the session holds this connect, and count it for its browser."""
        session.held_connect = exchange
        browser = exchange.browser
        if browser is not None and exchange.pipe is None:
            held = self.held_by_browser
            held[browser] = held.get(browser, 0) + 1

    def release_connect(self, session: Session, exchange: Exchange) -> None:
        """Record that the session no longer holds this connect."""
        session.held_connect = None
        browser = exchange.browser
        if browser is not None and exchange.pipe is None:
            held = self.held_by_browser.pop(browser) - 1
            if held:
                self.held_by_browser[browser] = held


class SharedQueueSessions(SharedQueueOwner[Session]):
    """Creates and ends these sessions, and makes sessions durable that take messages from them."""

    def __init__(self, hub: Hub[Session], sessions: Sessions, node: Node) -> None:
        self._hub = hub
        self._sessions = sessions
        self._node = node

    def open_queue(self, key: str, queue: ChargedQueue) -> Session:
        session = self._sessions.draft(queue)
        session.go_by(key)
        session.advance(SessionInput.LEAVE)
        self._hub.make_durable(session)
        return session

    def close_queue(self, receiver: Session) -> None:
        self._hub.settling.forget_expiry(receiver)
        receiver.advance(SessionInput.END)
        receiver.is_durable = False
        self._hub.durables -= 1

    def make_durable(self, receiver: Session) -> None:
        self._hub.make_durable(receiver)
        self._hub.store.save(ChangedSession(receiver, self._node))
