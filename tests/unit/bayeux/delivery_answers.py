"""What the model answers to connects: now or later, with what, and whether it arrives."""

from collections.abc import Sequence
from typing import Any

from tests.unit.bayeux.delivery_books import DEADLY, DELIVERY_ENDED, EXHAUSTED, MOST_ATTEMPTS, Books
from tests.unit.bayeux.delivery_receiver import MAX_INTERVAL_S, Copy, Question, Receiver

# How long a connect is held (seconds).
TIMEOUT_S = 5.0
# More than there are messages.
FAR = 1000


class Answering(Books):
    """Hands over what waits, and learns whether it has left."""

    def __init__(self) -> None:
        super().__init__()
        # What the store will be asked about next, in order.
        self.asked: list[Any] = []
        self.is_store_there = True
        # Whether there is no room for what waits for the store.
        self.is_full = False
        # Channels that nothing is handed over from.
        self.held: set[str] = set()

    def connect(self, question: Question, now: float, *, is_patient: bool) -> None:
        """After its verdicts and its ack: contact, and an answer now or later."""
        receiver = question.receiver
        if receiver.question is not None:
            receiver.question.state, receiver.question = "superseded", None
        if receiver.kind.settles == "verdict":
            self.look_for_lost_reply(receiver)
        receiver.ends_at = None
        receiver.contact.contact(now)
        if receiver.contact.is_dead and not receiver.is_shut:
            self.bury_all(receiver, DELIVERY_ENDED, now)
            self.end(receiver, failed=True)
            question.state = "unknown"
            return
        timeout_s = TIMEOUT_S if is_patient and receiver.has_connected else 0.0
        receiver.has_connected = True
        pause_s = 0.0
        if self.may_take(receiver, now) and receiver.has_news(self.held):
            pause_s = receiver.pause_s() if timeout_s else 0.0
            if not pause_s:
                timeout_s = 0.0
        if timeout_s:
            question.state, receiver.question = "held", question
            receiver.quiet_until = now + pause_s if pause_s else 0.0
            receiver.deadline = now + timeout_s
        else:
            self.hand_over(question, now)

    def look_for_lost_reply(self, receiver: Receiver) -> None:
        """After a restart, or a known loss, what it gave no sign of is redelivered."""
        last, has_shown = receiver.last, receiver.heard > receiver.before
        is_lost = last is not None and (last.is_cut or last.is_dropped) and not has_shown
        if receiver.is_restored or is_lost:
            lost = [c for c in receiver.in_flight if c.seq > receiver.heard and not c.is_pending]
            for copy in lost:
                copy.fail("lost reply")
                receiver.fail()
            self.take_lost(receiver, lost)
        receiver.is_restored = False
        receiver.heard = receiver.seq

    def wait_for_store(self, question: Question) -> None:
        """The store must have the refusals before this is answered, perhaps much later."""
        question.has_refused = True
        self.asked.append(("refuse", question))

    def subscribe(self, receiver: Receiver) -> None:
        """A durable receiver subscribes again."""
        receiver.catching_up += 1
        self.asked.append(("subscribe", receiver))

    def say(self, receiver: Receiver) -> None:
        """A receiver has given verdicts without a connect."""
        if receiver.is_durable:
            self.asked.append(("say", receiver))

    def may_take(self, receiver: Receiver, now: float) -> bool:
        return receiver.flows(now) and self.counts_batches(receiver)

    def counts_batches(self, receiver: Receiver) -> bool:
        """Whether an answer is a batch; if not, it carries nothing, and no ack can settle it."""
        if receiver.catching_up:
            return False
        return self.is_store_there or not receiver.is_durable

    def hand_over(self, question: Question, now: float) -> None:
        receiver, kind = question.receiver, question.receiver.kind
        self.expire(receiver, now)
        receiver.question = None
        if not self.counts_batches(receiver):
            self.send(question, now)
            return
        receiver.batch += 1
        receiver.before = receiver.seq
        question.batch = receiver.batch
        lost = (
            [c for c in receiver.in_flight if not c.is_pending] if kind.settles == "batch" else []
        )
        for copy in lost:
            copy.fail("lost reply")
            receiver.fail()
        room = self.make_room(receiver, lost) if self.may_take(receiver, now) else 0
        self.take_lost(receiver, lost)
        held = self.held if kind.settles != "written" else ()
        line = [c for c in receiver.returned + receiver.new if c.sent.channel not in held]
        going = line[:room]
        receiver.returned = [copy for copy in receiver.returned if copy not in going]
        receiver.new = [copy for copy in receiver.new if copy not in going]
        for copy in receiver.returned:
            if copy.batch and not copy.until:
                copy.until = receiver.batch - 1
        is_alone = len(going) == 1 and not receiver.in_flight
        for copy in going:
            copy.was_alone = is_alone
            receiver.seq += 1
            copy.seq = receiver.seq
            copy.place = copy.place or copy.seq
            if copy.until or not copy.batch:
                copy.batch, copy.until = receiver.batch, 0
            copy.attempts += 1
            copy.due = receiver.due(now)
        receiver.in_flight += going
        question.carried = [(copy, copy.seq) for copy in going]
        question.told = [(copy.number, copy.redelivered) for copy in going]
        self.send(question, now)

    def take_lost(self, receiver: Receiver, lost: Sequence[Copy]) -> None:
        """What was lost and has not become a dead letter returns."""
        lost = [copy for copy in lost if copy in receiver.in_flight]
        receiver.repeats += bool(lost)
        for copy in lost:
            copy.redelivered += 1
        receiver.return_copies(lost)

    def make_room(self, receiver: Receiver, lost: Sequence[Copy]) -> int:
        """How many may go: no more than it can take; one with its last attempt goes alone."""
        kind, room = receiver.kind, receiver.kind.per_batch or FAR
        if kind.settles == "written":
            return room
        if receiver.awaits_last_attempt():
            return 0
        receiver.on_last_attempt = None
        room = min(room, receiver.window or FAR)
        going = 0
        for copy in sorted([*lost, *receiver.returned], key=lambda copy: copy.place):
            if going == room:
                break
            if copy.sent.channel in self.held:
                continue
            if copy.sent.channel == DEADLY and copy.attempts >= MOST_ATTEMPTS - 1:
                if copy.attempts >= MOST_ATTEMPTS and copy.was_alone and not self.is_full:
                    self.bury(receiver, [copy], EXHAUSTED)
                    continue
                if not going:
                    receiver.on_last_attempt = copy
                return going or 1
            going += 1
        return room

    def send(self, question: Question, now: float) -> None:
        """Answer now, or when the store knows what it must know before."""
        receiver = question.receiver
        was_tried = any(copy.attempts > 1 for copy, _ in question.carried)
        if question.has_refused or (receiver.is_durable and was_tried):
            question.state, receiver.deadline = "going", now + MAX_INTERVAL_S
            receiver.last = question
            self.asked.append(("leave", question))
        else:
            self.leave(question, now)

    def keeps_waiting(self, receiver: Receiver) -> bool:
        """Whether any answer for the receiver waits for the store."""
        return any(
            (what == "leave" and subject.receiver is receiver)
            or (what in ("subscribe", "say") and subject is receiver)
            for what, subject, *_ in self.asked
        )

    def leave(self, question: Question, now: float) -> None:
        """Write the answer, unless its connection is lost or its client is another one now."""
        receiver = question.receiver
        if question.state == "going" and (
            receiver.is_over or receiver.is_away or receiver.client != question.client
        ):
            question.state = "cut" if question.is_cut else "emptied"
            return
        copies = [copy for copy, seq in question.carried if copy.seq == seq]
        # It was held back while the store was told.
        is_late = question.state == "going" and copies and not receiver.flows(now)
        if question.state == "going":
            for copy in copies:
                copy.due = receiver.due(now) if copy in receiver.in_flight else copy.due
        if question.is_cut or is_late:
            question.state = "cut" if question.is_cut else "emptied"
            self.not_taken(
                receiver, question, [copy for copy in copies if copy in receiver.in_flight]
            )
        else:
            question.state = "answered"
            if receiver.kind.settles == "written":
                here = receiver.in_flight + receiver.returned
                self.ack(receiver, [copy for copy in copies if copy in here])
        if receiver.question is None:
            receiver.deadline = now + MAX_INTERVAL_S
            receiver.last = question

    def not_taken(self, receiver: Receiver, question: Question, copies: Sequence[Copy]) -> None:
        for copy in copies:
            copy.was_alone = False
            if copy.batch == question.batch:
                copy.batch = 0
            if receiver.kind.settles != "written":
                copy.fail("not written")
        receiver.return_copies(copies)

    def abort(self, question: Question, now: float) -> None:
        """The connection is lost before its answer."""
        question.is_cut = True
        if question.receiver.question is question:
            question.receiver.question = None
            question.state = "cut"
            question.receiver.deadline = now + MAX_INTERVAL_S

    def tell(self, now: float) -> None:
        """The turn ends: held connects with news are answered."""
        for receiver in self.receivers:
            question = receiver.question
            if question is None or receiver.quiet_until > now:
                continue
            if self.may_take(receiver, now) and receiver.has_news(self.held):
                self.hand_over(question, now)
