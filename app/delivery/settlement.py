"""What becomes of entries when receivers answer, fail or go: books, store and dead letters."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Generic, TypeVar

from app.delivery import attempts, error_codes, notices
from app.delivery.counters import Counters
from app.delivery.dispatcher import Dispatcher, Hold, Input, least_pause_s
from app.delivery.entries import Carried, Entry, Settling
from app.delivery.error_codes import ErrorCode
from app.delivery.exits import Exits
from app.delivery.guard import Guard
from app.delivery.history import History
from app.delivery.keeper import Keeper, Mark
from app.delivery.messages import Message
from app.delivery.node import Node
from app.delivery.notices import Notices
from app.delivery.owner import Owner
from app.delivery.queue import CallbackQueue
from app.delivery.reactions import Failure, ForMessage, ForRest, Reaction
from app.delivery.receivers import Receiver
from app.delivery.trial import Trial
from app.delivery.verdicts import Verdict
from app.delivery.witness import Witness

R = TypeVar("R", bound=Receiver)

_WORN = "handed over as often as it may be, and never answered"


class Settlement(Generic[R]):
    """Settles each entry exactly once."""

    def __init__(
        self,
        owner: Owner[R],
        keeper: Keeper,
        counters: Counters,
        node: Node,
        guard: Guard,
        witness: Witness | None = None,
        notices: Notices | None = None,
    ) -> None:
        self._owner = owner
        self._keeper = keeper
        self._counters = counters
        self._node = node
        self._guard = guard
        self._witness = witness
        self._acked = None if witness is None else witness.acked
        self._history: History[R] = History(node.name, node.now_ms, owner.transport)
        # Until then the guard is told what receivers take: not while nobody refuses anything, and
        # no channel is tried again.
        self._watched_until = 0.0
        # While refusals are carried out: from this number on the receiver has nothing in hands;
        # zero, if nothing was given back yet. At other times each failure stands for itself.
        self._given_back_from: int | None = None
        self._notices = notices or Notices()
        self.exits: Exits[R] = Exits(
            owner, keeper, counters, node, self._history, self._notices, witness
        )

    # What receivers say

    def acknowledge(self, receiver: R, batch: int, now: float) -> None:
        """The receiver has all batches up to this one."""
        self.took(receiver, receiver.queue.acknowledge(batch), now)

    def took(self, receiver: R, messages: Sequence[Message], now: float) -> None:
        """These have left the queue: the receiver says that it has them, or need not say so."""
        if messages and self._acked is not None and not receiver.is_durable:
            self._acked.add(receiver, messages, now)
        self.acked(receiver, messages, now)

    def acked(self, receiver: R, messages: Sequence[Message], now: float) -> None:
        """These have left the queue, and the receiver has them."""
        if not messages:
            return
        if receiver.is_durable:
            self._keeper.settle(receiver.key, [message.id for message in messages])
        sender = messages[-1].sender
        if sender != receiver.took_from:
            receiver.took_before, receiver.took_from = receiver.took_from, sender
        dispatcher = receiver.dispatcher
        if dispatcher is not None:
            if not dispatcher.is_calm:
                dispatcher.acked()
            receiver.acked += len(messages)
        if now < self._watched_until and receiver.can_refuse:
            for channel in self._guard.taken(messages, receiver.person, now):
                self._owner.release(channel)

    def listen(self, until: float) -> None:
        """Tell the guard what receivers take until then."""
        self._watched_until = max(self._watched_until, until)

    def judge(self, receiver: R, verdicts: Iterable[Verdict], now: float) -> Trial:
        """What a receiver says of messages: ok first, so that a failure spares what is done.

        What it refuses is still to be carried out.
        """
        taken: dict[int, None] = {}
        refusals = []
        for verdict in verdicts:
            seq = verdict.seq
            if seq in taken or receiver.queue.find(seq) is None:
                self._counters.verdicts_unknown += 1
                continue
            receiver.queue.hear(seq)
            if verdict.ok:
                taken[seq] = None
            else:
                refusals.append(verdict)
        self.took(receiver, receiver.queue.settle(taken), now)
        refusals.sort(key=_gravity)
        return Trial(refusals)

    def carry_out(
        self, receiver: R, trial: Trial, now: float, is_turn_over: Callable[[], bool]
    ) -> bool:
        """Refuse what there is time for in this turn; whether that was all."""
        self._given_back_from = 0
        try:
            while not trial.is_over:
                verdict = trial.next()
                entry = receiver.queue.find(verdict.seq)
                if entry is not None and verdict.code is not None:
                    trial.refused_any = True
                    self._refused(receiver, entry, verdict.code, verdict, now)
                if is_turn_over():
                    break
        finally:
            self._given_back_from = None
        return trial.is_over

    def _refused(
        self, receiver: R, entry: Entry, code: ErrorCode, verdict: Verdict, now: float
    ) -> None:
        channel = entry.message.channel
        failure = Failure(code, verdict.text, verdict.delay_s, channel, entry.attempts)
        self.fail(receiver, failure, now, entry)
        is_refusal = code.family == "user" and code is not error_codes.HOLDBACK
        if is_refusal:
            self._tell_guard(receiver, entry.message, code, now)

    def _tell_guard(self, receiver: R, message: Message, code: ErrorCode, now: float) -> None:
        guard = self._guard
        self.listen(now + guard.window_s)
        if guard.is_tried(message):
            self._notices.tell(notices.CHANNEL_TRIED, message.channel, code.text)
            guard.failed_again(message, now)
            return
        knew, now_ms = receiver.knows(message.sender), self._node.now_ms()
        if guard.refused(message, receiver.person, now, now_ms, knew=knew):
            self._hold_if_nobody_takes(message.channel, now, now_ms)

    def _hold_if_nobody_takes(self, channel: str, now: float, now_ms: int) -> None:
        held = self._guard.hold(channel, self._owner.reached(channel), now, now_ms)
        if held is not None:
            self._keeper.hold(channel, held)
            if self._witness is not None:
                self._witness.held("guard", channel=channel)
            self._owner.alert(channel, held.reason)

    # Failures

    def fail(self, receiver: R, failure: Failure, now: float, entry: Entry | None = None) -> None:
        """A delivery failed, or contact was lost; with no entry everything in hands is meant."""
        dispatcher = self.dispatcher(receiver, now)
        self._counters.refused[failure.code.family] += 1
        if self._witness is not None:
            failed = receiver.queue.handed.values() if entry is None else (entry,)
            self._witness.refused(receiver, list(failed), failure.code)
        reaction = self._owner.handler(receiver, failure.channel).react(failure, dispatcher, now)
        if reaction.input is not Input.HOLD:
            incident = notices.REFUSED if failure.by_client else notices.FAILED
            self._notices.tell(incident, receiver.key, failure.code.text)
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
            # It was alive before anybody asked.
            receiver.dispatcher.since = None
        return receiver.dispatcher

    def _move(
        self, receiver: R, reaction: Reaction, failure: Failure, entry: Entry | None, now: float
    ) -> None:
        queue = receiver.queue
        if reaction.message is ForMessage.DEAD and entry is not None:
            self.exits.bury(receiver, queue.withdraw((entry.seq,)), failure.code, failure.text)
            # It was an answer, if not the one that was hoped for.
            queue.widen(1)
        if reaction.rest is ForRest.DEAD:
            self.exits.bury_all(receiver, failure.code, failure.text, now)
        elif reaction.rest is ForRest.STAYS:
            self._return(receiver, reaction, failure, entry, now)

    def _return(
        self, receiver: R, reaction: Reaction, failure: Failure, entry: Entry | None, now: float
    ) -> None:
        """What is in hands waits again; without an entry all of it has failed."""
        queue, code = receiver.queue, failure.code
        changed: Collection[Entry]
        if entry is None:
            changed = back = failed = queue.lose_sight()
            self._history.note_failure(receiver, back, now, code, failure.text)
        elif self._given_back_from and self._given_back_from <= entry.seq:
            changed, back, failed = [entry], [], [entry]
        else:
            if self._given_back_from is not None:
                self._given_back_from = entry.seq
            failed, back, changed = [entry], *self._give_back(queue, entry)
            others = [each for each in back if each is not entry]
            self._history.note(receiver, others, now, attempts.RETURNED, code=code.text)
        if reaction.counts_redelivered:
            for each in failed:
                each.redelivered += 1
            self._counters.redelivered += len(failed)
        self._tell_returned(receiver, back)
        self.mark(receiver, changed)

    def _give_back(
        self, queue: CallbackQueue, refused: Entry
    ) -> tuple[list[Entry], Collection[Entry]]:
        """What waits again from the one that was refused on; with that, all that has changed."""
        # No batch speaks any more for those that waited already.
        unbatched = [e for e in queue.returned.values() if e.batch and e.seq >= refused.seq]
        back = queue.give_back(refused.seq)
        return back, dict.fromkeys((*unbatched, *back, refused)).keys()

    def _tell_returned(self, receiver: R, entries: Sequence[Entry]) -> None:
        if entries and self._witness is not None:
            self._witness.returned(receiver, entries)

    def _steer(
        self,
        receiver: R,
        dispatcher: Dispatcher,
        reaction: Reaction,
        failure: Failure,
        now: float,
    ) -> None:
        before = dispatcher.state
        match reaction.input:
            case Input.HOLD:
                now_ms = self._node.now_ms()
                dispatcher.hold(Hold(failure.text or failure.code.text, receiver.name, now_ms))
                self._notices.tell(notices.HELD, receiver.key, "itself")
                if self._witness is not None:
                    self._witness.held("verdict", receiver=receiver.key)
            case Input.LOSS:
                dispatcher.lost(now)
            case Input.REFUSAL:
                dispatcher.refused(now, failure.delay_s, failure.attempts)
            case Input.GIVE_UP | Input.END:
                dispatcher.end(reaction.input)
                receiver.is_closed = receiver.is_given_up = True
            case _:
                pass
        pause_s = reaction.pause_s
        if reaction.input is None and reaction.message is ForMessage.STAYS:
            pause_s = max(pause_s or 0.0, least_pause_s(failure.attempts))
        if pause_s is not None:
            dispatcher.pause(now, pause_s)
        if dispatcher.state is not before and self._witness is not None:
            self._witness.dispatcher(receiver, dispatcher.state)
        self._owner.note(receiver)

    # What comes again

    def lost(self, receiver: R, now: float) -> None:
        """What was not acknowledged is about to be handed over again: a reply was lost."""
        lost = receiver.queue.unanswered()
        if lost:
            self._history.note(receiver, lost, now, attempts.LOST_REPLY)
            receiver.queue.narrow()

    def reply_lost(self, receiver: R, now: float, *, is_whole: bool) -> None:
        """The last reply to a receiver that does not acknowledge may not have arrived."""
        lost = receiver.queue.lose_reply(is_whole=is_whole)
        self._history.note(receiver, lost, now, attempts.LOST_REPLY)
        self._tell_returned(receiver, lost)
        self.mark(receiver, lost)

    def make_room(self, receiver: R, limit: int) -> int:
        """How many may go together; what is worn is dead instead of being handed over again.

        A message that kills its receiver would come for ever, for nobody lives to refuse it. What
        was only in its company must not die with it: so the last attempt at a message is made with
        nothing else in the receiver's hands, and only who failed alone is worn.
        """
        queue = receiver.queue
        if queue.settling is Settling.WRITTEN:
            return limit
        if queue.keeps_suspect():
            return 0
        worn, limit = self._look_over(queue, queue.room(limit))
        if worn:
            queue.take_out(worn)
            self.exits.bury(receiver, worn, error_codes.FAILED_OVER, _WORN)
        return limit

    def _look_over(self, queue: CallbackQueue, limit: int) -> tuple[list[Entry], int]:
        """Of what comes again: what is worn, and how many of the others go together."""
        queue.suspect = None
        worn, count = [], 0
        for entry in queue.coming_again():
            left = self._attempts_left(entry)
            if left is None:
                count += entry.message.channel not in self._guard.held
            elif left <= 0 and entry.was_alone and not self.exits.is_crowded:
                worn.append(entry)
            elif left <= 1 <= entry.attempts:
                if not count:
                    queue.suspect = entry
                return worn, count or 1
            else:
                count += 1
            if count == limit:
                break
        return worn, limit

    def _attempts_left(self, entry: Entry) -> int | None:
        """How often it may be handed over, if there is a limit and its channel flows."""
        channel = entry.message.channel
        most = self._owner.max_attempts(channel)
        return None if most is None or channel in self._guard.held else most - entry.attempts

    def not_written(self, receiver: R, carried: Carried | None, now: float) -> bool:
        """The transport took nothing of what was handed over; whether anything waits again."""
        back = receiver.queue.not_written(carried)
        if back and receiver.queue.settling is not Settling.WRITTEN:
            self._history.note(receiver, back, now, attempts.NOT_WRITTEN)
        self._tell_returned(receiver, back)
        self.mark(receiver, back)
        return bool(back)

    def change_hands(self, receiver: R, now: float) -> None:
        """Another client gets what this one has in hands."""
        queue = receiver.queue
        self._history.note(receiver, queue.handed.values(), now, attempts.TAKEN_OVER)
        back = queue.change_hands()
        self._tell_returned(receiver, list(back))
        self.mark(receiver, back)

    # The store and the dead letters

    def mark(self, receiver: R, entries: Collection[Entry]) -> None:
        """Remember how far these have come."""
        if not receiver.is_durable or not entries:
            return
        handed = receiver.queue.handed
        marks = [
            # There may be ten thousand; with names of their fields they take half as long again.
            Mark(
                entry.message.id,
                entry.seq if entry.seq in handed else -entry.seq,
                # After a restart any later batch may be acknowledged.
                0 if entry.until else entry.batch,
                entry.attempts,
                entry.redelivered,
                entry.place,
                entry.trail,
            )
            for entry in entries
        ]
        self._keeper.mark(receiver.key, marks)


def _gravity(verdict: Verdict) -> tuple[bool, int]:
    """Single messages first; then what stops the queue, from the first message that it stopped."""
    code = verdict.code
    stops = code is error_codes.HOLDBACK or (code is not None and code.family == "communication")
    return (stops, verdict.seq)
