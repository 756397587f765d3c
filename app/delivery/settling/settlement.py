"""Settles entries that receivers accepted, by acks and OK verdicts. For refusals: `failures`."""

from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from holdfast.delivery.basics import error_codes
from holdfast.delivery.guard.publishers import accepted_from
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.verdicts import Refusals, Verdict
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.settling.delivery_parts import DeliveryParts

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
        if unknown and receiver.queue.is_restored:
            self._return_behind(receiver, unknown)
        refusals.sort(key=_gravity)
        return Refusals(refusals)

    def _return_behind(self, receiver: R, refusals: Iterable[Verdict]) -> None:
        """Return what an earlier process has handed over behind messages that this one lacks.

        They were not stored. If their receiver wants them later, it has left open what follows.
        """
        stops = [each.seq for each in refusals if _gravity(each)[0]]
        if stops:
            back = receiver.queue.return_from(min(stops))
            self._ledger.returned(receiver, back, back)


def _gravity(verdict: Verdict) -> tuple[bool, int]:
    """Sort refusals of single messages before those that stop the queue, then by number."""
    code = verdict.code
    stops = code is not None and (
        code.listed is error_codes.HOLDBACK or code.family == "communication"
    )
    return (stops, verdict.seq)
