"""What the model answers to connects: now or later, with what, and whether it arrives."""

from collections.abc import Sequence
from typing import Any

from tests.unit.bayeux.delivery_books import DEADLY, DELIVERY_ENDED, MOST_ATTEMPTS, WORN, Books
from tests.unit.bayeux.delivery_place import MAX_INTERVAL_S, Copy, Place, Question

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
        place = question.place
        if place.question is not None:
            place.question.state, place.question = "superseded", None
        if place.kind.settles == "verdict":
            self.look_for_lost_reply(place)
        place.ends_at = None
        place.contact.contact(now)
        if place.contact.is_dead and not place.is_shut:
            self.bury_all(place, DELIVERY_ENDED, now)
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

    def look_for_lost_reply(self, place: Place) -> None:
        """After a restart, or a known loss, what it gave no sign of is redelivered."""
        last, has_shown = place.last, place.heard > place.before
        is_lost = last is not None and (last.is_cut or last.is_dropped) and not has_shown
        if place.is_restored or is_lost:
            lost = [c for c in place.in_flight if c.seq > place.heard and not c.is_pending]
            for copy in lost:
                copy.fail("lost reply")
                place.fail()
            self.take_lost(place, lost)
        place.is_restored = False
        place.heard = place.seq

    def wait_for_store(self, question: Question) -> None:
        """The store must have the refusals before this is answered, perhaps much later."""
        question.has_refused = True
        self.asked.append(("refuse", question))

    def may_take(self, place: Place, now: float) -> bool:
        return place.flows(now) and (self.is_store_there or not place.is_durable)

    def hand_over(self, question: Question, now: float) -> None:
        place, kind = question.place, question.place.kind
        self.expire(place, now)
        place.question = None
        if place.is_durable and not self.is_store_there:
            # No batch: its ack would settle messages whose progress the store does not know.
            self.send(question, now)
            return
        place.batch += 1
        place.before = place.seq
        question.batch = place.batch
        lost = [c for c in place.in_flight if not c.is_pending] if kind.settles == "batch" else []
        for copy in lost:
            copy.fail("lost reply")
            place.fail()
        room = self.make_room(place, lost) if self.may_take(place, now) else 0
        self.take_lost(place, lost)
        held = self.held if kind.settles != "written" else ()
        line = [c for c in place.returned + place.waiting if c.sent.channel not in held]
        going = line[:room]
        place.returned = [copy for copy in place.returned if copy not in going]
        place.waiting = [copy for copy in place.waiting if copy not in going]
        for copy in place.returned:
            if copy.batch and not copy.until:
                copy.until = place.batch - 1
        is_alone = len(going) == 1 and not place.in_flight
        for copy in going:
            copy.was_alone = is_alone
            place.seq += 1
            copy.seq = place.seq
            copy.place = copy.place or copy.seq
            if copy.until or not copy.batch:
                copy.batch, copy.until = place.batch, 0
            copy.attempts += 1
            copy.due = now + kind.response_ms / 1000 if kind.response_ms else None
        place.in_flight += going
        question.carried = [(copy, copy.seq) for copy in going]
        question.told = [(copy.number, copy.redelivered) for copy in going]
        self.send(question, now)

    def take_lost(self, place: Place, lost: Sequence[Copy]) -> None:
        """What was lost and has not become a dead letter returns."""
        lost = [copy for copy in lost if copy in place.in_flight]
        place.repeats += bool(lost)
        for copy in lost:
            copy.redelivered += 1
        place.take_back(lost)

    def make_room(self, place: Place, lost: Sequence[Copy]) -> int:
        """How many may go: no more than it can take; one with its last attempt goes alone."""
        kind, room = place.kind, place.kind.per_batch or FAR
        if kind.settles == "written":
            return room
        if place.keeps_suspect():
            return 0
        place.suspect = None
        room = min(room, place.window or FAR)
        going = 0
        for copy in sorted([*lost, *place.returned], key=lambda copy: copy.place):
            if going == room:
                break
            if copy.sent.channel in self.held:
                continue
            if copy.sent.channel == DEADLY and copy.attempts >= MOST_ATTEMPTS - 1:
                if copy.attempts >= MOST_ATTEMPTS and copy.was_alone and not self.is_full:
                    self.bury(place, [copy], WORN)
                    continue
                if not going:
                    place.suspect = copy
                return going or 1
            going += 1
        return room

    def send(self, question: Question, now: float) -> None:
        """Answer now, or when the store knows what it must know before."""
        place = question.place
        was_tried = any(copy.attempts > 1 for copy, _ in question.carried)
        if question.has_refused or (place.is_durable and was_tried):
            question.state, place.deadline = "going", now + MAX_INTERVAL_S
            place.last = question
            self.asked.append(("leave", question))
        else:
            self.leave(question, now)

    def leave(self, question: Question, now: float) -> None:
        """Write the answer, unless its connection is lost or its client is another one now."""
        place = question.place
        if question.state == "going" and (
            place.is_over or place.is_away or place.client != question.client
        ):
            question.state = "cut" if question.is_cut else "emptied"
            return
        copies = [copy for copy, seq in question.carried if copy.seq == seq]
        if question.is_cut:
            question.state = "cut"
            self.not_taken(place, question, [copy for copy in copies if copy in place.in_flight])
        else:
            question.state = "answered"
            if place.kind.settles == "written":
                here = place.in_flight + place.returned
                self.ack(place, [copy for copy in copies if copy in here])
        if place.question is None:
            place.deadline = now + MAX_INTERVAL_S
            place.last = question

    def not_taken(self, place: Place, question: Question, copies: Sequence[Copy]) -> None:
        for copy in copies:
            copy.was_alone = False
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
        """The turn ends: held connects with news are answered."""
        for place in self.places:
            question = place.question
            if question is None or place.quiet_until > now:
                continue
            if self.may_take(place, now) and place.has_news(self.held):
                self.hand_over(question, now)
