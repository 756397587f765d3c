"""Replays dead letters into the queues of living sessions."""

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from holdfast.bayeux.publish.shards_of import shard_of_session
from holdfast.bayeux.session import Session
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.delivery.basics.error_codes import DELIVERY_ENDED
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.notices import DEAD_LETTER, Notices
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.shared_queues.work import PREFIX
from holdfast.delivery.shared_queues.work_queues import WorkQueues

if TYPE_CHECKING:
    from holdfast.delivery.ports.homes import HomesPort

# The maximum age of the list of unnamed sessions, if sessions were added since.
_FRESH_S = 1.0

# The key of a session, or of a shared queue.
_KEY = re.compile(r".+/-?[0-9]+")

# A session name and the id of a message.
Sent = TypeVar("Sent", bound=tuple[str, int])


class Replaying:
    """The receivers of a replay.

    Args:
        clock: Returns monotonic seconds, as the server counts them.
        homes: Knows which shard has what, if there are others.
    """

    def __init__(
        self,
        hub: Hub[Session],
        sessions: Sessions,
        *,
        work: WorkQueues[Session],
        node: Node,
        notices: Notices,
        clock: Callable[[], float],
        homes: "HomesPort | None" = None,
    ) -> None:
        self._hub = hub
        self._sessions = sessions
        self._work = work
        self._node = node
        self._notices = notices
        self._clock = clock
        self._homes = homes
        # Client ids by session name. There may be a hundred thousand, with letters of sessions that
        # ended long before.
        self._unnamed: dict[str, str] = {}
        self._created = 0
        self._listed_at = float("-inf")

    def is_durable(self, key: str) -> bool | None:
        """Return whether the session is durable, or None if it does not exist."""
        session = self._find(key)
        return None if session is None else session.is_durable

    def is_away(self, key: str) -> bool:
        """Return whether messages for this session wait until its client returns."""
        session = self._find(key)
        return session is not None and session.is_absent and not session.has_shared_queue

    def shard_of(self, key: str) -> int | None:
        """Return the shard that has the session; None if it is here, or nowhere else."""
        homes = self._homes
        if homes is None or not _KEY.fullmatch(key):
            return None
        is_here = not key.startswith(PREFIX) and self._find(key) is not None
        return None if is_here else shard_of_session(key, homes)

    def deliver(self, key: str, message: Message, letter: int) -> None:
        """Queue the message of a dead letter. For a durable session, the store has it already."""
        session = self._find(key)
        if session is not None:
            self._hub.replay(session, message, letter)
        else:
            self._dead_letter(key, message, letter)

    def queued(self, sent: Sequence[Sent]) -> list[Sent]:
        """Return the messages that are still in their queues, waiting or in flight."""
        ids = {key: self._ids(key) for key in {key for key, _ in sent}}
        return [each for each in sent if each[1] in ids[each[0]]]

    def _ids(self, key: str) -> set[int]:
        session = self._find(key)
        return set() if session is None else set(session.queue.ids())

    def _dead_letter(self, key: str, message: Message, letter: int) -> None:
        """Dead-letter the message again, because the session ended during its replay."""
        text = "the session ended before the replay reached it"
        another = DeadLetter.of(
            message,
            id=f"{self._node.stamp():019d}",
            receiver=f"client/{key}",
            code=DELIVERY_ENDED.text,
            reason=DELIVERY_ENDED.explained(text),
            text=text,
        )
        self._notices.report(DEAD_LETTER, key, DELIVERY_ENDED.text)
        self._hub.ledger.dead_again(key, message, letter, another)

    def _find(self, key: str) -> Session | None:
        if key.startswith(PREFIX):
            return self._work.reopen(key.rpartition("/")[0])
        sessions = self._sessions
        session = sessions.named(key)
        if session is None:
            now = self._clock()
            is_old = now - self._listed_at >= _FRESH_S
            if is_old and sessions.created != self._created:
                self._created, self._listed_at = sessions.created, now
                self._unnamed = {each.key: each.client_id for each in sessions}
            session = sessions.of_client(self._unnamed.get(key))
        return None if session is None or session.is_gone else session
