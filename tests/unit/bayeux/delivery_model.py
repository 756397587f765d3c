"""What must become of messages, as the design tells it: lists and dicts, nothing clever.

A `Model` is the whole of a server as its clients see it. Whoever compares it with a real one tells
it what happens, in the same order, and what time it is.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.unit.bayeux.delivery_place import MAX_INTERVAL_S, Copy, Kind, Place, Question, Sent
from tests.unit.delivery.test_dispatcher_model import Naive

# How long a connect is held, and how long a named session waits for its client (seconds).
TIMEOUT_S = 5.0
SESSION_S = 60.0
# The same for one that has no name but retries.
LONG_S = 24 * 3600.0

LOST = "communication.noConnection"
GIVEN_UP = "communication.noConnection.dead"
SILENT = "communication.responseTimeout"
FULL = "resource.overflow.queue.entries"
HOLDBACK = "user.update.holdback"


class Model:
    """All places, what the publishers were promised, and the books."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.books: Counter[str] = Counter()
        self.letters: list[tuple[str, int, str]] = []
        # What became of each message at each place, once and for all.
        self.fates: dict[tuple[str, int], str] = {}
        # Which client said that it had which message.
        self.takers: list[tuple[str, int]] = []
        # Channels on which somebody waits for the store: messages and what it said of them.
        self.lanes: dict[str, list[tuple[Sent, list[str]]]] = {}
        # What publishers heard who had to wait.
        self.replies: dict[int, str] = {}
        # What the store will be asked about next, in order.
        self.asked: list[Any] = []
        self.is_store_there = True

    # Publishing

    def publish(self, sent: Sent, *, persistent: bool | None, is_refused: bool = False) -> str:
        """Either what the publisher hears at once, or that it waits for the store."""
        homes = [place for place in sent.places if place.is_durable and not place.is_over]
        lane = self.lanes.get(sent.channel)
        if not homes or persistent is False:
            if lane is None:
                self.show(sent)
                return "kept"
            lane.append((sent, ["kept"]))
            return "waits"
        if not self.is_store_there:
            return "refused"
        sent.is_kept = not is_refused
        answer: list[str] = []
        self.lanes.setdefault(sent.channel, []).append((sent, answer))
        self.asked.append(("keep", sent, answer))
        return "waits"

    def unseen(self) -> list[Sent]:
        """Messages that the store may have and that nobody was shown."""
        lanes = [sent for lane in self.lanes.values() for sent, _ in lane]
        return lanes + [asked[1] for asked in self.asked if asked[0] == "keep"]

    def lose_patience(self) -> None:
        """Publishers have waited too long; what was kept is shown when that is known."""
        for what, sent, *rest in self.asked:
            if what == "keep" and not rest[0]:
                rest[0].append("unknown")
                self.move(sent.channel)

    def store_answers(self, now: float) -> bool:
        """Everything that it was asked so far."""
        asked, self.asked = self.asked, []
        for what, subject, *rest in asked:
            if what == "keep":
                self.kept(subject, rest[0])
            else:
                self.leave(subject, now)
        return bool(asked)

    def kept(self, sent: Sent, answer: list[str]) -> None:
        if answer == ["unknown"]:
            if sent.is_kept:
                self.show(sent)
        else:
            answer.append("kept" if sent.is_kept else "refused")
            self.move(sent.channel)

    def move(self, channel: str) -> None:
        """Whoever is first on the channel need not wait any longer."""
        lane = self.lanes[channel]
        while lane and lane[0][1]:
            sent, answer = lane.pop(0)
            self.replies[sent.number] = answer[0]
            if answer == ["kept"]:
                self.show(sent)
        if not lane:
            del self.lanes[channel]

    def show(self, sent: Sent) -> None:
        for place in sent.places:
            self.books["accepted"] += 1
            if place.is_over or place.is_shut:
                if place.has_failed or place.is_shut:
                    self.bury(place, [Copy(sent)], GIVEN_UP)
                else:
                    self.settle(place, [Copy(sent)], "discarded")
            elif len(place) >= place.kind.most:
                self.bury(place, [Copy(sent)], FULL)
            else:
                self.queue_up(place, Copy(sent))

    def queue_up(self, place: Place, copy: Copy) -> None:
        """Behind all that is at least as urgent."""
        waiting = place.waiting
        at = len(waiting)
        while at and waiting[at - 1].sent.priority < copy.sent.priority:
            at -= 1
        waiting.insert(at, copy)

    # Ways out

    def settle(self, place: Place, copies: Sequence[Copy], how: str) -> None:
        self.books[how] += len(copies)
        for copy in copies:
            key = (place.key, copy.number)
            assert key not in self.fates, f"{key} was {self.fates[key]}, is {how}"
            self.fates[key] = how
        for queue in (place.hands, place.returned, place.waiting):
            queue[:] = [copy for copy in queue if copy not in copies]

    def ack(self, place: Place, copies: Sequence[Copy]) -> None:
        if copies:
            self.settle(place, copies, "acked")
            if place.kind.settles != "written":
                self.takers += [(place.client, copy.number) for copy in copies]
            place.contact.acked()

    def bury(self, place: Place, copies: Sequence[Copy], code: str) -> None:
        """Dead letters; plain receivers have none."""
        if place.kind.label == "plain":
            self.settle(place, copies, "discarded")
            return
        self.settle(place, copies, "dead")
        self.letters += [(place.key, copy.number, code) for copy in copies]

    def bury_all(self, place: Place, code: str, now: float) -> None:
        self.expire(place, now)
        self.bury(place, [*place.hands, *place.returned, *place.waiting], code)

    def expire(self, place: Place, now: float) -> None:
        """What waits, and is to be destroyed when its life is over."""
        here = place.returned + place.waiting
        self.settle(place, [copy for copy in here if copy.sent.ends <= now], "expired")

    # Answers

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
        if self.may_take(place, now) and place.has_news():
            pause_s = place.pause_s() if timeout_s else 0.0
            if not pause_s:
                timeout_s = 0.0
        if timeout_s:
            question.state, place.question = "held", question
            place.quiet_until = now + pause_s if pause_s else 0.0
            place.deadline = now + timeout_s
        else:
            self.hand_over(question, now)

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
            lost = [copy for copy in place.hands if not copy.is_pending]
            place.repeats += bool(lost)
            for copy in lost:
                copy.redelivered += 1
            place.take_back(lost)
        line = place.returned + place.waiting
        going = line[: kind.per_batch] if self.may_take(place, now) else []
        place.returned = [copy for copy in place.returned if copy not in going]
        place.waiting = [copy for copy in place.waiting if copy not in going]
        for copy in place.returned:
            copy.batch = 0
        for copy in going:
            place.seq += 1
            copy.seq = place.seq
            copy.batch = copy.batch or place.batch
            copy.attempts += 1
            copy.due = now + kind.response_ms / 1000 if kind.response_ms else None
        place.hands += going
        question.carried = [(copy, copy.seq) for copy in going]
        question.told = [(copy.number, copy.redelivered) for copy in going]
        self.send(question, now)

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
        place.take_back(copies)
        if not place.can_stop and place.kind.settles == "written":
            # Nobody knows that it was tried.
            place.waiting, place.returned = place.returned + place.waiting, []

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
            if self.may_take(place, now) and place.has_news():
                self.hand_over(question, now)

    # What receivers say

    def hear(self, place: Place, now: float) -> None:
        """Any request proves that the client is alive."""
        if place.question is None and place.deadline is not None:
            place.deadline = max(place.deadline, now + MAX_INTERVAL_S)

    def judge(
        self, place: Place, verdicts: Sequence[tuple[int, str, float | None]], now: float
    ) -> None:
        failures = []
        for seq, code, delay_s in verdicts:
            copy = self.find(place, seq)
            if copy is None:
                self.books["unknown"] += 1
            elif code == "OK":
                self.ack(place, [copy])
            else:
                failures.append((code == HOLDBACK or code.startswith("comm"), seq, code, delay_s))
        for _, seq, code, delay_s in sorted(failures, key=lambda failure: failure[:2]):
            failed = self.find(place, seq)
            if failed is not None:
                self.fail(place, failed, code, delay_s, now)

    def find(self, place: Place, seq: int) -> Copy | None:
        """The entry whose last number this is, if the present client was told."""
        for copy in place.hands:
            if copy.seq == seq:
                return copy
        for copy in place.returned:
            if copy.seq == seq > place.former_seq:
                return copy
        return None

    def fail(self, place: Place, copy: Copy, code: str, delay_s: float | None, now: float) -> None:
        if code == HOLDBACK:
            self.stay(place, copy)
            self.hold(place, None)
        elif code.startswith("communication"):
            place.contact.refused(now, delay_s)
            if place.contact.is_dead:
                self.bury_all(place, code, now)
                self.end(place, failed=True)
            else:
                self.stay(place, copy)
        else:
            self.bury(place, [copy], code)
            if code.startswith("user.security.authentication"):
                self.bury_all(place, code, now)
                self.end(place, failed=True)
            elif place.kind.dies_of_refusal and code != "user.update.deadMessage":
                self.bury_all(place, code, now)
                place.is_shut = True

    def stay(self, place: Place, copy: Copy) -> None:
        """It stays first, and all behind it that nobody said ok to."""
        copy.redelivered += 1
        behind = [each for each in place.hands + place.returned if each.seq >= copy.seq]
        for each in behind:
            each.batch = 0
        place.take_back([each for each in behind if each in place.hands])

    def keep_pending(self, place: Place, seqs: Sequence[int]) -> None:
        for copy in place.hands:
            copy.is_pending = copy.seq in seqs

    def acknowledge(self, place: Place, batch: int) -> None:
        if place.is_restored and batch > place.batch:
            place.batch = batch
        place.is_restored = False
        if not 0 <= batch <= place.batch:
            self.books["out of range"] += 1
        elif place.kind.settles == "batch":
            passed = [c for c in place.hands if c.batch <= batch and not c.is_pending]
            passed += [c for c in place.returned if 0 < c.batch <= batch]
            if passed:
                place.repeats = 0
            self.ack(place, passed)

    # Holding back, leaving, coming back

    def hold(self, place: Place, until: float | None) -> None:
        place.contact.has_connected |= not place.can_stop
        place.can_stop = True
        place.contact.hold()
        place.hold_until = until

    def resume(self, place: Place, now: float) -> None:
        if place.contact.is_held:
            place.contact.resume(now)
            place.hold_until = None

    def clear(self, place: Place) -> None:
        self.settle(place, [*place.hands, *place.returned, *place.waiting], "discarded")

    def say_goodbye(self, place: Place, now: float) -> None:
        """The session ends: what was in hands is done with, what waits travels along if it may."""
        for _ in range(2):
            self.settle(place, list(place.hands), "discarded")
            if place.question is not None:
                self.hand_over(place.question, now)
        if not place.can_stop:
            self.expire(place, now)
            if place.kind.settles == "written":
                self.ack(place, list(place.waiting))
        self.end(place, failed=False)

    def go_away(self, place: Place, now: float) -> None:
        """Its client leaves; a named session waits for the next one."""
        self.turn_away(place)
        place.change_client()
        place.is_away = True
        place.deadline, place.ends_at = None, now + SESSION_S

    def claim(self, kind: Kind, now: float, *, active: bool | None) -> Place:
        """Somebody shakes hands: as the client of a named session, if there is one."""
        for place in self.places:
            if kind.name is not None and place.kind.name == kind.name and not place.is_over:
                self.take_over(place, "", now, active=active)
                return place
        place = Place(kind, "", "", now)
        self.places.append(place)
        if active is False and place.can_stop:
            self.hold(place, None)
        return place

    def take_over(self, place: Place, client: str, now: float, *, active: bool | None) -> None:
        self.turn_away(place)
        place.change_client()
        place.client = client
        place.is_away = place.has_connected = False
        place.ends_at = None
        if place.is_shut:
            place.contact, place.is_shut = (
                Naive(place.kind.retries, place.kind.delay_ms / 1000),
                False,
            )
            place.hold_until = None
            if active is False:
                self.hold(place, None)
            return
        place.contact.contact(now)
        if active is False and not place.contact.is_held:
            self.hold(place, None)
        elif active is True:
            self.resume(place, now)

    def turn_away(self, place: Place) -> None:
        if place.question is not None:
            place.question.state, place.question = "unknown", None
        place.quiet_until = 0.0

    def end(self, place: Place, *, failed: bool) -> None:
        self.turn_away(place)
        self.settle(place, [*place.hands, *place.returned, *place.waiting], "discarded")
        place.is_over, place.has_failed = True, failed

    # Time

    def tick(self, now: float) -> None:
        for place in self.places:
            if not place.is_over:
                self.look_at(place, now)

    def look_at(self, place: Place, now: float) -> None:
        if place.quiet_until <= now:
            place.quiet_until = 0.0
        if place.hands and place.hands[0].due is not None and place.hands[0].due <= now:
            self.fail(place, place.hands[0], SILENT, None, now)
        if place.is_over:
            return
        if place.ends_at is not None and place.ends_at <= now and place.question is None:
            self.bury_all(place, LOST, now)
            self.end(place, failed=True)
            return
        if place.hold_until is not None and place.hold_until <= now:
            self.resume(place, now)
        if place.can_stop and not place.is_shut:
            place.contact.tick(now)
            if place.contact.is_dead:
                self.bury_all(place, GIVEN_UP, now)
                self.end(place, failed=True)
                return
        if place.deadline is not None and place.deadline <= now:
            if place.question is not None:
                self.hand_over(place.question, now)
            else:
                self.lose(place, now)

    def lose(self, place: Place, now: float) -> None:
        """Nothing was heard of the client for too long."""
        if place.kind.label == "plain":
            self.end(place, failed=False)
            return
        place.deadline = None
        if place.kind.options is not None:
            place.ends_at = now + (SESSION_S if place.is_durable else LONG_S)
        if place.is_shut and place.is_durable:
            return
        place.contact.lost(now)
        if place.contact.is_dead or place.is_shut:
            self.bury_all(place, LOST, now)
            self.end(place, failed=True)
            return
        for copy in place.hands:
            copy.redelivered += 1
            if copy.is_pending:
                copy.batch = 0
        place.take_back(place.hands)

    # Another life

    def restart(self, now: float) -> None:
        """Named sessions go on with what was kept; nobody hears of anything else again."""
        unseen = self.unseen()
        self.places = [place for place in self.places if place.is_durable and not place.is_over]
        self.lanes, self.asked, self.books = {}, [], Counter()
        self.is_store_there = True
        for place in self.places:
            for queue in (place.hands, place.returned, place.waiting):
                queue[:] = [copy for copy in queue if copy.sent.is_kept]
            kept = [sent for sent in unseen if sent.is_kept and place in sent.places]
            place.waiting += map(Copy, dict.fromkeys(kept))
            place.waiting.sort(key=lambda copy: (-copy.sent.priority, copy.number))
            self.revive(place, now)
            self.books["accepted"] += len(place)

    def revive(self, place: Place, now: float) -> None:
        """Its clocks begin anew."""
        kind, was_held = place.kind, place.contact.is_held
        for copy in place.hands:
            copy.is_pending = False
            copy.due = now + kind.response_ms / 1000 if kind.response_ms else None
        if kind.settles == "written":
            place.take_back(place.hands)
        place.contact = Naive(kind.retries, kind.delay_ms / 1000)
        if was_held:
            place.contact.hold()
        if place.hold_until is not None:
            place.hold_until = max(place.hold_until, now)
        place.question, place.quiet_until = None, 0.0
        place.repeats = place.former_seq = 0
        place.is_restored = place.has_connected = True
        place.deadline = None if place.is_away else now + MAX_INTERVAL_S
        place.ends_at = now + SESSION_S if place.is_away else None
