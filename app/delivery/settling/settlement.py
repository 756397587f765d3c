"""Settles entries that receivers accepted, by acks and OK verdicts. For refusals: `failures`."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Generic, TypeVar

from holdfast.delivery.guard.publishers import accepted_from
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.verdicts import Refusals, Verdict
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.settling.delivery_parts import DeliveryParts
from holdfast.delivery.settling.reactions import stops

R = TypeVar("R", bound=Receiver)


class Settlement(Generic[R]):
    """Settles each entry exactly once, together with `Undelivered` and `Failures`."""

    def __init__(self, parts: DeliveryParts[R]) -> None:
        self._owner = parts.owner
        self._ledger = parts.ledger
        self._counters = parts.counters
        self._guard = parts.guard
        self._waiting_places = parts.waiting_places

    def acknowledge(self, receiver: R, batch: int, now: float) -> None:
        """Settle all batches up to this one."""
        self.took(receiver, receiver.queue.acknowledge(batch), now)

    def took(self, receiver: R, messages: Sequence[Message], now: float) -> None:
        """Record messages that left the queue because they were acked, confirmed or written."""
        if not messages:
            return
        self._ledger.acked(receiver, messages, now)
        dispatcher = receiver.dispatcher
        if dispatcher is not None:
            dispatcher.acknowledged += len(messages)
            if not dispatcher.is_calm:
                dispatcher.acked()
        self._waiting_places.assign_to(receiver)
        if self._guard.is_used:
            accepted_from(receiver, messages[-1].sender)
        if now < self._guard.watched_until and receiver.can_refuse:
            for channel in self._guard.taken(messages, receiver.person, now):
                self._owner.release(channel)

    def settle_confirmed(self, receiver: R, verdicts: Iterable[Verdict], now: float) -> Refusals:
        """Settle confirmed entries. Returns the refusals, for `Failures.carry_out`.

        Confirmed entries are settled first, so that a failure does not return them to the queue.
        """
        taken: dict[int, None] = {}
        refusals, unknown = [], list[Verdict]()
        for verdict in verdicts:
            seq = verdict.seq
            if seq in taken or receiver.queue.find(seq) is None:
                self._counters.verdicts_unknown += 1
                if not verdict.ok:
                    unknown.append(verdict)
                continue
            receiver.queue.hear(seq)
            if verdict.ok:
                taken[seq] = None
            else:
                refusals.append(verdict)
        if taken:
            self.took(receiver, receiver.queue.settle(taken), now)
        if unknown:
            self._leave_open(receiver, unknown)
        refusals.sort(key=_gravity)
        return Refusals(refusals)

    def _leave_open(self, receiver: R, refusals: Sequence[Verdict]) -> None:
        """Return what may be meant by refusals of numbers that no entry has any more.

        The entry may have been handed over again since, under a number that its receiver has not
        seen. Or it has left the queue: if its receiver wants it later, it has left open what
        follows. The ack that comes with the refusals settles neither.
        """
        queue = receiver.queue
        known = [each for each in refusals if queue.is_earlier(each.seq)]
        earlier = sorted(each.seq for each in known)
        since = min((each.seq for each in known if _gravity(each)[0]), default=inf)
        left_open = [
            entry for entry in queue.tried() if entry.seq >= since or entry.may_have_had(earlier)
        ]
        self._ledger.returned(receiver, queue.return_open(left_open), left_open)


def _gravity(verdict: Verdict) -> tuple[bool, int]:
    """Sort refusals of single messages before those that stop the queue, then by number."""
    return (verdict.code is not None and stops(verdict.code), verdict.seq)
