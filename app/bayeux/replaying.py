"""Dead letters that become messages again, on their way into the queues of living sessions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from app.bayeux.sessions import Session
from app.delivery.dead_letters import DeadLetter
from app.delivery.error_codes import GIVEN_UP
from app.delivery.messages import Message
from app.delivery.notices import DEAD

if TYPE_CHECKING:
    from app.bayeux.server import Bayeux

# How old the list of sessions without names of their own may be, if others have come since.
_FRESH_S = 1.0

# Key of a session and id of a message.
Sent = TypeVar("Sent", bound=tuple[str, int])


class Replaying:
    """The receivers, for whoever drives a replay."""

    def __init__(self, bayeux: "Bayeux") -> None:
        self._bayeux = bayeux
        # Client ids by keys. There may be a hundred thousand of them, and letters of sessions that
        # are long gone.
        self._unnamed: dict[str, str] = {}
        self._created = 0
        self._listed_at = float("-inf")

    def is_durable(self, key: str) -> bool | None:
        """Whether the session is a durable one; None if there is none of this key."""
        session = self._find(key)
        return None if session is None else session.is_durable

    def deliver(self, key: str, message: Message, letter: int) -> None:
        """What was this dead letter goes into the session's queue; if it is durable, it stands in
        the store's already.
        """
        session = self._find(key)
        if session is not None:
            # The store gives it the place of its first publication, and so does the queue.
            message.is_late = session.queue.is_mixed = True
            self._bayeux.hub.replay(session, message, letter)
        else:
            self._bury(key, message, letter)

    def waiting(self, sent: Sequence[Sent]) -> list[Sent]:
        """Those that are in their queues still, waiting or handed over."""
        queued = {key: self._ids(key) for key in {key for key, _ in sent}}
        return [each for each in sent if each[1] in queued[each[0]]]

    def _ids(self, key: str) -> set[int]:
        session = self._find(key)
        if session is None:
            return set()
        queue = session.queue
        entries = [*queue.handed.values(), *queue.returned.values()]
        return {entry.message.id for entry in entries} | {each.id for each in queue.waiting}

    def _bury(self, key: str, message: Message, letter: int) -> None:
        """The session has ended while the store made the letter a message."""
        bayeux = self._bayeux
        another = DeadLetter.of(
            message,
            id=f"{bayeux.node.stamp():019d}",
            receiver=f"client/{key}",
            code=GIVEN_UP.text,
            reason=f"{GIVEN_UP.meaning}: the session ended before the replay reached it",
        )
        if bayeux.witness is not None:
            bayeux.witness.replayed(key, message, letter)
        bayeux.hub.counters.accepted += 1
        bayeux.hub.counters.dead += 1
        bayeux.notices.tell(DEAD, key, GIVEN_UP.text)
        bayeux.hub.keeper.bury([another], key if message.is_durable else None)

    def _find(self, key: str) -> Session | None:
        sessions = self._bayeux.sessions
        session = sessions.named(key)
        if session is None:
            is_old = self._bayeux.now - self._listed_at >= _FRESH_S
            if is_old and sessions.created != self._created:
                self._created, self._listed_at = sessions.created, self._bayeux.now
                self._unnamed = {each.key: each.client_id for each in sessions}
            session = sessions.of_client(self._unnamed.get(key))
        return None if session is None or session.is_gone else session
