"""What the model answers to connects: now or later, with what, and whether it arrives."""

from collections.abc import Sequence
from typing import Any

from tests.unit.bayeux.delivery_books import DEADLY, GIVEN_UP, MOST_ATTEMPTS, WORN, Books
from tests.unit.bayeux.delivery_place import MAX_INTERVAL_S, Copy, Place, Question

# How long a connect is held (seconds).
TIMEOUT_S = 5.0


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
        """Behind what it says of messages: contact, and an answer now or later."""
        place = question.place
        if place.question is not None:
            place.question.state, place.question = "overtaken", None
        place.ends_at = None
        place.contact.contact(now)
        if place.contact.is_dead and not place.is_shut:
            self.bury_all(place, GIVEN_UP, now)
            self.end(place, failed=True)
            question.state = "unknown"
            return
        timeout_s = TIMEOUT_S if is_patient and place.has_connected else 0.0
        place.has_connected = True
        pause_s = 0.0
        if self.may_take(place, now) and place.has_news(self.held):
            pause_s = place.pause_s() if timeout_s else 0.0
            if not pause_s:
                timeout_s = 0.0
        if timeout_s:
            question.state, place.question = "held", question
            place.quiet_until = now + pause_s if pause_s else 0.0
            place.deadline = now + timeout_s
        else:
            self.hand_over(question, now)

    def ask_for_letters(self, question: Question) -> None:
        """The store is to have them before this is answered, which may be long after."""
        question.has_buried = True
        self.asked.append(("bury", question))

    def may_take(self, place: Place, now: float) -> bool:
        return place.flows(now) and (self.is_store_there or not place.is_durable)

    def hand_over(self, question: Question, now: float) -> None:
        place, kind = question.place, question.place.kind
        self.expire(place, now)
        place.question = None
        if place.is_durable and not self.is_store_there:
            # No batch: it would speak for messages of which the store does not know how they fare.
            self.send(question, now)
            return
        place.batch += 1
        question.batch = place.batch
        if kind.settles == "batch":
            self.take_lost(place, now)
        elif self.may_take(place, now):
            self.bury_worn(place, place.returned)
        held = self.held if kind.settles != "written" else ()
        line = [c for c in place.returned + place.waiting if c.sent.channel not in held]
        going = line[: kind.per_batch] if self.may_take(place, now) else []
        place.returned = [copy for copy in place.returned if copy not in going]
        place.waiting = [copy for copy in place.waiting if copy not in going]
        for copy in place.returned:
            copy.batch = 0
        for copy in going:
            place.seq += 1
            copy.seq = place.seq
            copy.place = copy.place or copy.seq
            copy.batch = copy.batch or place.batch
            copy.attempts += 1
            copy.due = now + kind.response_ms / 1000 if kind.response_ms else None
        place.hands += going
        question.carried = [(copy, copy.seq) for copy in going]
        question.told = [(copy.number, copy.redelivered) for copy in going]
        self.send(question, now)

    def take_lost(self, place: Place, now: float) -> None:
        """What was not acknowledged goes again, unless that was tried too often."""
        lost = [copy for copy in place.hands if not copy.is_pending]
        for copy in lost:
            copy.fail("lost reply")
        if self.may_take(place, now):
            self.bury_worn(place, lost + place.returned)
        lost = [copy for copy in lost if copy in place.hands]
        place.repeats += bool(lost)
        for copy in lost:
            copy.redelivered += 1
        place.take_back(lost)

    def bury_worn(self, place: Place, copies: Sequence[Copy]) -> None:
        """What was handed over as often as it may be is dead instead."""
        if place.kind.settles != "written" and not self.is_full and DEADLY not in self.held:
            worn = [copy for copy in copies if copy.attempts >= MOST_ATTEMPTS]
            self.bury(place, [copy for copy in worn if copy.sent.channel == DEADLY], WORN)

    def send(self, question: Question, now: float) -> None:
        """Now, or when the store knows what must be known before."""
        place = question.place
        was_tried = any(copy.attempts > 1 for copy, _ in question.carried)
        if question.has_buried or (place.is_durable and was_tried):
            question.state, place.deadline = "going", now + MAX_INTERVAL_S
            self.asked.append(("leave", question))
        else:
            self.leave(question, now)

    def leave(self, question: Question, now: float) -> None:
        """The answer's bytes, unless nobody takes them or they are nobody's any more."""
        place = question.place
        if question.state == "going" and (
            place.is_over or place.is_away or place.client != question.client
        ):
            question.state = "cut" if question.is_cut else "emptied"
            return
        copies = [copy for copy, seq in question.carried if copy.seq == seq]
        if question.is_cut:
            question.state = "cut"
            self.not_taken(place, question, [copy for copy in copies if copy in place.hands])
        else:
            question.state = "answered"
            if place.kind.settles == "written":
                here = place.hands + place.returned
                self.ack(place, [copy for copy in copies if copy in here])
        if place.question is None:
            place.deadline = now + MAX_INTERVAL_S

    def not_taken(self, place: Place, question: Question, copies: Sequence[Copy]) -> None:
        for copy in copies:
            if copy.batch == question.batch:
                copy.batch = 0
            if place.kind.settles != "written":
                copy.fail("not written")
        place.take_back(copies)

    def abort(self, question: Question, now: float) -> None:
        """The connection is lost before its answer."""
        question.is_cut = True
        if question.place.question is question:
            question.place.question = None
            question.state = "cut"
            question.place.deadline = now + MAX_INTERVAL_S

    def tell(self, now: float) -> None:
        """The turn ends: whoever can be told something is told."""
        for place in self.places:
            question = place.question
            if question is None or place.quiet_until > now:
                continue
            if self.may_take(place, now) and place.has_news(self.held):
                self.hand_over(question, now)
