"""Hands entries over to receivers, and returns them to the queue if they did not arrive."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from holdfast.delivery.basics import error_codes
from holdfast.delivery.basics.feature_records import record_of, with_record, without_record
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.trails import LOST_REPLY, NOT_WRITTEN, TAKEN_OVER
from holdfast.delivery.queues.features import QueueRecord
from holdfast.delivery.queues.queue import CallbackQueue
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.settling.delivery_parts import DeliveryParts
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.delivery.shared_queues.work import is_work

R = TypeVar("R", bound=Receiver)

_EXHAUSTED = "handed over max_attempts times without an answer"


class _LastAttempt(QueueRecord):
    """The record of a queue with an entry that is handed over alone for its last attempt.

    Nothing joins the entry while it is in flight.
    """

    __slots__ = ("entry",)

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def blocks(self, in_flight: Mapping[int, Entry], settling: SettledBy) -> bool:
        entry = self.entry
        if in_flight.get(entry.seq) is not entry:
            return False
        return entry.is_pending or settling is not SettledBy.BATCH


def last_attempt_of(queue: CallbackQueue) -> int:
    """Return the number of the entry that is in flight alone for its last attempt, or 0."""
    record = record_of(queue.records, _LastAttempt)
    return 0 if record is None else record.entry.seq


def await_last_attempt(queue: CallbackQueue, entry: Entry) -> None:
    """Let nothing join this entry while it is in flight."""
    queue.records = with_record(queue.records, _LastAttempt(entry))


class HandOvers(Generic[R]):
    """Hands entries over, and returns them to the queue if they did not arrive."""

    def __init__(self, parts: DeliveryParts[R], undelivered: Undelivered[R]) -> None:
        self._owner = parts.owner
        self._ledger = parts.ledger
        self._guard = parts.guard
        self._attempt_notes = parts.attempt_notes
        self._waiting_places = parts.waiting_places
        self._undelivered = undelivered

    def hand_over(self, receiver: R, limit: int, now: float) -> Batch:
        """Hand over the next batch of at most `limit` messages; no limit if negative.

        Unacked entries in flight count as lost with their reply and are sent again. Entries without
        attempts left are dead-lettered first.
        """
        queue = receiver.queue
        if queue.has_former:
            queue.recall()
        if queue.has_tried or queue.window:
            self.lost(receiver, now)
            if limit and not receiver.is_gone:
                # Nothing is retried after the last reply, so nothing is dead-lettered here.
                limit = self.limit_attempts(receiver, limit)
        batch = queue.next_batch(now, limit, self._guard.held)
        self._ledger.handed_over(receiver, batch, now)
        return batch

    def lost(self, receiver: R, now: float) -> None:
        """Record that unacked entries were lost with a reply, before they are sent again."""
        lost = receiver.queue.unanswered()
        if lost:
            self._attempt_notes.note(receiver, lost, now, LOST_REPLY)
            receiver.queue.narrow()

    def limit_attempts(self, receiver: R, limit: int) -> int:
        """Return how many entries may be handed over together. Dead-letters exhausted entries.

        A message that crashes its receiver would return forever, because no receiver survives to
        refuse it. Other messages in the same batch must not die with it. So the last attempt is
        made with nothing else in flight, and only an entry that failed alone becomes a dead letter.
        """
        queue = receiver.queue
        if queue.settling is SettledBy.WRITTEN:
            return limit
        if queue.is_blocked:
            return 0
        exhausted, limit = self._look_over(queue, queue.room(limit))
        if exhausted:
            queue.remove_entries(exhausted)
            self._give_up(receiver, exhausted)
            self._waiting_places.assign_to(receiver)
        return limit

    def _give_up(self, receiver: R, exhausted: list[Entry]) -> None:
        others = []
        for entry in exhausted:
            if is_work(entry.message):
                # The attempts of all receivers count.
                self._waiting_places.work.requeue_refused(
                    receiver, entry, error_codes.UPDATE_ERROR, _EXHAUSTED, is_final=True
                )
            else:
                others.append(entry)
        if others:
            self._undelivered.dead_letter(receiver, others, error_codes.UPDATE_ERROR, _EXHAUSTED)

    def _look_over(self, queue: CallbackQueue, limit: int) -> tuple[list[Entry], int]:
        """Return the entries without attempts left, and how many others may go together."""
        queue.records = without_record(queue.records, _LastAttempt)
        exhausted, count = [], 0
        for entry in queue.coming_again():
            left = self._attempts_left(entry)
            if left is None:
                count += entry.message.channel not in self._guard.held
            elif left <= 0 and entry.was_alone and not self._undelivered.is_congested:
                exhausted.append(entry)
            elif left <= 1 <= entry.attempts:
                if not count:
                    queue.records = with_record(queue.records, _LastAttempt(entry))
                return exhausted, count or 1
            else:
                count += 1
            if count == limit:
                break
        return exhausted, limit

    def _attempts_left(self, entry: Entry) -> int | None:
        """Return the attempts left, or None without a limit or while the channel is held back."""
        channel = entry.message.channel
        most = self._owner.max_attempts(channel)
        return None if most is None or channel in self._guard.held else most - entry.attempts

    # Returns to the queue

    def return_lost(self, receiver: R, now: float, *, is_whole: bool) -> None:
        """Return entries to the queue whose reply may be lost; the receiver does not ack."""
        lost = receiver.queue.return_lost(is_whole=is_whole)
        self._attempt_notes.note(receiver, lost, now, LOST_REPLY)
        self._ledger.returned(receiver, lost, lost)

    def return_unsent(self, receiver: R, batch: Batch, now: float) -> bool:
        """Return a batch to the queue whose reply left without it: it counts as lost.

        Returns whether any of it waits again.
        """
        lost = receiver.queue.return_unsent(batch)
        if receiver.queue.settling is not SettledBy.WRITTEN:
            self._attempt_notes.note(receiver, lost, now, LOST_REPLY)
        self._ledger.returned(receiver, lost, lost)
        return bool(lost)

    def return_unwritten(self, receiver: R, batch: Batch, now: float) -> bool:
        """Return an unwritten batch to the queue. Returns whether any of it waits again."""
        back = receiver.queue.return_unwritten(batch)
        if back and receiver.queue.settling is not SettledBy.WRITTEN:
            self._attempt_notes.note(receiver, back, now, NOT_WRITTEN)
        self._ledger.returned(receiver, back, back)
        return bool(back)

    def return_for_takeover(self, receiver: R, now: float) -> None:
        """Return the entries in flight to the queue for the session's next client."""
        queue = receiver.queue
        self._attempt_notes.note(receiver, queue.in_flight().values(), now, TAKEN_OVER)
        back = queue.return_for_takeover()
        self._ledger.returned(receiver, back, back)
