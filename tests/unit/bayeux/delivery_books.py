"""What the model knows of entries: where they are, what is said of them, and how they leave."""

from collections import Counter
from collections.abc import Sequence

from tests.unit.bayeux.delivery_place import MAX_INTERVAL_S, Copy, Place

# A dead letter: receiver, message, code, how often it was handed over and redelivered, and its
# failed attempts.
Letter = tuple[str, int, str, int, int, list[tuple[int, str]]]

LOST = "communication.noConnection"
DELIVERY_ENDED = "communication.noConnection.dead"
SILENT = "communication.responseTimeout"
FULL = "resource.overflow.queue.entries"
HOLDBACK = "user.update.holdback"
DEAD_MESSAGE = "user.update.deadMessage"
# On this channel a refused message has this many attempts, with this pause between (seconds).
PATIENT, ATTEMPTS, BACKOFF_S = "/b", 3, 1.0
# On this one a message is handed over at most this often, and then dies with this code.
DEADLY, MOST_ATTEMPTS, WORN = "/a", 3, "user.update.error"


class Books:
    """All places, and the books of what was in them."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.books: Counter[str] = Counter()
        self.letters: list[Letter] = []
        # What became of each message at each place, once and for all.
        self.fates: dict[tuple[str, int], str] = {}
        # Which client said that it had which message.
        self.takers: list[tuple[str, int]] = []

    # Ways out

    def settle(self, place: Place, copies: Sequence[Copy], how: str) -> None:
        self.books[how] += len(copies)
        for copy in copies:
            key = (place.key, copy.number)
            assert key not in self.fates, f"{key} was {self.fates[key]}, is {how}"
            self.fates[key] = how
        for queue in (place.in_flight, place.returned, place.waiting):
            queue[:] = [copy for copy in queue if copy not in copies]
        if not len(place):
            place.window = 0

    def ack(self, place: Place, copies: Sequence[Copy]) -> None:
        if copies:
            self.settle(place, copies, "acked")
            if place.kind.settles != "written":
                self.takers += [(place.client, copy.number) for copy in copies]
            place.contact.acked()
            self.widen(place, len(copies))

    def bury(self, place: Place, copies: Sequence[Copy], code: str) -> None:
        """Dead letters; plain receivers have none."""
        if place.kind.label == "plain":
            self.settle(place, copies, "discarded")
            return
        self.settle(place, copies, "dead")
        self.letters += [
            (place.key, copy.number, code, copy.attempts, copy.redelivered, copy.trail)
            for copy in copies
        ]

    def bury_all(self, place: Place, code: str, now: float) -> None:
        self.expire(place, now)
        for copy in place.in_flight:
            copy.fail(code)
        self.bury(place, [*place.in_flight, *place.returned, *place.waiting], code)

    def expire(self, place: Place, now: float) -> None:
        """Settle what waits and has outlived its lifetime."""
        here = place.returned + place.waiting
        self.settle(place, [copy for copy in here if copy.sent.ends <= now], "expired")

    def widen(self, place: Place, count: int) -> None:
        """It has settled this many: as many more may go together."""
        if place.window:
            place.window += count

    # What receivers say

    def hear(self, place: Place, now: float) -> None:
        """Any request proves that the client is alive."""
        if place.question is None and place.deadline is not None:
            place.deadline = max(place.deadline, now + MAX_INTERVAL_S)

    def judge(
        self, place: Place, verdicts: Sequence[tuple[int, str, float | None]], now: float
    ) -> bool:
        """Apply the verdicts; return whether anything was refused."""
        failures, has_refused = [], False
        for seq, code, delay_s in verdicts:
            copy = self.find(place, seq)
            if copy is None:
                self.books["unknown"] += 1
                continue
            place.heard = max(place.heard, seq)
            if code == "OK":
                self.ack(place, [copy])
            else:
                failures.append((code == HOLDBACK or code.startswith("comm"), seq, code, delay_s))
        for _, seq, code, delay_s in sorted(failures, key=lambda failure: failure[:2]):
            failed = self.find(place, seq)
            if failed is not None:
                self.fail(place, failed, code, delay_s, now)
                has_refused = True
        return has_refused

    def find(self, place: Place, seq: int) -> Copy | None:
        """The entry whose last number this is, if the present client was handed it."""
        for copy in place.in_flight:
            if copy.seq == seq:
                return copy
        for copy in place.returned:
            if copy.seq == seq > place.former_seq:
                return copy
        return None

    def fail(self, place: Place, copy: Copy, code: str, delay_s: float | None, now: float) -> None:
        copy.fail(code)
        if code == HOLDBACK:
            self.stay(place, copy)
            self.hold(place, None)
        elif code.startswith("communication"):
            place.contact.refused(now, delay_s, copy.attempts)
            if place.contact.is_dead:
                self.bury(place, [copy], code)
                self.bury_all(place, code, now)
                self.end(place, failed=True)
            else:
                self.stay(place, copy)
        elif self.is_tried_again(copy, code):
            self.stay(place, copy)
            place.contact.pause(now, BACKOFF_S * 2 ** (copy.attempts - 1) * 0.75)
        else:
            self.bury(place, [copy], code)
            self.widen(place, 1)
            if code.startswith("user.security.authentication"):
                self.bury_all(place, code, now)
                self.end(place, failed=True)
            elif place.kind.dies_of_refusal and code != DEAD_MESSAGE:
                self.bury_all(place, code, now)
                place.is_shut = True

    def is_tried_again(self, copy: Copy, code: str) -> bool:
        if copy.sent.channel != PATIENT or copy.attempts >= ATTEMPTS:
            return False
        return not code.startswith("user.security.authentication") and code != DEAD_MESSAGE

    def stay(self, place: Place, copy: Copy) -> None:
        """It returns, and so does all behind it without an OK."""
        copy.redelivered += 1
        behind = [each for each in place.in_flight + place.returned if each.seq >= copy.seq]
        for each in behind:
            each.batch = 0
            if each in place.in_flight and each is not copy:
                each.fail("returned")
        if any(each in place.in_flight for each in behind):
            place.fail()
        place.take_back([each for each in behind if each in place.in_flight])

    def keep_pending(self, place: Place, seqs: Sequence[int]) -> None:
        for copy in place.in_flight:
            copy.is_pending = copy.seq in seqs
            if copy.is_pending:
                place.heard = max(place.heard, copy.seq)

    def acknowledge(self, place: Place, batch: int) -> None:
        if place.is_restored and batch > place.batch:
            place.batch = batch
        place.is_restored = False
        if not 0 <= batch <= place.batch:
            self.books["out of range"] += 1
        elif place.kind.settles == "batch":
            passed = [c for c in place.in_flight if c.batch <= batch and not c.is_pending]
            passed += [c for c in place.returned if 0 < c.batch <= batch <= (c.until or batch)]
            if passed:
                place.repeats = 0
            self.ack(place, passed)

    # Holding back, and ends

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
        self.settle(place, [*place.in_flight, *place.returned, *place.waiting], "discarded")

    def turn_away(self, place: Place) -> None:
        if place.question is not None:
            place.question.state, place.question = "unknown", None
        place.quiet_until = 0.0

    def end(self, place: Place, *, failed: bool) -> None:
        self.turn_away(place)
        self.settle(place, [*place.in_flight, *place.returned, *place.waiting], "discarded")
        place.is_over, place.has_failed = True, failed
