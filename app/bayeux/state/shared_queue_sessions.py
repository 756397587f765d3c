"""The sessions without clients that have the shared queues."""

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.changed_session import ChangedSession
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.queues.charged_queue import ChargedQueue
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.waiting.shared_queues import SharedQueueOwner


class SharedQueueSessions(SharedQueueOwner[Session]):
    """Makes and ends these sessions, and makes others durable that take from their queues."""

    def __init__(self, hub: Hub[Session], sessions: Sessions, node: Node) -> None:
        self._hub = hub
        self._sessions = sessions
        self._node = node

    def open_queue(self, key: str, queue: ChargedQueue) -> Session:
        session = self._sessions.draft(queue)
        session.go_by(key)
        session.advance(SessionInput.LEAVE)
        session.is_durable = True
        self._hub.durables += 1
        return session

    def close_queue(self, receiver: Session) -> None:
        self._hub.message_expiry.forget(receiver)
        receiver.advance(SessionInput.END)
        receiver.is_durable = False
        self._hub.durables -= 1

    def make_durable(self, receiver: Session) -> None:
        receiver.is_durable = True
        self._hub.durables += 1
        self._hub.store.save(ChangedSession(receiver, self._node))
