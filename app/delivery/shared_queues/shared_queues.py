"""Shared queues: messages wait here until sessions have room for them.

In names, records and the journal such a queue belongs to a session with number 0, which has no
client: `joe/0` is the queue of a subject, `work:/jobs/0` the queue of the channel `/jobs`.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from sys import maxsize
from typing import Final, Generic, TypeVar

from holdfast.delivery.basics.error_codes import CODES, ErrorCode
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.former_attempts import FormerAttempts, former_of, joined, tried
from holdfast.delivery.messages.message import Message, release
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.queues.charged import ChargedQueue
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.topics.counting import is_erased
from holdfast.delivery.topics.sender_quota import SenderQuota

R = TypeVar("R", bound=Receiver)

EXHAUSTED: Final = CODES["resource.exhaust"]
# The quota of messages that wait in shared queues.
ADDRESSED: Final = "addressed"
# How many messages leave a shared queue in one turn.
MOST: Final = 200


@dataclass(frozen=True, slots=True)
class SharedQueueLimits:
    """Limits of each shared queue of one kind, and how many queues there may be."""

    entries: int = maxsize
    bytes: int = maxsize
    queues: int = maxsize


class Undeliverable(Exception):
    """The destination does not accept the message."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.text)
        self.code = code


class OverQuota(Undeliverable):
    """The message exceeds a quota of its sender. `quota` names it."""

    def __init__(self, quota: str) -> None:
        super().__init__(EXHAUSTED)
        self.quota = quota


class SharedQueueOwner(ABC, Generic[R]):
    """The owner of the sessions, as seen by shared queues."""

    @abstractmethod
    def open_queue(self, key: str, queue: ChargedQueue) -> R:
        """Create the receiver that owns this shared queue."""

    @abstractmethod
    def close_queue(self, receiver: R) -> None:
        """End the receiver of an empty queue."""

    @abstractmethod
    def make_durable(self, receiver: R) -> None:
        """Store the session and, from now on, its queue."""


class SharedQueue(Generic[R]):
    """One shared queue, and the requeued messages that have not entered it yet."""

    __slots__ = ("oversized", "queue", "receiver", "requeued")

    def __init__(self, receiver: R, queue: ChargedQueue) -> None:
        self.receiver = receiver
        self.queue = queue
        # Messages requeued by ended sessions, with the sessions' keys.
        self.requeued: deque[tuple[str, Message]] = deque()
        # How many messages were too large for every session at the last check. Later messages
        # overtake them.
        self.oversized = 0

    @property
    def is_idle(self) -> bool:
        return not (self.queue.coming or self.requeued or self.queue.count)

    @property
    def is_first(self) -> bool:
        """Whether a new message would overtake no message that waits for room."""
        queue = self.queue
        return not (queue.coming or self.requeued) and queue.count <= self.oversized


class SharedQueues(ABC, Generic[R]):
    """The shared queues of one kind, by name: moves messages between them and sessions."""

    def __init__(
        self,
        hub: Hub[R],
        owner: SharedQueueOwner[R],
        limits: SharedQueueLimits,
        senders: SenderQuota,
    ) -> None:
        self._hub = hub
        self._ledger = hub.ledger
        self._settling = hub.settling
        self.owner = owner
        self._limits = limits
        self._queues: dict[str, SharedQueue[R]] = {}
        self.senders = senders

    @abstractmethod
    def _takers(self, name: str) -> Sequence[R]:
        """Return the sessions that take messages of the queue now."""

    @abstractmethod
    def _assign(self, known: SharedQueue[R], takers: Sequence[R]) -> list[Move]:
        """Move waiting messages, in order, to the queues of sessions that have room."""

    # Queues

    @property
    def are_settled(self) -> bool:
        """Whether no message is on its way into a queue or out of it."""
        return not any(each.requeued or each.queue.coming for each in self._queues.values())

    def queues(self) -> Sequence[R]:
        """The receivers that own the queues."""
        return [each.receiver for each in self._queues.values()]

    def queue(self, name: str) -> R | None:
        """Return the receiver that owns the queue of this name, if there is one."""
        found = self._queues.get(name)
        return None if found is None else found.receiver

    def queue_for(self, name: str, message: Message, senders: Sequence[str]) -> SharedQueue[R]:
        """Return the queue for a message, which is charged to the senders.

        Raises `Undeliverable` if the queue is full or a sender exceeds its quota. The caller must
        reserve room, and release it when the message is in the queue or will not come. A message
        that will not come must also be discharged.
        """
        size = len(message.wire)
        if not self.senders.may_add(senders, size):
            raise OverQuota(ADDRESSED)
        known = self._queues.get(name)
        if known is None:
            if len(self._queues) >= self._limits.queues:
                raise Undeliverable(EXHAUSTED)
            known = self._open(name)
        queue = known.queue
        lacking = None
        if queue.count + queue.coming >= self._limits.entries:
            lacking = Reason.OVERFLOW_ENTRIES
        elif queue.size + queue.coming_bytes + size > self._limits.bytes:
            lacking = Reason.OVERFLOW_BYTES
        if lacking is not None:
            self.close_if_idle(known.receiver)
            raise Undeliverable(CODES[lacking.value])
        queue.charge(message, senders)
        return known

    def make_durable(self, receivers: Sequence[R]) -> None:
        """Make these sessions durable before they get a message that is stored."""
        for each in receivers:
            if not each.is_durable:
                self.owner.make_durable(each)

    def _open(self, name: str) -> SharedQueue[R]:
        known = self._queues.get(name)
        if known is None:
            queue = ChargedQueue(self._hub.counters, self.senders)
            known = SharedQueue(self.owner.open_queue(f"{name}/0", queue), queue)
            self._queues[name] = known
        return known

    def close_if_idle(self, receiver: R) -> None:
        """Close a shared queue if it is empty. Other receivers stay."""
        known = self._queues.get(receiver.subject)
        if known is not None and known.receiver is receiver and known.is_idle:
            del self._queues[receiver.subject]
            self.owner.close_queue(receiver)

    def restore(self, name: str, messages: Sequence[Message]) -> None:
        """Restore the queue from the store."""
        receiver = self._open(name).receiver
        for message in messages:
            receiver.queue.insert(message)
        self._hub.counters.restored += len(messages)
        self._settling.watch_expiry(receiver)
        self._hub.make_ready(receiver)

    # Moving

    def assign_from(self, receiver: R) -> None:
        """Assign the messages of a shared queue to sessions that have room."""
        known = self._queues.get(receiver.subject)
        if known is None or known.receiver is not receiver:
            # The queue was closed, and perhaps opened again.
            return
        if known.requeued:
            self._insert_requeued(known)
            return
        takers = self._takers(receiver.subject)
        if any(each.queue.lacks_room(1) is None for each in takers):
            moves = self._assign(known, takers)
            if moves:
                receiver.queue.remove_messages([each.message for each in moves])
                self._ledger.moved(moves)
                if len(moves) == MOST:
                    self._hub.make_ready(receiver)
        self.close_if_idle(receiver)

    def _tried(self, entries: Sequence[Entry]) -> list[Message]:
        """Return the messages of entries that have left their queue, with their attempts."""
        self._hub.counters.redelivered += sum([each.is_in_flight for each in entries])
        return [each.for_others() for each in entries]

    def _requeue(self, name: str, key: str, messages: Sequence[Message]) -> None:
        """Requeue messages of a session to the queue of this name."""
        known = self._open(name)
        known.requeued += [(key, message) for message in messages]
        for message in messages:
            # Until the message enters the queue, this line counts as one.
            for record in message.records or ():
                record.entered_queues(1)
        self._insert_requeued(known)

    def _insert_requeued(self, known: SharedQueue[R]) -> None:
        """Add requeued messages to the queue, as many as one turn has time for."""
        receiver = known.receiver
        has = {message.id: message for message in receiver.queue.new}
        moves, taken = [], []
        for _ in range(min(len(known.requeued), MOST)):
            key, message = known.requeued.popleft()
            taken.append(message)
            if key == receiver.key:
                # The shared queue was closed before the store had the message.
                receiver.queue.insert(message)
            elif message.id in has:
                former = former_of(message)
                if former is not None:
                    message = joined_in(receiver, has[message.id], former)
                moves.append(Move(message, key, [receiver.key], 0, 1))
            else:
                moves.append(self._enter(message, key, (receiver,), ()))
            has[message.id] = message
        release(taken)
        if moves:
            self._ledger.moved(moves)
        erased = [has[each.id] for each in taken if is_erased(each)]
        if erased:
            receiver.queue.remove_messages(erased)
            self._settling.discard(receiver, erased, Reason.ERASED)
        self._entered(receiver, [has[each.id] for each in taken if not is_erased(each)])
        self._settling.watch_expiry(receiver)
        self._hub.make_ready(receiver)

    def _entered(self, receiver: R, messages: Sequence[Message]) -> None:
        """Take note that requeued messages are in the queue."""

    def _enter(self, message: Message, source: str, new: Sequence[R], old: Sequence[R]) -> Move:
        """Add the message to new queues. Returns the move.

        Queues that had it already keep their attempts.
        """
        if message.is_durable:
            self.make_durable(new)
        for record in message.records or ():
            record.shown_to(message, new)
        for each in new:
            each.queue.insert(message)
            self._hub.make_ready(each)
            if message.expires_ms:
                self._settling.watch_expiry(each)
        keys = [each.key for each in (*new, *old)]
        return Move(message, source, keys, copies=len(new), remembering=len(new))


def joined_in(receiver: Receiver, message: Message, former: FormerAttempts) -> Message:
    """Add the attempts of another copy to a message that waits. Returns the message."""
    earlier = former_of(message)
    copy = tried(message, former if earlier is None else joined(earlier, former))
    receiver.queue.exchange(message, copy)
    return copy
