"""Failures: refusals, missing verdicts and lost contact, and how the queue reacts."""

from collections.abc import Callable, Collection
from typing import Generic, TypeVar

from holdfast.delivery.basics import error_codes, notices
from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.guard.publishers import knows
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.trails import RETURNED
from holdfast.delivery.messages.verdicts import Refusals, Verdict
from holdfast.delivery.ports.error_handler import Failure, ForMessage, ForRest, Reaction
from holdfast.delivery.queues.dispatcher import (
    Dispatcher,
    DispatcherInput,
    QueueHold,
    least_pause_s,
)
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.settling.delivery_parts import DeliveryParts
from holdfast.delivery.settling.reactions import stops
from holdfast.delivery.settling.undelivered import Undelivered
from holdfast.delivery.shared_queues.work import is_work

R = TypeVar("R", bound=Receiver)


class Failures(Generic[R]):
    """Carries out the reaction to each failure.

    Args:
        fail_session: Ends the receiver's session. Its queue is empty by then, and nothing may enter
            it afterwards.
    """

    def __init__(
        self,
        parts: DeliveryParts[R],
        undelivered: Undelivered[R],
        fail_session: Callable[[R, ErrorCode], None],
    ) -> None:
        self._owner = parts.owner
        self._store = parts.store
        self._ledger = parts.ledger
        self._counters = parts.counters
        self._node = parts.node
        self._guard = parts.guard
        self._journal = parts.journal
        self._notices = parts.notices
        self._attempt_notes = parts.attempt_notes
        self._waiting_places = parts.waiting_places
        self._undelivered = undelivered
        self._fail_session = fail_session
        # While refusals are carried out: the lowest number of the entries returned so far, zero if
        # none. Otherwise None: each failure stands alone.
        self._returned_from: int | None = None

    # Refusals

    def carry_out(
        self, receiver: R, refusals: Refusals, now: float, is_turn_over: Callable[[], bool]
    ) -> bool:
        """Apply the refusals until the turn is over. Returns whether all are done.

        The session may have ended afterwards.
        """
        self._returned_from = 0
        rest = refusals.rest
        try:
            while rest:
                verdict = rest.popleft()
                entry = receiver.queue.find(verdict.seq)
                if entry is not None and verdict.code is not None:
                    refusals.refused_any = True
                    self._refused(receiver, entry, code=verdict.code, verdict=verdict, now=now)
                if rest and is_turn_over():
                    return False
        finally:
            self._returned_from = None
        if refusals.refused_any:
            self._waiting_places.assign_to(receiver)
        return True

    def _refused(
        self, receiver: R, entry: Entry, *, code: ErrorCode, verdict: Verdict, now: float
    ) -> None:
        channel = entry.message.channel
        failure = Failure(code, verdict.text, verdict.delay_s, channel, entry.attempts)
        self._note_contact(receiver, now)
        self.react_to(receiver, failure, now, entry)
        # A refused addressed message says nothing about its channel, which many destinations share.
        if not (stops(code) or entry.message.addressed):
            self._report_to_guard(receiver, entry.message, code, now)

    def _note_contact(self, receiver: R, now: float) -> None:
        """Note that a receiver is there, which was waited for: its refusal begins a new pause."""
        dispatcher = self.dispatcher(receiver, now)
        before = dispatcher.state
        dispatcher.heard(now)
        if dispatcher.state is not before:
            self._journal.dispatcher(receiver, dispatcher.state)

    def _report_to_guard(self, receiver: R, message: Message, code: ErrorCode, now: float) -> None:
        guard = self._guard
        if guard.is_probe(message):
            self._notices.report(notices.PROBE_FAILED, message.channel, code.text)
            guard.probe_failed(message, now)
            return
        knew, now_ms = knows(receiver, message.sender), self._node.now_ms()
        if guard.refused(message, receiver.person, now, now_ms, knew=knew):
            self._hold_if_nobody_takes(message.channel, now, now_ms)

    def _hold_if_nobody_takes(self, channel: str, now: float, now_ms: int) -> None:
        held = self._guard.hold_channel(channel, self._owner.reached(channel, now), now, now_ms)
        if held is not None:
            self._store.save_channel_hold(channel, held)
            self._journal.held("guard", channel=channel)
            self._owner.alert(channel, held.reason)

    # Reactions

    def react_to(
        self, receiver: R, failure: Failure, now: float, entry: Entry | None = None
    ) -> None:
        """React to a failure or a lost contact. Without `entry`, everything in flight failed.

        The session may have ended afterwards.
        """
        dispatcher = self.dispatcher(receiver, now)
        self._counters.refused[failure.code.family] += 1
        failed = receiver.queue.in_flight().values() if entry is None else (entry,)
        self._ledger.refused(receiver, failed, failure.code, failure.text)
        reaction = self._owner.handler(receiver, failure.channel).react(failure, dispatcher, now)
        if reaction.input is not DispatcherInput.HOLD:
            kind = notices.REFUSED if failure.by_client else notices.DELIVERY_FAILED
            self._notices.report(kind, receiver.key, failure.code.text)
        if failure.code.listed is error_codes.DEAD_MESSAGE:
            # The client asked for the letter, so it has handled the message.
            dispatcher.acknowledged += 1
        if entry is not None:
            self._attempt_notes.note_failure(
                receiver, [entry], now=now, code=failure.code, text=failure.text
            )
        self._apply_to_queue(receiver, reaction, failure=failure, entry=entry, now=now)
        self._steer(receiver, dispatcher, reaction=reaction, failure=failure, now=now)
        if reaction.ends_session:
            self._fail_session(receiver, failure.code)
        elif not receiver.is_live:
            self._waiting_places.work.requeue_new(receiver)

    def dispatcher(self, receiver: R, now: float) -> Dispatcher:
        """Return the receiver's dispatcher. Creates it when first needed."""
        if receiver.dispatcher is None:
            receiver.dispatcher = Dispatcher()
            receiver.dispatcher.contact(now)
            # The receiver was alive before, without a dispatcher to record since when.
            receiver.dispatcher.since = None
        return receiver.dispatcher

    def _apply_to_queue(
        self, receiver: R, reaction: Reaction, *, failure: Failure, entry: Entry | None, now: float
    ) -> None:
        queue = receiver.queue
        if reaction.message is ForMessage.DEAD and entry is not None:
            queue.remove((entry.seq,))
            self._give_up(receiver, reaction, failure, entry)
            # A refusal is an answer too.
            queue.widen(1)
            if reaction.rest is ForRest.FLOWS and failure.by_client and stops(failure.code):
                self._return_behind(receiver, entry, failure.code, now)
        if reaction.rest is ForRest.DEAD:
            self._undelivered.dead_letter_all(receiver, failure.code, failure.text, now)
        elif reaction.rest is ForRest.STAYS:
            self._return(receiver, reaction, failure=failure, entry=entry, now=now)

    def _give_up(self, receiver: R, reaction: Reaction, failure: Failure, entry: Entry) -> None:
        """Requeue an entry that its receiver will not get, or dead-letter it."""
        message, code = entry.message, failure.code
        if is_work(message):
            # Other receivers may accept this work, unless the client asked for the letter.
            is_final = code.listed is error_codes.DEAD_MESSAGE
            self._waiting_places.work.requeue_refused(
                receiver, entry, code, failure.text, is_final=is_final
            )
        elif (
            code.family == "communication"
            and reaction.rest is ForRest.DEAD
            and message.is_for(receiver.subject)
        ):
            # The session ends without a verdict. Another session of its subject may get the
            # message.
            self._waiting_places.requeue(receiver, entry)
        else:
            self._undelivered.dead_letter(
                receiver, [entry], code, failure.text, is_about_message=failure.by_client
            )

    def _return(
        self, receiver: R, reaction: Reaction, *, failure: Failure, entry: Entry | None, now: float
    ) -> None:
        """Return failed entries to the queue; without `entry`, everything in flight failed."""
        queue, code = receiver.queue, failure.code
        changed: Collection[Entry]
        if entry is None:
            changed = back = failed = queue.return_all()
            self._attempt_notes.note_failure(receiver, back, now=now, code=code, text=failure.text)
        elif self._returned_from and self._returned_from <= entry.seq:
            changed, back, failed = [entry], [], [entry]
        else:
            failed, back, changed = [entry], *self._return_from(receiver, entry, code, now)
        if reaction.counts_redelivered:
            for each in failed:
                each.redelivered += 1
            self._counters.redelivered += len(failed)
        self._ledger.returned(receiver, back, changed)

    def _return_behind(self, receiver: R, refused: Entry, code: ErrorCode, now: float) -> None:
        """Return the entries behind a message that is gone: the receiver expects it before them.

        An ack settles only those that the receiver has confirmed by name.
        """
        if self._returned_from and self._returned_from <= refused.seq:
            return
        back, changed = self._return_from(receiver, refused, code, now)
        self._ledger.returned(receiver, back, [each for each in changed if each is not refused])

    def _return_from(
        self, receiver: R, refused: Entry, code: ErrorCode, now: float
    ) -> tuple[list[Entry], Collection[Entry]]:
        """Return entries to the queue, from the refused one on; also return all changed ones."""
        if self._returned_from is not None:
            self._returned_from = refused.seq
        queue = receiver.queue
        # Acks of earlier batches no longer settle the entries that were already returned.
        unbatched = [e for e in queue.returned.values() if e.batch and e.seq >= refused.seq]
        back = queue.return_from(refused.seq)
        others = [each for each in back if each is not refused]
        self._attempt_notes.note(receiver, others, now, RETURNED, code=code.text)
        return back, dict.fromkeys((*unbatched, *back, refused)).keys()

    def _steer(
        self,
        receiver: R,
        dispatcher: Dispatcher,
        *,
        reaction: Reaction,
        failure: Failure,
        now: float,
    ) -> None:
        if reaction.rest is ForRest.FLOWS and reaction.input is None and reaction.pause_s is None:
            # The message is gone. Neither the receiver's record nor its next deadline changes.
            return
        before = dispatcher.state
        match reaction.input:
            case DispatcherInput.HOLD:
                now_ms = self._node.now_ms()
                dispatcher.hold_back(
                    QueueHold(failure.text or failure.code.text, receiver.name, now_ms)
                )
                self._notices.report(notices.HELD, receiver.key, "itself")
                self._journal.held("verdict", receiver=receiver.key)
            case DispatcherInput.LOSS:
                dispatcher.lost(now)
            case DispatcherInput.REFUSAL:
                dispatcher.refused(now, failure.delay_s, failure.attempts)
            case DispatcherInput.GIVE_UP | DispatcherInput.END:
                receiver.advance(SessionInput.STOP)
            case _:
                pass
        pause_s = reaction.pause_s
        if reaction.input is None and reaction.message is ForMessage.STAYS:
            pause_s = max(pause_s or 0.0, least_pause_s(failure.attempts))
        if pause_s is not None:
            dispatcher.pause(now, pause_s)
        if dispatcher.state is not before:
            self._journal.dispatcher(receiver, dispatcher.state)
        self._owner.note(receiver, now)
