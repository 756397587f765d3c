"""The queues of subjects and channels, shared by sessions: what waits there, discarding it."""

from collections.abc import Sequence

from holdfast.bayeux.session_status import first_entries
from holdfast.bayeux.sessions import Session
from holdfast.delivery.node import NS_PER_MS
from holdfast.delivery.shared_queues import SharedQueues
from holdfast.web.admin.changes import RunningServer
from holdfast.web.admin.session_views import ClearedQueue, Entry, entry
from holdfast.web.admin.views import first_names


class QueuesByName:
    """The shared queues of one kind in which anything waits, for operators.

    Args:
        kind: What the queues belong to; also the first word of changes in the audit.
        prefix: The beginning of the names, which operators do not see.
    """

    def __init__(
        self, server: RunningServer, queues: SharedQueues[Session], kind: str, prefix: str = ""
    ) -> None:
        self._server = server
        self._queues = queues
        self._kind = kind
        self._prefix = prefix

    def page(self, cursor: str | None, limit: int) -> tuple[Sequence[Session], str | None]:
        """Return the receivers that have the first queues by name, and the name to go on from."""
        waiting = {self.name_of(each): each for each in self._queues.queues() if each.queue.count}
        found, after = first_names(waiting, cursor, limit)
        return [waiting[name] for name in found], after

    def name_of(self, receiver: Session) -> str:
        """Return the name by which operators know the queue."""
        return receiver.subject.removeprefix(self._prefix)

    def first(self, name: str, limit: int) -> list[Entry]:
        """Return the first messages of a queue."""
        receiver = self._find(name)
        if receiver is None:
            return []
        state = self._server.state
        return [entry(state, receiver, each) for each in first_entries(receiver.queue, limit)]

    async def clear(self, name: str, who: str) -> ClearedQueue:
        """Discard what waits in a queue."""
        async with self._server.change(who, f"{self._kind}.clear", name) as detail:
            receiver = self._find(name)
            discarded = 0 if receiver is None else self._server.life.clear(receiver)
            detail["discarded"] = discarded
        return ClearedQueue(discarded)

    def _find(self, name: str) -> Session | None:
        """Return who has the queue; it need not exist while nothing waits."""
        return self._queues.queue(self._prefix + name)


def oldest_ms(receiver: Session) -> int:
    """Return when the oldest message that waits was published."""
    return min(message.id for message in receiver.queue.waiting) // NS_PER_MS
