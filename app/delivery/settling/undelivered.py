"""Settles entries that leave a queue undelivered: dead, expired or discarded.

`failures` decides by the table in `reactions` whether a failed entry goes this way at all.
"""

from collections.abc import Sequence
from functools import partial
from typing import Generic, TypeVar

from holdfast.delivery.basics import error_codes, notices
from holdfast.delivery.basics.error_codes import CODES, ErrorCode
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.letters.exempt import leaves_no_letter
from holdfast.delivery.letters.unwritten import DeadEntry, Death
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import DISCARDED, EXPIRED
from holdfast.delivery.messages.trails import RETURNED
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.settling.delivery_parts import DeliveryParts
from holdfast.delivery.shared_queues.work import is_work

R = TypeVar("R", bound=Receiver)

_MOST_UNSTORED = 4 * 1024 * 1024


class Undelivered(Generic[R]):
    """Settles entries that leave a queue undelivered."""

    def __init__(self, parts: DeliveryParts[R]) -> None:
        self._owner = parts.owner
        self._store = parts.store
        self._ledger = parts.ledger
        self._node = parts.node
        self._attempt_notes = parts.attempt_notes
        self._notices = parts.notices
        self.waiting_places = parts.waiting_places
        # The size of the letters that are not stored, or not announced to listeners, yet.
        self._unstored_bytes = 0

    def dead_letter_all(self, receiver: R, code: ErrorCode, text: str, now: float) -> None:
        """Dead-letter the queue, except messages that have expired or can be requeued."""
        queue = receiver.queue
        self.expire_waiting(receiver)
        self._attempt_notes.note_failure(
            receiver, queue.in_flight().values(), now=now, code=code, text=text
        )
        self.waiting_places.requeue_all(receiver)
        entries = queue.entries()
        queue.clear()
        self.dead_letter(receiver, entries, code, text, is_about_message=False)

    def requeue_all(self, receiver: R, now: float) -> None:
        """Requeue an ending session's addressed messages and work."""
        self._attempt_notes.note(receiver, receiver.queue.in_flight().values(), now, RETURNED)
        self.waiting_places.requeue_all(receiver)

    def dead_letter(
        self,
        receiver: R,
        entries: Sequence[Entry],
        code: ErrorCode,
        text: str,
        *,
        is_about_message: bool = True,
    ) -> None:
        """Dead-letter entries that have left their queue; discard those without dead letters.

        `is_about_message` says whether the code is about these messages, not about the receiver.
        """
        messages = [entry.message for entry in entries]
        if is_about_message:
            _tell_refused(receiver, messages, code.text, text)
        else:
            _tell_unanswered(receiver, messages)
        if self._store.is_full and entries:
            # The store's buffer limits dead letters too. Publishers were asked to retry.
            self._ledger.lost(receiver, entries)
            self._notices.report(notices.LOST, receiver.key, code.text, len(entries))
            return
        room = self._store.letter_quota
        death = Death(receiver.name, code, text, self._owner.policy(receiver))
        channels = {entry.message.channel for entry in entries}
        wanted = {name for name in channels if self._owner.wants_letters(receiver, name)}
        dead, others, unwanted = [], [], []
        for entry in entries:
            message = entry.message
            if leaves_no_letter(message) or message.channel not in wanted:
                others.append(message)
            elif not room.take(message.channel, receiver.subject, len(message.wire)):
                unwanted.append(message)
            else:
                dead.append(DeadEntry(entry, death, self._node.stamp()))
        if dead:
            self._notices.report(notices.DEAD_LETTER, receiver.key, code.text, len(dead))
            size = sum([each.size for each in dead])
            self._unstored_bytes += size
            stored = partial(self._owner.announce, dead, partial(self._announced, size))
            self._ledger.dead(receiver, entries, dead, stored)
        if others:
            self.discard(receiver, others, Reason.NO_LETTER)
        if unwanted:
            self._notices.report(notices.NOT_KEPT, receiver.key, code.text, len(unwanted))
            self.discard(receiver, unwanted, Reason.LETTERS_FULL)

    def _announced(self, size: int) -> None:
        self._unstored_bytes -= size

    @property
    def is_congested(self) -> bool:
        """Whether too many letters wait to be stored. If so, postpone work that creates more."""
        return self._unstored_bytes > _MOST_UNSTORED or self._store.is_full

    def turned_away(self, receivers: Sequence[R], message: Message, reason: Reason) -> None:
        """Settle a message that queues refused: they were full or their receivers had ended."""
        has_ended = reason is Reason.SESSION_ENDED
        if has_ended and (message.addressed or is_work(message)):
            requeues = self.waiting_places.requeue_late
            receivers = [each for each in receivers if not requeues(each, message)]
        code = error_codes.DELIVERY_ENDED if has_ended else CODES[reason.value]
        outcome = DISCARDED[reason]
        crowd: list[Receiver] = []
        for receiver in receivers:
            may_die = receiver.leaves_letters or not has_ended
            # A flood must not fill the store's buffer: beyond a bound, messages are only counted.
            if (
                may_die
                and not self.is_congested
                and self._owner.wants_letters(receiver, message.channel)
            ):
                self.dead_letter(
                    receiver, [Entry(message)], code, "", is_about_message=not has_ended
                )
            else:
                if has_ended:
                    _tell_unanswered(receiver, (message,))
                else:
                    _tell_refused(receiver, (message,), code.text)
                self._ledger.turned_away(receiver, message, outcome, crowd)
        self._ledger.crowd_turned_away(crowd, message, outcome)

    def discard(self, receiver: R, messages: Sequence[Message], reason: Reason) -> None:
        """Discard messages that have left the queue, without dead letters."""
        _tell_unanswered(receiver, messages)
        self._ledger.settled(receiver, messages, DISCARDED[reason])

    def clear_out(self, receiver: R, messages: Sequence[Message], reason: Reason) -> None:
        """Discard messages removed from a queue, and use the room that they leave."""
        self.discard(receiver, messages, reason)
        self.waiting_places.made_room(receiver)

    def discard_rest(self, receiver: R, reason: Reason) -> None:
        """Discard the queue of an ended receiver. The store has removed the session already."""
        if receiver.queue.count:
            messages = receiver.queue.messages()
            receiver.queue.clear()
            self._ledger.left(receiver, messages, DISCARDED[reason])

    def discard_in_flight(self, receiver: R) -> int:
        """Discard the in-flight entries of an ending session; they are not sent again.

        Returns how many there were.
        """
        handed = receiver.queue.remove(list(receiver.queue.in_flight()))
        if handed:
            self.discard(receiver, [entry.message for entry in handed], Reason.SESSION_ENDED)
        return len(handed)

    def expire_waiting(self, receiver: R, most: int | None = None) -> int:
        """Remove up to `most` waiting messages that have expired. Returns how many."""
        over = receiver.queue.remove_expired(self._node.now_ms(), most)
        if over:
            self.expire(receiver, over)
            self.waiting_places.made_room(receiver)
        return len(over)

    def expire(self, receiver: R, messages: Sequence[Message]) -> None:
        """Settle expired messages that have left the queue."""
        self._ledger.settled(receiver, messages, EXPIRED)


def _tell_refused(
    receiver: Receiver, messages: Sequence[Message], code: str, text: str = ""
) -> None:
    """Tell features that the receiver refused these messages, or will not get them."""
    for message in messages:
        for record in message.records or ():
            record.refused_by(receiver.key, code, text)


def _tell_unanswered(receiver: Receiver, messages: Sequence[Message]) -> None:
    """Tell features that the receiver ended without verdicts on these messages."""
    for message in messages:
        for record in message.records or ():
            record.unanswered_by(receiver.key)
