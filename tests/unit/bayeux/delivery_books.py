"""What the model knows of entries: where they are, what is said of them, and how they leave."""

from collections import Counter
from collections.abc import Sequence

from tests.unit.bayeux.delivery_receiver import MAX_INTERVAL_S, Copy, Receiver

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
DEADLY, MOST_ATTEMPTS, EXHAUSTED = "/a", 3, "user.update.error"


class Books:
    """All receivers, and the books of what was in them."""

    def __init__(self) -> None:
        self.receivers: list[Receiver] = []
        self.books: Counter[str] = Counter()
        self.letters: list[Letter] = []
        # What became of each message at each receiver, once and for all.
        self.fates: dict[tuple[str, int], str] = {}
        # Which client said that it had which message.
        self.takers: list[tuple[str, int]] = []

    # Ways out

    def settle(self, receiver: Receiver, copies: Sequence[Copy], how: str) -> None:
        self.books[how] += len(copies)
        for copy in copies:
            key = (receiver.key, copy.number)
            assert key not in self.fates, f"{key} was {self.fates[key]}, is {how}"
            self.fates[key] = how
        for queue in (receiver.in_flight, receiver.returned, receiver.new):
            queue[:] = [copy for copy in queue if copy not in copies]
        if not len(receiver):
            receiver.window = 0

    def ack(self, receiver: Receiver, copies: Sequence[Copy]) -> None:
        if copies:
            self.settle(receiver, copies, "acked")
            if receiver.kind.settles != "written":
                self.takers += [(receiver.client, copy.number) for copy in copies]
            receiver.contact.acked()
            self.widen(receiver, len(copies))

    def bury(self, receiver: Receiver, copies: Sequence[Copy], code: str) -> None:
        """Dead letters; plain receivers have none."""
        if receiver.kind.label == "plain":
            self.settle(receiver, copies, "discarded")
            return
        self.settle(receiver, copies, "dead")
        self.letters += [
            (receiver.key, copy.number, code, copy.attempts, copy.redelivered, copy.trail)
            for copy in copies
        ]

    def bury_all(self, receiver: Receiver, code: str, now: float) -> None:
        self.expire(receiver, now)
        for copy in receiver.in_flight:
            copy.fail(code)
        self.bury(receiver, [*receiver.in_flight, *receiver.returned, *receiver.new], code)

    def expire(self, receiver: Receiver, now: float) -> None:
        """Settle what waits and has outlived its lifetime."""
        here = receiver.returned + receiver.new
        self.settle(receiver, [copy for copy in here if copy.sent.ends <= now], "expired")

    def widen(self, receiver: Receiver, count: int) -> None:
        """It has settled this many: as many more may go together."""
        if receiver.window:
            receiver.window += count

    # What receivers say

    def hear(self, receiver: Receiver, now: float) -> None:
        """Any request proves that the client is alive."""
        if receiver.question is None and receiver.deadline is not None:
            receiver.deadline = max(receiver.deadline, now + MAX_INTERVAL_S)

    def judge(
        self, receiver: Receiver, verdicts: Sequence[tuple[int, str, float | None]], now: float
    ) -> bool:
        """Apply the verdicts; return whether anything was refused."""
        failures, has_refused = [], False
        for seq, code, delay_s in verdicts:
            copy = self.find(receiver, seq)
            if copy is None:
                self.books["unknown"] += 1
                continue
            receiver.heard = max(receiver.heard, seq)
            if code == "OK":
                self.ack(receiver, [copy])
            else:
                failures.append((code == HOLDBACK or code.startswith("comm"), seq, code, delay_s))
        for _, seq, code, delay_s in sorted(failures, key=lambda failure: failure[:2]):
            failed = self.find(receiver, seq)
            if failed is not None:
                self.fail(receiver, failed, code, delay_s, now)
                has_refused = True
        return has_refused

    def find(self, receiver: Receiver, seq: int) -> Copy | None:
        """The entry whose last number this is, if the present client was handed it."""
        for copy in receiver.in_flight:
            if copy.seq == seq:
                return copy
        for copy in receiver.returned:
            if copy.seq == seq > receiver.former_seq:
                return copy
        return None

    def fail(
        self, receiver: Receiver, copy: Copy, code: str, delay_s: float | None, now: float
    ) -> None:
        copy.fail(code)
        if code == HOLDBACK:
            self.stay(receiver, copy)
            self.hold(receiver, None)
        elif code.startswith("communication"):
            receiver.contact.refused(now, delay_s, copy.attempts)
            if receiver.contact.is_dead:
                self.bury(receiver, [copy], code)
                self.bury_all(receiver, code, now)
                self.end(receiver, failed=True)
            else:
                self.stay(receiver, copy)
        elif self.is_tried_again(copy, code):
            self.stay(receiver, copy)
            receiver.contact.pause(now, BACKOFF_S * 2 ** (copy.attempts - 1) * 0.75)
        else:
            self.bury(receiver, [copy], code)
            self.widen(receiver, 1)
            if code.startswith("user.security.authentication"):
                self.bury_all(receiver, code, now)
                self.end(receiver, failed=True)
            elif receiver.kind.dies_of_refusal and code != DEAD_MESSAGE:
                self.bury_all(receiver, code, now)
                receiver.is_shut = True

    def is_tried_again(self, copy: Copy, code: str) -> bool:
        if copy.sent.channel != PATIENT or copy.attempts >= ATTEMPTS:
            return False
        return not code.startswith("user.security.authentication") and code != DEAD_MESSAGE

    def stay(self, receiver: Receiver, copy: Copy) -> None:
        """It returns, and so does all behind it without an OK."""
        copy.redelivered += 1
        behind = [each for each in receiver.in_flight + receiver.returned if each.seq >= copy.seq]
        for each in behind:
            each.batch = 0
            if each in receiver.in_flight and each is not copy:
                each.fail("returned")
        if any(each in receiver.in_flight for each in behind):
            receiver.fail()
        receiver.return_copies([each for each in behind if each in receiver.in_flight])

    def keep_pending(self, receiver: Receiver, seqs: Sequence[int]) -> None:
        for copy in receiver.in_flight:
            copy.is_pending = copy.seq in seqs
            if copy.is_pending:
                receiver.heard = max(receiver.heard, copy.seq)

    def acknowledge(self, receiver: Receiver, batch: int) -> None:
        if receiver.is_restored and batch > receiver.batch:
            self.believe(receiver, batch)
        receiver.is_restored = False
        if not 0 <= batch <= receiver.batch:
            self.books["out of range"] += 1
        elif receiver.kind.settles == "batch":
            passed = [c for c in receiver.in_flight if c.batch <= batch and not c.is_pending]
            passed += [c for c in receiver.returned if 0 < c.batch <= batch <= (c.until or batch)]
            if passed:
                receiver.repeats = 0
            self.ack(receiver, passed)

    def believe(self, receiver: Receiver, batch: int) -> None:
        """The store may have lost refusals with this batch, of which it knows nothing."""
        receiver.batch = batch
        if receiver.kind.options is not None:
            for copy in receiver.in_flight:
                copy.batch = batch + 1
            for copy in receiver.returned:
                copy.batch = 0

    # Holding back, and ends

    def hold(self, receiver: Receiver, until: float | None) -> None:
        receiver.contact.has_connected |= not receiver.can_stop
        receiver.can_stop = True
        receiver.contact.hold()
        receiver.hold_until = until

    def resume(self, receiver: Receiver, now: float) -> None:
        if receiver.contact.is_held:
            receiver.contact.resume(now)
            receiver.hold_until = None

    def clear(self, receiver: Receiver) -> None:
        self.settle(receiver, [*receiver.in_flight, *receiver.returned, *receiver.new], "discarded")

    def turn_away(self, receiver: Receiver) -> None:
        if receiver.question is not None:
            receiver.question.state, receiver.question = "unknown", None
        receiver.quiet_until = 0.0

    def end(self, receiver: Receiver, *, failed: bool) -> None:
        self.turn_away(receiver)
        self.settle(receiver, [*receiver.in_flight, *receiver.returned, *receiver.new], "discarded")
        receiver.is_over, receiver.has_failed = True, failed
