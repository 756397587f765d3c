"""Delayed messages: they wait in a separate shared queue until they are due.

A delayed message is a record of a publish, a `DelayedPublish`. The queue uses only the time when it
is due. The record leaves the queue when the publish has been carried out, or is cancelled.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeVar

from holdfast.delivery.basics.steps import ARRIVALS, Reason, StepKind
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import DISCARDED, OUTCOMES, Move
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.shared_queues.delayed_publish import publish_in
from holdfast.delivery.shared_queues.places import WaitingPlaces
from holdfast.delivery.shared_queues.shared_queues import (
    SharedQueue,
    SharedQueueLimits,
    SharedQueueOwner,
    SharedQueues,
)
from holdfast.delivery.topics.sender_quota import SenderQuota

R = TypeVar("R", bound=Receiver)

log = logging.getLogger(__name__)

# The name of the queue. No subject and no work queue has it.
NAME: Final = "delay:"
# Its name in the store and the journal.
KEY: Final = f"{NAME}/0"


class Delayed(NamedTuple):
    """A message that waits. The order of these is the order in which they are published."""

    due_ms: int
    id: int
    message: Message


class _NewMessage:
    """A message on its way into the queue."""

    __slots__ = ("delayed", "done", "is_unknown", "message")

    def __init__(self, delayed: Delayed, done: Callable[[PersistOutcome], None] | None) -> None:
        self.delayed = delayed
        self.message = delayed.message
        self.done = done
        # Whether the store did not answer in time. Its answer may still come.
        self.is_unknown = False


class Delays(SharedQueues[R]):
    """The queue of delayed messages."""

    def __init__(
        self,
        hub: Hub[R],
        owner: SharedQueueOwner[R],
        limits: SharedQueueLimits,
        senders: SenderQuota,
    ) -> None:
        super().__init__(hub, owner, limits, senders)
        # The messages that wait, by id. Those that are being published are in the queue only.
        self._waiting: dict[int, Delayed] = {}
        # The same by due time. Cancelled messages stay until they would be due.
        self._by_due: list[Delayed] = []
        # Messages that have been published, and leave the queue together.
        self._published: list[Message] = []

    def _takers(self, name: str) -> Sequence[R]:
        return ()

    def _assign(self, known: SharedQueue[R], takers: Sequence[R]) -> list[Move]:
        # No session takes these messages: `take_due` does.
        return []

    # Into the queue

    def accept(
        self,
        message: Message,
        *,
        due_ms: int,
        senders: Sequence[str],
        done: Callable[[PersistOutcome], None] | None,
    ) -> PersistOutcome | None:
        """Add a message, which is charged to the senders. Raises `Undeliverable`.

        Returns the outcome, or None if `done` will be called with it.
        """
        shared = self.queue_for(NAME, message, senders)
        shared.queue.reserve(len(message.wire))
        coming = _NewMessage(Delayed(due_ms, message.id, message), done)
        # Only the store recognises repeats, so it is asked about messages that it does not keep.
        if not message.is_durable and publish_key_of(message) is None:
            self._arrive(shared, coming, PersistOutcome.KEPT)
            return PersistOutcome.KEPT
        store = self._hub.store
        if not store.is_available:
            self._arrive(shared, coming, PersistOutcome.REFUSED)
            return PersistOutcome.REFUSED
        keys = (shared.receiver.key,) if message.is_durable else ()
        store.keep(message, keys, partial(self._answered, shared, coming))
        return None

    def _answered(
        self, shared: SharedQueue[R], coming: _NewMessage, outcome: PersistOutcome
    ) -> None:
        if coming.is_unknown:
            # The publisher was told that the outcome is unknown, and the room was released.
            if outcome is PersistOutcome.KEPT:
                self._enter_queue(self._open(NAME), coming.delayed)
            return
        coming.is_unknown = outcome is PersistOutcome.UNKNOWN
        self._arrive(shared, coming, outcome)
        if coming.done is not None:
            coming.done(outcome)

    def _arrive(self, shared: SharedQueue[R], coming: _NewMessage, outcome: PersistOutcome) -> None:
        """Release the reserved room: the message enters the queue, or does not come for now."""
        shared.queue.release(len(coming.message.wire))
        if outcome is PersistOutcome.KEPT:
            self._enter_queue(shared, coming.delayed)
        else:
            shared.queue.discharge(coming.message)
            self.close_if_idle(shared.receiver)

    def _enter_queue(self, shared: SharedQueue[R], delayed: Delayed) -> None:
        shared.queue.insert(delayed.message)
        self._ledger.arrived(ARRIVALS[KEY], shared.receiver, delayed.message)
        self.keep_waiting(delayed)

    def keep_waiting(self, delayed: Delayed) -> None:
        """Let a message wait, again if it could not be published."""
        self._waiting[delayed.id] = delayed
        heappush(self._by_due, delayed)

    def restore(self, name: str, messages: Sequence[Message]) -> None:
        """Restore the queue from the store, with the times when messages are due."""
        super().restore(name, messages)
        for message in messages:
            try:
                due_ms = publish_in(message).due_ms
            except (ValueError, KeyError, TypeError) as error:
                log.error("the delayed message %d is unreadable and stays: %r", message.id, error)
            else:
                self.keep_waiting(Delayed(due_ms, message.id, message))

    # Out of the queue

    @property
    def are_settled(self) -> bool:
        """Whether no message is being published, or on its way into the queue."""
        return super().are_settled and not self._published

    def waiting(self) -> Sequence[Delayed]:
        """Return the messages that wait, in the order in which they will be published."""
        return sorted(self._waiting.values())

    def take_due(self, now_ms: int) -> Delayed | None:
        """Take the first message that is due. Call `published`, `keep_waiting` or `remove` next."""
        by_due = self._by_due
        while by_due and by_due[0].due_ms <= now_ms:
            first = heappop(by_due)
            if self._waiting.pop(first.id, None) is not None:
                return first
        return None

    def published(self, message: Message) -> None:
        """Record that the message has been published. `settle` then removes it."""
        self._published.append(message)

    def settle(self) -> None:
        """Remove the messages that have been published."""
        gone, self._published = self._published, []
        if gone:
            receiver = self.remove(gone)
            self._ledger.settled(receiver, gone, OUTCOMES[StepKind.DUE])

    def cancel(self, id: int) -> Delayed | None:
        """Discard the message with this id. Returns it, or None if it does not wait."""
        found = self._waiting.pop(id, None)
        if found is not None:
            if len(self._by_due) > 2 * len(self._waiting):
                self._by_due = sorted(self._waiting.values())
            receiver = self.remove((found.message,))
            self._ledger.settled(receiver, (found.message,), DISCARDED[Reason.CANCELLED])
        return found

    def remove(self, messages: Sequence[Message]) -> R:
        """Remove messages from the queue. The caller records what becomes of them."""
        receiver = self._open(NAME).receiver
        receiver.queue.remove_messages(messages)
        self.close_if_idle(receiver)
        return receiver


def delays_of(places: WaitingPlaces[R]) -> Delays[R]:
    """Return the queue of delayed messages."""
    found = places.of(NAME)
    if not isinstance(found, Delays):
        raise TypeError("this server has no delayed messages")
    return found
