"""Point-to-point: the sessions of each subject, and the queues of subjects.

A subject's queue contains messages to the subject that no session has yet. In names, records and
the journal it is the queue of the session with number 0, which has no client.
"""

from collections.abc import Sequence
from typing import Final, TypeVar

from holdfast.delivery.basics.error_codes import CODES
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.queues.receivers import NOBODY, Receiver
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.shared_queues.shared_queues import (
    MOST,
    SharedQueue,
    SharedQueueLimits,
    SharedQueueOwner,
    SharedQueues,
    Undeliverable,
)
from holdfast.delivery.shared_queues.unclaimed_names import is_unclaimed
from holdfast.delivery.topics.sender_quota import SenderQuota

R = TypeVar("R", bound=Receiver)

UNKNOWN: Final = CODES["user.ptp.unknownDestination"]
DENIED: Final = CODES["user.ptp.denied"]


class Subjects(SharedQueues[R]):
    """Finds the receivers of addressed messages. Every session of a subject gets a copy."""

    def __init__(
        self,
        hub: Hub[R],
        owner: SharedQueueOwner[R],
        limits: SharedQueueLimits,
        senders: SenderQuota,
    ) -> None:
        super().__init__(hub, owner, limits, senders)
        # By subject, its sessions by key.
        self._sessions: dict[str, dict[str, R]] = {}

    # Sessions

    def join(self, receiver: R) -> None:
        """Add the session to its subject, whose waiting messages are assigned to it.

        Sessions without a subject are found by their keys too: receivers of a message know its
        sender.
        """
        self._sessions.setdefault(receiver.subject, {})[receiver.key] = receiver
        self.assign_to(receiver)

    def leave(self, receiver: R) -> None:
        """Remove an ended session."""
        siblings = self._sessions.get(receiver.subject)
        if siblings is None or siblings.get(receiver.key) is not receiver:
            return
        del siblings[receiver.key]
        if not siblings:
            del self._sessions[receiver.subject]
        # A message that waited for room in it may be too large for the others. Then later ones
        # pass.
        self.assign_to(receiver)

    def assign_to(self, receiver: R) -> None:
        """Assign the messages that wait for the receiver's subject when the turn ends."""
        if self._queues and receiver.subject in self._queues:
            self._hub.make_ready(self._queues[receiver.subject].receiver)

    def _claimed(self, name: str) -> list[R]:
        """Return the subject's sessions, except unclaimed ones, which take none of its messages."""
        siblings = self._sessions.get(name, {}).values()
        return [each for each in siblings if not is_unclaimed(each)]

    def _takers(self, name: str) -> list[R]:
        return [each for each in self._claimed(name) if each.takes_addressed]

    # Addressing

    def session(self, subject: str, key: str, size: int) -> R:
        """Return the session that a message is addressed to. Raises `Undeliverable`."""
        found = self._sessions.get(subject, {}).get(key)
        if found is None or not found.takes_messages:
            raise Undeliverable(UNKNOWN)
        if not found.takes_addressed:
            raise Undeliverable(DENIED)
        lacking = found.queue.lacks_room(size)
        if lacking is not None:
            raise Undeliverable(CODES[lacking.value])
        return found

    def takers(self, subject: str, size: int) -> Sequence[R]:
        """Return the sessions that get a message to the subject at once.

        There are none while an earlier message waits for room or if no session has room. Raises
        `Undeliverable` if no session may get it.
        """
        takers = self._takers(subject)
        if not takers:
            has_sessions = any(each.takes_messages for each in self._claimed(subject))
            raise Undeliverable(DENIED if has_sessions else UNKNOWN)
        waiting = self._queues.get(subject)
        if waiting is not None and not waiting.is_first:
            return ()
        return takers if any(each.queue.lacks_room(size) is None for each in takers) else ()

    # Moving

    def _assign(self, known: SharedQueue[R], takers: Sequence[R]) -> list[Move]:
        """Move each message to all queues that have room.

        A message that waits for room makes later ones wait, unless it is too large for all queues.
        """
        source = known.receiver
        had = [set(each.queue.ids()) for each in takers]
        moves: list[Move] = []
        oversized = 0
        for message in source.queue.new:
            if len(moves) == MOST:
                break
            size = len(message.wire)
            old = [each for each, ids in zip(takers, had, strict=True) if message.id in ids]
            new = [
                each
                for each, ids in zip(takers, had, strict=True)
                if message.id not in ids and each.queue.lacks_room(size) is None
            ]
            if old or new:
                moves.append(self._enter(message, source.key, new, old))
            elif any(each.queue.fits(size) for each in takers):
                break
            else:
                oversized += 1
        known.oversized = oversized
        return moves

    def requeue_all(self, receiver: R) -> None:
        """Requeue an ending session's messages to its subject."""
        subject, queue = receiver.subject, receiver.queue
        if subject == NOBODY or not queue.count or receiver.has_shared_queue:
            return
        left = [entry for entry in queue.entries() if entry.message.is_for(subject)]
        if left:
            queue.remove_messages([entry.message for entry in left])
            self.requeue(receiver, left)

    def requeue(self, receiver: R, entries: Sequence[Entry]) -> None:
        """Requeue entries for the subject that have left the queue of a session."""
        self._requeue(receiver.subject, receiver.key, self._tried(entries))

    def requeue_late(self, receiver: R, message: Message) -> bool:
        """Requeue a message for the subject that arrived after the session's end."""
        if receiver.subject == NOBODY or not message.is_for(receiver.subject):
            return False
        self._requeue(receiver.subject, receiver.key, [message])
        return True
