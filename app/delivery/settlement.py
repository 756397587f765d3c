"""What becomes of entries when receivers answer, fail or go: books, store and dead letters."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from app.delivery import attempts, error_codes
from app.delivery.counters import Counters, Reason
from app.delivery.dead_letters import DeadLetter
from app.delivery.dispatcher import Dispatcher, Hold, Input
from app.delivery.entries import Carried, Entry, Settling
from app.delivery.error_codes import CODES, ErrorCode
from app.delivery.guard import Guard
from app.delivery.history import History
from app.delivery.keeper import Keeper, Mark
from app.delivery.messages import Message
from app.delivery.owner import Owner
from app.delivery.reactions import Failure, ForMessage, ForRest, Reaction
from app.delivery.receivers import Receiver
from app.delivery.verdicts import Verdict

R = TypeVar("R", bound=Receiver)

log = logging.getLogger(__name__)

_NS_PER_MS = 1_000_000
_CROWD = 4 * 1024 * 1024
_WORN = "handed over as often as it may be, and never answered"


@dataclass(frozen=True, slots=True)
class Node:
    """Who this server is, and its sense of wall time: rising, each value given once, in ns."""

    name: str
    stamp: Callable[[], int]

    def now_ms(self) -> int:
        return self.stamp() // _NS_PER_MS


class Settlement(Generic[R]):
    """Settles each entry exactly once."""

    def __init__(
        self, owner: Owner[R], keeper: Keeper, counters: Counters, node: Node, guard: Guard
    ) -> None:
        self._owner = owner
        self._keeper = keeper
        self._counters = counters
        self._node = node
        self._guard = guard
        self._history: History[R] = History(node.name, node.now_ms, owner.transport)
        # Until then the guard is told what receivers take: not while nobody refuses anything.
        self._watched_until = 0.0
        # Bytes of letters on their way to the store.
        self._burying = 0

    # What receivers say

    def acked(self, receiver: R, messages: Sequence[Message], now: float) -> None:
        """These have left the queue, and the receiver has them."""
        if not messages:
            return
        if receiver.is_durable:
            self._keeper.settle(receiver.key, [message.id for message in messages])
        if receiver.dispatcher is not None:
            receiver.dispatcher.acked()
            receiver.acked += len(messages)
            if now < self._watched_until and receiver.can_refuse:
                self._guard.taken(messages, receiver.person, now)

    def judge(self, receiver: R, verdicts: Iterable[Verdict], now: float) -> None:
        """What a receiver says of messages: ok first, so that a failure spares what is done."""
        failures = []
        for verdict in verdicts:
            if receiver.queue.find(verdict.seq) is None:
                self._counters.verdicts_unknown += 1
            elif verdict.ok:
                self.acked(receiver, receiver.queue.settle((verdict.seq,)), now)
            else:
                failures.append(verdict)
        for verdict in sorted(failures, key=_gravity):
            entry = receiver.queue.find(verdict.seq)
            if entry is not None and verdict.code is not None:
                self._refused(receiver, entry, verdict.code, verdict, now)

    def _refused(
        self, receiver: R, entry: Entry, code: ErrorCode, verdict: Verdict, now: float
    ) -> None:
        channel = entry.message.channel
        failure = Failure(code, verdict.text, verdict.delay_s, channel, entry.attempts)
        self.fail(receiver, failure, now, entry)
        is_refusal = code.family == "user" and code is not error_codes.HOLDBACK
        if is_refusal:
            self._watched_until = now + self._guard.window_s
            if self._guard.refused(entry.message, receiver.person, now):
                self._hold_if_most_refuse(channel, now)

    def _hold_if_most_refuse(self, channel: str, now: float) -> None:
        reached = self._owner.reached(channel)
        held = self._guard.hold(channel, reached, now, self._node.now_ms())
        if held is not None:
            self._keeper.hold(channel, held)
            self._owner.alert(channel, held.reason)

    # Failures

    def fail(self, receiver: R, failure: Failure, now: float, entry: Entry | None = None) -> None:
        """A delivery failed, or contact was lost; with no entry everything in hands is meant."""
        dispatcher = self.dispatcher(receiver, now)
        self._counters.refused[failure.code.family] += 1
        reaction = self._owner.handler(receiver, failure.channel).react(failure, dispatcher, now)
        if reaction.counts_exception:
            receiver.exceptions += 1
            receiver.last_exception = failure.code.text
        elif failure.code is error_codes.DEAD_MESSAGE:
            receiver.acked += 1
        if entry is not None:
            self._history.note_failure(receiver, [entry], now, failure.code, failure.text)
        self._move(receiver, reaction, failure, entry, now)
        self._steer(receiver, dispatcher, reaction, failure, now)
        if reaction.ends_session:
            self._owner.end(receiver, failure.code)

    def dispatcher(self, receiver: R, now: float) -> Dispatcher:
        """The receiver's dispatcher, which may have been needless until now."""
        if receiver.dispatcher is None:
            receiver.dispatcher = Dispatcher()
            receiver.dispatcher.contact(now)
        return receiver.dispatcher

    def _move(
        self, receiver: R, reaction: Reaction, failure: Failure, entry: Entry | None, now: float
    ) -> None:
        queue = receiver.queue
        if reaction.message is ForMessage.DEAD and entry is not None:
            self.bury(receiver, queue.withdraw((entry.seq,)), failure.code, failure.text)
        if reaction.rest is ForRest.DEAD:
            self.bury_all(receiver, failure.code, failure.text, now)
        elif reaction.rest is ForRest.STAYS:
            self._return(receiver, reaction, failure, entry, now)

    def _return(
        self, receiver: R, reaction: Reaction, failure: Failure, entry: Entry | None, now: float
    ) -> None:
        """What is in hands waits again; without an entry all of it has failed."""
        queue, code = receiver.queue, failure.code
        if entry is None:
            back = failed = queue.lose_sight()
            self._history.note_failure(receiver, back, now, code, failure.text)
        else:
            failed, back = [entry], queue.give_back(entry.seq)
            others = [each for each in back if each is not entry]
            self._history.note(receiver, others, now, attempts.RETURNED, code=code.text)
        if reaction.counts_redelivered:
            for each in failed:
                each.redelivered += 1
            self._counters.redelivered += len(failed)
        self.mark(receiver, queue.returned)

    def _steer(
        self,
        receiver: R,
        dispatcher: Dispatcher,
        reaction: Reaction,
        failure: Failure,
        now: float,
    ) -> None:
        match reaction.input:
            case Input.HOLD:
                now_ms = self._node.now_ms()
                dispatcher.hold(Hold(failure.text or failure.code.text, receiver.name, now_ms))
            case Input.LOSS:
                dispatcher.lost(now)
            case Input.REFUSAL:
                dispatcher.refused(now, failure.delay_s)
            case Input.GIVE_UP | Input.END:
                dispatcher.end(reaction.input)
                receiver.is_closed = receiver.is_given_up = True
            case _:
                pass
        if reaction.pause_s is not None:
            dispatcher.pause(now, reaction.pause_s)
        self._owner.note(receiver)

    # What comes again

    def lost(self, receiver: R, now: float) -> None:
        """What was not acknowledged is about to be handed over again: a reply was lost."""
        self._history.note(receiver, receiver.queue.unanswered(), now, attempts.LOST_REPLY)

    def bury_worn(self, receiver: R) -> None:
        """What was handed over as often as it may be is dead instead of being handed over again.

        A message that kills its receiver would come for ever, for nobody lives to refuse it.
        """
        queue = receiver.queue
        if queue.settling is Settling.WRITTEN or self.is_crowded:
            # Nobody works on it; or it could not be written down, and may be tried once more.
            return
        worn = [e for e in (*queue.unanswered(), *queue.returned) if self._is_worn(e)]
        if worn:
            queue.take_out(worn)
            self.bury(receiver, worn, error_codes.FAILED_OVER, _WORN)

    def _is_worn(self, entry: Entry) -> bool:
        channel = entry.message.channel
        most = self._owner.max_attempts(channel)
        return most is not None and entry.attempts >= most and channel not in self._guard.held

    def not_written(self, receiver: R, carried: Carried | None, now: float) -> bool:
        """The transport took nothing of what was handed over; whether anything waits again."""
        back = receiver.queue.not_written(carried)
        if back and receiver.queue.settling is not Settling.WRITTEN:
            self._history.note(receiver, back, now, attempts.NOT_WRITTEN)
        self.mark(receiver, back)
        return bool(back)

    def change_hands(self, receiver: R, now: float) -> None:
        """Another client gets what this one has in hands."""
        queue = receiver.queue
        self._history.note(receiver, queue.handed.values(), now, attempts.TAKEN_OVER)
        self.mark(receiver, queue.change_hands())

    # The store and the dead letters

    def mark(self, receiver: R, entries: Sequence[Entry]) -> None:
        """Remember how far these have come."""
        if not receiver.is_durable or not entries:
            return
        handed = receiver.queue.handed
        marks = [
            Mark(
                entry.message.id,
                seq=entry.seq if entry.seq in handed else 0,
                batch=entry.batch,
                attempts=entry.attempts,
                redelivered=entry.redelivered,
                position=entry.seq,
                trail=entry.trail,
            )
            for entry in entries
        ]
        self._keeper.mark(receiver.key, marks)

    def mark_first(self, receiver: R, messages: Sequence[Message]) -> None:
        """Remember that these were handed over for the first time, in the last batch."""
        batch, numbers = receiver.queue.carried
        marks = [
            Mark(message.id, seq, batch, 1, 0, seq)
            for message, seq in zip(messages, numbers, strict=True)
        ]
        if marks:
            self._keeper.mark(receiver.key, marks)

    def bury_all(self, receiver: R, code: ErrorCode, text: str, now: float) -> None:
        """Nothing of the queue will be delivered; what has outlived its time is no loss."""
        self.dropped(receiver, receiver.queue.expire(now))
        self._history.note_failure(receiver, receiver.queue.handed.values(), now, code, text)
        self.bury(receiver, receiver.queue.clear(), code, text)

    def bury(self, receiver: R, entries: Sequence[Entry], code: ErrorCode, text: str) -> None:
        """These have left the queue undelivered: letters, where letters are wanted."""
        letters, others = [], []
        if self._keeper.is_full and entries:
            # Bounded above all; whoever could wait was told to come back.
            self._counters.discarded[Reason.STORE_AWAY] += len(entries)
            log.error("%d dead letters of session %d were lost", len(entries), receiver.number)
            return
        for entry in entries:
            message = entry.message
            wanted = self._owner.wants_letters(receiver, message.channel)
            if message.is_dead_letter or not wanted:
                others.append(message.id)
            else:
                letters.append(self._letter(receiver, entry, code, text))
        if letters:
            self._counters.dead += len(letters)
            self._keeper.bury(letters, receiver.key if receiver.is_durable else None)
            size = sum(len(letter.wire) for letter in letters)
            self._burying += size
            self._keeper.after(partial(self._buried, letters, size))
        if others:
            self._counters.discarded[Reason.NO_LETTER] += len(others)
            if receiver.is_durable:
                self._keeper.settle(receiver.key, others)

    def _buried(self, letters: Sequence[DeadLetter], size: int) -> None:
        self._burying -= size
        self._owner.tell(letters)

    @property
    def is_crowded(self) -> bool:
        """Whether so much is on its way to the store that nothing should die that can wait."""
        return self._burying > _CROWD or self._keeper.is_full

    def _letter(self, receiver: R, entry: Entry, code: ErrorCode, text: str) -> DeadLetter:
        reason = f"{code.meaning}: {text}" if text else code.meaning
        return DeadLetter.of(
            entry.message,
            id=str(self._node.stamp()),
            receiver=receiver.name,
            code=code.text,
            reason=reason,
            attempts=entry.trail,
            attempt_count=entry.attempts,
            redelivered=entry.redelivered,
            policy=self._owner.policy(receiver),
        )

    def turned_away(self, receiver: R, message: Message, reason: Reason) -> None:
        """A queue did not take a message: it was full, or its receiver is done with."""
        if reason is Reason.SESSION_ENDED:
            if not receiver.is_given_up:
                self.discarded(receiver, [message], reason)
                return
            code = error_codes.GIVEN_UP
        else:
            code = CODES[reason.value]
        # A flood must not fill what waits for the store: beyond a bound it is only counted.
        if not self.is_crowded and self._owner.wants_letters(receiver, message.channel):
            self.bury(receiver, [Entry(message)], code, "")
        else:
            self.discarded(receiver, [message], reason)

    def discarded(self, receiver: R, messages: Sequence[Message], reason: Reason) -> None:
        """These have left the queue and nobody will ever get them, as agreed."""
        self._counters.discarded[reason] += len(messages)
        self.dropped(receiver, messages)

    def dropped(self, receiver: R, messages: Sequence[Message]) -> None:
        """The store need not keep these any more; what became of them has been counted."""
        if receiver.is_durable and messages:
            self._keeper.settle(receiver.key, [message.id for message in messages])


def _gravity(verdict: Verdict) -> tuple[bool, int]:
    """Single messages first; then what stops the queue, from the first message that it stopped."""
    code = verdict.code
    stops = code is error_codes.HOLDBACK or (code is not None and code.family == "communication")
    return (stops, verdict.seq)
