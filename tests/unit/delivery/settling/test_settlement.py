"""What becomes of entries when receivers answer or fail, without a protocol."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.delivery.basics import error_codes
from holdfast.delivery.basics.error_codes import CODES, ErrorCode
from holdfast.delivery.basics.node import Node
from holdfast.delivery.basics.notices import Notices
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.guard.holds import Guard
from holdfast.delivery.letters.exempt import leave_no_letter
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.letter_quota import LetterLimits
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.verdicts import Verdict
from holdfast.delivery.ports.error_handler import ErrorHandler, Failure
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.delivery.ports.ledger import Ledger
from holdfast.delivery.queues.dispatcher import Dispatcher, Policy
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.settling.attempt_notes import AttemptNotes
from holdfast.delivery.settling.delivery_parts import DeliveryParts
from holdfast.delivery.settling.failures import Failures
from holdfast.delivery.settling.hand_overs import HandOvers
from holdfast.delivery.settling.reactions import DefaultErrorHandler, RetryThenDead
from holdfast.delivery.settling.settlement import Settlement
from holdfast.delivery.settling.undelivered import Undelivered
from tests.unit.delivery.fake_keeper import FakeKeeper
from tests.unit.delivery.lone_hub import GUARD_LIMITS
from tests.unit.delivery.waiting_places import empty_places

if TYPE_CHECKING:
    from holdfast.delivery.letters.dead import DeadLetter

SECOND = 1_000_000_000
REFUSED = CODES["user.update.error"]
BUSY = CODES["communication.noConnection"]


class Court:
    """A settlement with one receiver, and what it asks of its owner."""

    def __init__(self, *, is_durable: bool = True, policy: Policy | None = None) -> None:
        self.keeper = FakeKeeper()
        self.ledger = Ledger(self.keeper)
        self.counters = self.ledger.counters
        self.ended: list[ErrorCode] = []
        self.told: list[DeadLetter] = []
        self.alerts: list[str] = []
        # Other receivers of the channel.
        self.others: list[str] = []
        self.noted = 0
        self.chosen: ErrorHandler = DefaultErrorHandler()
        self.wants = True
        self.most: int | None = None
        self.now = 100.0
        self._numbers = count(1)
        node = Node("here", self._stamp, "test")
        self.guard = Guard(lambda _: True, GUARD_LIMITS)
        parts = DeliveryParts(
            self,
            self.keeper,
            journal=NO_JOURNAL,
            ledger=self.ledger,
            node=node,
            guard=self.guard,
            notices=Notices(),
            attempt_notes=AttemptNotes(node),
            waiting_places=empty_places(self.keeper, node),
        )
        self.settlement: Settlement[Receiver] = Settlement(parts)
        self.undelivered: Undelivered[Receiver] = Undelivered(parts)
        self.hand_overs: HandOvers[Receiver] = HandOvers(parts, self.undelivered)
        self.failures: Failures[Receiver] = Failures(parts, self.undelivered, self._fail_session)
        self.receiver = self.add(7, policy)
        self.receiver.is_durable = is_durable
        self.queue = self.receiver.queue

    def add(self, number: int, policy: Policy | None = None) -> Receiver:
        receiver = Receiver(CallbackQueue(QueueLimits(), self.counters), number)
        receiver.transport = "websocket"
        receiver.queue.settling = SettledBy.BATCH
        receiver.dispatcher = Dispatcher(policy or Policy(retries=2, delay_s=1.0))
        receiver.dispatcher.contact(self.now)
        return receiver

    def _stamp(self) -> int:
        return round(self.now * SECOND) + next(self._numbers)

    def _fail_session(self, receiver: Receiver, code: ErrorCode) -> None:
        self.ended.append(code)

    # The owner

    def announce(self, dead: Sequence[UnwrittenLetter], told: Callable[[], None], /) -> None:
        self.told += [each.letter() for each in dead]
        told()

    def note(self, receiver: Receiver, now: float, /) -> None:
        self.noted += 1

    def handler(self, receiver: Receiver, channel: str, /) -> ErrorHandler:
        return self.chosen

    def wants_letters(self, receiver: Receiver, channel: str, /) -> bool:
        return self.wants

    def reached(self, channel: str, now: float, /) -> Iterable[str]:
        return self.others

    def max_attempts(self, channel: str, /) -> int | None:
        return self.most

    def alert(self, channel: str, reason: str, /) -> None:
        self.alerts.append(f"{channel}: {reason}")

    def release(self, channel: str, /) -> None:
        self.alerts.append(f"{channel} flows")

    def policy(self, receiver: Receiver, /) -> Mapping[str, Any] | None:
        return {"retries": 2}

    # What tests do

    def offer(self, *texts: str, receiver: Receiver | None = None) -> None:
        receiver = receiver or self.receiver
        for text in texts:
            message = Message(text.encode(), id=ord(text), channel="/a")
            message.is_durable = receiver.is_durable
            self.counters.accepted += 1
            assert receiver.queue.offer(message) is None
            if receiver.is_durable:
                self.keeper.keep(message, (receiver.key,), lambda _: None)

    def hand_over(self, *texts: str) -> list[Entry]:
        self.offer(*texts)
        self.batch = self.queue.next_batch(self.now)
        entries = [self.queue.in_flight()[seq] for seq in self.batch.numbers]
        self.ledger.marked(self.receiver, entries)
        return entries

    def judge(self, *verdicts: Verdict, receiver: Receiver | None = None) -> None:
        receiver = receiver or self.receiver
        trial = self.settlement.settle_confirmed(receiver, verdicts, self.now)
        assert self.failures.carry_out(receiver, trial, self.now, lambda: False)

    def fail(self, code: ErrorCode, entry: Entry | None = None) -> None:
        self.failures.react_to(self.receiver, Failure(code, "why"), self.now, entry)

    def kept(self) -> dict[str, Mark]:
        """What the store has of the queue."""
        queue = self.keeper.queues.get(self.receiver.key, {})
        return {chr(id): mark for id, mark in queue.items()}

    def letters(self) -> list[tuple[str, str]]:
        return [(letter.wire.decode(), letter.code) for letter in self.keeper.letters]

    def balances(self) -> bool:
        return self.counters.accepted == self.counters.settled() + self.queue.count


def ok(seq: int) -> Verdict:
    return Verdict(seq, ok=True)


def no(seq: int, code: ErrorCode = REFUSED, text: str = "") -> Verdict:
    return Verdict(seq, ok=False, code=code, text=text)


# Verdicts


def test_an_acked_entry_leaves_the_store() -> None:
    court = Court()
    court.hand_over("a", "b")
    court.judge(ok(1))
    assert court.kept().keys() == {"b"}
    assert court.counters.acked == 1
    assert court.balances()


def test_a_message_that_its_receiver_declares_dead_counts_as_acknowledged_there() -> None:
    court = Court()
    dispatcher = court.receiver.dispatcher
    assert dispatcher is not None
    court.hand_over("a", "b", "c")
    court.judge(ok(1), no(2, CODES["user.update.deadMessage"]), no(3))
    assert dispatcher.acknowledged == 2


def test_an_ack_of_no_entry_does_not_reset_the_attempts() -> None:
    court = Court()
    assert court.receiver.dispatcher is not None
    court.receiver.dispatcher.refused(court.now)
    court.settlement.took(court.receiver, [], court.now)
    assert court.receiver.dispatcher.attempt == 1


def test_a_receiver_without_a_dispatcher_can_ack() -> None:
    court = Court()
    court.receiver.dispatcher = None
    court.hand_over("a")
    court.settlement.took(court.receiver, court.queue.settle([1]), court.now)
    assert court.kept() == {}


def test_a_second_verdict_on_an_entry_has_no_effect() -> None:
    court = Court()
    court.hand_over("a")
    court.judge(no(1), no(1, text="again"))
    assert court.letters() == [("a", REFUSED.text)]
    court.judge(ok(1))
    assert court.counters.verdicts_unknown == 1


def test_a_verdict_ok_counts_before_a_refusal_that_ends_the_session() -> None:
    court = Court()
    court.hand_over("a", "b", "c")
    court.judge(no(1, CODES["user.security.authentication.accessDenied"]), ok(2))
    assert [wire for wire, _ in court.letters()] == ["a", "c"]
    assert court.ended == [CODES["user.security.authentication.accessDenied"]]
    assert court.balances()


def test_refusals_of_single_messages_are_settled_before_one_that_stops_the_queue() -> None:
    court = Court()
    court.hand_over("a", "b", "c")
    court.judge(no(1, error_codes.HOLDBACK), no(3))
    assert court.letters() == [("c", REFUSED.text)]
    assert [entry.seq for entry in court.queue.returned.values()] == [1, 2]


def test_entries_return_from_the_first_one_that_stops_the_queue() -> None:
    court = Court()
    court.hand_over("a", "b", "c")
    court.judge(no(3, error_codes.HOLDBACK), no(2, error_codes.HOLDBACK))
    assert court.queue.in_flight().keys() == {1}
    assert [entry.redelivered for entry in court.queue.returned.values()] == [1, 1]


def test_the_store_has_the_marks_of_returned_entries() -> None:
    court = Court()
    court.hand_over("a", "b")
    court.judge(no(1, BUSY))
    a, b = court.queue.returned.values()
    assert court.kept() == {
        "a": Mark(ord("a"), -1, 0, attempts=1, redelivered=1, position=1, trail=a.trail),
        "b": Mark(ord("b"), -2, 0, attempts=1, redelivered=0, position=2, trail=b.trail),
    }
    assert [each.outcome for each in (*a.trail, *b.trail)] == [BUSY.text, "returned"]


def test_a_verdict_without_a_code_changes_nothing() -> None:
    court = Court()
    court.hand_over("a")
    court.judge(Verdict(1, ok=False))
    assert court.queue.in_flight().keys() == {1}


# Failures


def test_lost_contact_returns_all_entries_in_flight() -> None:
    court = Court()
    court.hand_over("a", "b")
    court.failures.react_to(court.receiver, Failure(BUSY, "", by_client=False), court.now)
    assert [entry.redelivered for entry in court.queue.returned.values()] == [1, 1]
    assert {mark.batch for mark in court.kept().values()} == {1}
    assert court.counters.redelivered == 2


def test_each_failure_without_a_verdict_returns_the_entry_again() -> None:
    court = Court(policy=Policy(retries=-1, delay_s=1.0))
    for _ in range(2):
        court.offer(*("" if court.queue.count else "a"))
        (entry,) = court.hand_over()
        court.fail(BUSY, entry)
        assert [*court.queue.returned.values()] == [entry]
        assert not court.queue.in_flight()


def test_the_last_failure_dead_letters_the_queue_and_ends_the_session() -> None:
    court = Court(policy=Policy(retries=0))
    (entry,) = court.hand_over("a")
    court.offer("b")
    court.fail(BUSY, entry)
    assert court.letters() == [("a", BUSY.text), ("b", BUSY.text)]
    assert court.receiver.leaves_letters
    assert court.ended == [BUSY]


def test_an_expired_message_does_not_become_a_dead_letter() -> None:
    court = Court(policy=Policy(retries=0))
    message = Message(b"x", id=1, channel="/a")
    message.limit_life(1, is_forced=True)
    court.counters.accepted += 1
    court.queue.offer(message)
    (entry,) = court.hand_over("a")[1:]
    court.queue.return_from()
    court.fail(BUSY, entry)
    assert court.letters() == [("a", BUSY.text)]
    assert court.counters.expired == 1
    assert court.balances()


def test_settling_a_passing_message_removes_nothing_from_the_store() -> None:
    court = Court()
    court.offer("a", "b")
    for message in court.queue.new:
        court.queue.track_lifetime(message)
        message.limit_life(1, is_forced=True)
    court.queue.new[1].is_durable = False
    court.keeper.is_full = True
    court.undelivered.expire_waiting(court.receiver)
    assert court.counters.expired == 2
    assert [*court.keeper.queues[court.receiver.key]] == [ord("b")]
    passing = Message(b"c", id=ord("b"), channel="/a")
    court.undelivered.turned_away([court.receiver], passing, Reason.OVERFLOW_ENTRIES)
    assert court.counters.discarded == {Reason.OVERFLOW_ENTRIES: 1}
    assert [*court.keeper.queues[court.receiver.key]] == [ord("b")]


def test_a_failure_of_a_receiver_without_a_dispatcher_dead_letters_its_entry() -> None:
    court = Court()
    court.receiver.dispatcher = None
    (entry,) = court.hand_over("a")
    court.fail(BUSY, entry)
    assert court.letters() == [("a", BUSY.text)]


def test_a_letter_lists_every_attempt() -> None:
    court = Court(policy=Policy(retries=-1, delay_s=1.0))
    (entry,) = court.hand_over("a")
    for _ in range(2):
        court.now += 0.25
        court.fail(BUSY, entry)
        court.now += 1.0
        assert court.receiver.dispatcher is not None
        court.receiver.dispatcher.due(court.now)
        (entry,) = court.hand_over()
    court.now += 0.5
    court.fail(REFUSED, entry)
    (letter,) = court.keeper.letters
    told = [(each.n, each.outcome, each.latency) for each in letter.attempts]
    assert told == [(1, BUSY.text, 250), (2, BUSY.text, 250), (3, REFUSED.text, 500)]
    assert {each.transport for each in letter.attempts} == {"websocket"}
    assert [each.time for each in letter.attempts] == [100_000, 101_250, 102_500]
    assert letter.reason == f"{REFUSED.meaning}: why"
    assert letter.policy == {"retries": 2}


def test_the_trail_of_an_entry_keeps_the_first_five_and_the_last_five_attempts() -> None:
    court = Court(policy=Policy(retries=-1, delay_s=1.0))
    (entry,) = court.hand_over("a")
    for number in range(50):
        entry.attempts = number
        court.fail(BUSY, entry)
    assert [each.n for each in entry.trail] == [*range(5), *range(45, 50)]


def test_a_refused_message_changes_neither_record_nor_deadline_of_its_session() -> None:
    court = Court()
    court.hand_over("a", "b")
    court.judge(no(1))
    assert court.letters() == [("a", REFUSED.text)]
    assert court.noted == 0


def test_an_error_handler_may_have_a_message_tried_again() -> None:
    court = Court()
    court.chosen = RetryThenDead(2, 1.0, 60.0, lambda: 0.0)
    court.hand_over("a")
    court.judge(no(1))
    assert court.letters() == []
    assert not court.receiver.flows(court.now)
    assert court.noted == 1, "the end of the pause is a new deadline"
    court.now += 1.0
    court.queue.next_batch(court.now)
    court.judge(no(2))
    assert court.letters() == [("a", REFUSED.text)]


# Letters


def test_letters_are_announced_when_the_store_has_them() -> None:
    court = Court()
    court.hand_over("a")
    court.judge(no(1))
    assert court.told == []
    court.keeper.turn()
    assert [letter.wire for letter in court.told] == [b"a"]


def test_a_message_that_leaves_no_letter_is_discarded() -> None:
    court = Court()
    (entry,) = court.hand_over("a")
    leave_no_letter(entry.message)
    court.judge(no(1))
    assert court.letters() == []
    assert court.kept() == {}
    assert court.counters.discarded == {Reason.NO_LETTER: 1}


@pytest.mark.parametrize("is_durable", [True, False])
def test_letters_that_are_not_wanted_are_not_made(is_durable: bool) -> None:
    court = Court(is_durable=is_durable)
    court.wants = False
    court.hand_over("a")
    court.judge(no(1))
    assert (court.letters(), court.kept()) == ([], {})
    assert court.balances()


def test_a_dead_message_is_discarded_and_counted_while_the_store_is_full() -> None:
    court = Court()
    court.hand_over("a")
    court.keeper.is_full = True
    court.judge(no(1))
    assert court.letters() == []
    assert court.counters.discarded == {Reason.STORE_UNAVAILABLE: 1}
    assert court.balances()


# Messages that are turned away


@pytest.mark.parametrize(
    ("reason", "is_stopped", "code"),
    [
        (Reason.OVERFLOW_ENTRIES, False, "resource.overflow.queue.entries"),
        (Reason.OVERFLOW_BYTES, False, "resource.overflow.queue.bytes"),
        (Reason.SESSION_ENDED, True, "communication.noConnection.dead"),
        (Reason.SESSION_ENDED, False, None),
    ],
)
def test_a_message_that_is_turned_away_is_dead_or_discarded_by_its_reason(
    reason: Reason, is_stopped: bool, code: str | None
) -> None:
    court = Court()
    if is_stopped:
        court.receiver.advance(SessionInput.STOP)
    court.counters.accepted += 1
    court.undelivered.turned_away([court.receiver], Message(b"a", channel="/a"), reason)
    assert court.letters() == ([] if code is None else [("a", code)])
    assert court.counters.discarded == ({reason: 1} if code is None else {})
    assert court.balances()


def test_overflow_is_only_counted_where_letters_are_not_wanted() -> None:
    court = Court()
    court.wants = False
    court.counters.accepted += 1
    court.undelivered.turned_away(
        [court.receiver], Message(b"a", channel="/a"), Reason.OVERFLOW_ENTRIES
    )
    assert court.counters.discarded == {Reason.OVERFLOW_ENTRIES: 1}


def test_overflow_of_many_queues_is_counted_and_removes_stored_entries_from_the_store() -> None:
    court = Court()
    court.wants = False
    message = Message(b"a", id=7, channel="/a")
    message.is_durable = True
    court.keeper.keep(message, [court.receiver.key], lambda _: None)
    court.keeper.turn()
    crowd = [court.add(number) for number in range(20, 23)]
    court.undelivered.turned_away(
        [crowd[0], court.receiver, *crowd[1:]], message, Reason.OVERFLOW_ENTRIES
    )
    court.keeper.turn()
    assert court.keeper.queues.get(court.receiver.key, {}) == {}
    assert court.counters.discarded == {Reason.OVERFLOW_ENTRIES: 4}


def test_messages_turned_away_while_letters_are_congested_are_only_counted() -> None:
    court = Court()
    flood = Message(b"x" * (5 * 1024 * 1024), channel="/a")
    for _ in range(3):
        court.undelivered.turned_away([court.receiver], flood, Reason.OVERFLOW_BYTES)
    assert len(court.keeper.letters) == 1
    assert court.undelivered.is_congested
    court.keeper.turn()
    assert not court.undelivered.is_congested
    assert court.counters.discarded == {Reason.OVERFLOW_BYTES: 2}


# Very many verdicts at once


def test_refusals_that_a_turn_has_no_time_for_are_carried_out_in_later_turns() -> None:
    court = Court()
    court.hand_over(*"abcd")
    trial = court.settlement.settle_confirmed(
        court.receiver, [no(4, error_codes.HOLDBACK), no(2), ok(3), no(1)], court.now
    )
    turns = [
        court.failures.carry_out(court.receiver, trial, court.now, lambda: True) for _ in range(3)
    ]
    assert turns == [False, False, True]
    assert trial.refused_any
    at_once = Court()
    at_once.hand_over(*"abcd")
    at_once.judge(no(4, error_codes.HOLDBACK), no(2), ok(3), no(1))
    for each in (court, at_once):
        assert (each.counters.dead, each.counters.acked, each.counters.redelivered) == (2, 1, 1)
    assert list(court.queue.returned) == list(at_once.queue.returned) == [4]
    assert len(court.keeper.letters) == len(at_once.keeper.letters) == 2


def test_entries_that_return_together_are_marked_together_only_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    court = Court(is_durable=True)
    court.hand_over(*"abcdefgh")
    marks: list[int] = []

    def mark(key: str, of: Sequence[Mark]) -> None:
        marks.append(len(of))

    monkeypatch.setattr(court.keeper, "mark", mark)
    court.judge(*[no(seq, error_codes.HOLDBACK) for seq in range(2, 9)])
    assert marks == [7, 1, 1, 1, 1, 1, 1]
    assert [entry.redelivered for entry in court.queue.returned.values()] == [1] * 7


def test_a_dead_message_beyond_the_letter_quota_is_discarded_and_counted() -> None:
    court = Court()
    room = court.keeper.letter_quota
    room.limits = LetterLimits(share=0)
    room.add("/a", "somebody else", 1)
    entries = court.hand_over("a")
    court.fail(REFUSED, entries[0])
    assert court.keeper.letters == []
    assert court.counters.discarded[Reason.LETTERS_FULL] == 1
    assert court.kept() == {}
    assert court.balances()


def test_a_letter_counts_against_the_letter_quota() -> None:
    court = Court()
    entries = court.hand_over("a")
    court.fail(REFUSED, entries[0])
    assert court.keeper.letter_quota.all.count == 1
