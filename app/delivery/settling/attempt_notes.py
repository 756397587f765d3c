"""Records failed attempts, for the dead letter that a message may become."""

from collections.abc import Iterable

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.node import Node
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.trails import MAX_TEXT, Attempt, Trail, clipped, extended
from holdfast.delivery.queues.receivers import Receiver


class AttemptNotes:
    """Records attempts for entries that are in flight or were until now."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def note_failure(
        self,
        receiver: Receiver,
        entries: Iterable[Entry],
        *,
        now: float,
        code: ErrorCode,
        text: str,
    ) -> None:
        """Record that the last attempts to deliver these entries failed."""
        self.note(receiver, entries, now, code.text, code=code.text, text=text)

    def note(
        self,
        receiver: Receiver,
        entries: Iterable[Entry],
        now: float,
        outcome: str,
        *,
        code: str = "",
        text: str = "",
    ) -> None:
        """Record the result of the last attempts to deliver these. Equal trails are shared."""
        known: dict[tuple[int, int, float], tuple[Trail, Trail]] = {}
        text = clipped(text, MAX_TEXT)
        for entry in entries:
            before = entry.trail
            like = (id(before), entry.attempts, entry.handed_at)
            if like not in known:
                latency = round((now - entry.handed_at) * 1000) if entry.handed_at else None
                attempt = Attempt(
                    n=entry.attempts,
                    time=self._node.now_ms() - (latency or 0),
                    node=self._node.name,
                    transport=receiver.transport,
                    outcome=outcome,
                    latency=latency,
                    code=code,
                    text=text,
                )
                known[like] = (before, extended(before, attempt))
            entry.trail = known[like][1]
