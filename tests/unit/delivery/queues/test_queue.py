"""The callback queue: plain and acknowledged, and what happens when it is full."""

from collections.abc import Iterable
from typing import Any

import pytest

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits


class CountedQueue:
    """A queue with its counters; messages are texts."""

    def __init__(self, *, acknowledged: bool = False, **limits: Any) -> None:
        self.counters = Counters()
        self.queue = CallbackQueue(QueueLimits(**limits), self.counters)
        if acknowledged:
            self.queue.settling = SettledBy.BATCH
        self.batch = Batch(0, 0, messages=(), handed_at=0.0)

    def offer(self, *texts: str, lazy: bool = False) -> list[bool]:
        taken = []
        for text in texts:
            self.counters.accepted += 1
            message = Message(text.encode(), linger_s=1.0 if lazy else None)
            reason = self.queue.offer(message)
            if reason is not None:
                self.counters.discarded[reason] += 1
            taken.append(reason is None)
        return taken

    def hand_over(self) -> str:
        self.batch = self.queue.next_batch(0.0)
        return _texts(self.batch.messages)

    def waiting(self) -> str:
        """Everything in the queue, in order."""
        queue = self.queue
        tried = [*queue.in_flight().values(), *queue.returned.values()]
        return _texts([*(entry.message for entry in tried), *queue.new])

    def balances(self) -> bool:
        return self.counters.accepted == self.counters.settled() + self.queue.count


def _texts(messages: Iterable[Message]) -> str:
    return " ".join(message.wire.decode() for message in messages)


# Plain receivers


def test_messages_are_handed_over_in_order() -> None:
    counted = CountedQueue()
    assert counted.offer("a", "b", "c") == [True, True, True]
    assert counted.hand_over() == "a b c"


def test_a_written_batch_is_settled() -> None:
    counted = CountedQueue()
    counted.offer("a", "b")
    counted.hand_over()
    counted.queue.written(counted.batch)
    assert counted.waiting() == ""
    assert (counted.queue.size, len(counted.queue.in_flight()), counted.counters.acked) == (0, 0, 2)


def test_an_unwritten_batch_is_handed_over_again_before_waiting_messages() -> None:
    counted = CountedQueue()
    counted.offer("a", "b")
    counted.hand_over()
    counted.queue.return_unwritten(counted.batch)
    assert (len(counted.queue.in_flight()), counted.counters.acked) == (0, 0)
    counted.offer("c")
    assert counted.hand_over() == "a b c"


def test_a_message_offered_after_the_hand_over_is_not_settled_with_it() -> None:
    counted = CountedQueue()
    counted.offer("a", "b")
    counted.hand_over()
    counted.offer("c")
    counted.queue.written(counted.batch)
    assert counted.waiting() == "c"
    assert (counted.queue.size, len(counted.queue.in_flight()), counted.counters.acked) == (1, 0, 2)


def test_an_empty_queue_hands_over_nothing() -> None:
    counted = CountedQueue()
    assert counted.hand_over() == ""
    counted.queue.written(counted.batch)
    assert counted.counters.acked == 0


def test_acks_change_nothing_in_a_plain_queue() -> None:
    counted = CountedQueue()
    counted.offer("a")
    counted.hand_over()
    counted.queue.acknowledge(0)
    counted.queue.acknowledge(1)
    assert counted.waiting() == "a"
    assert counted.queue.pause_s() == 0.0


def test_only_messages_that_are_not_lazy_are_urgent() -> None:
    counted = CountedQueue()
    assert not counted.queue.has_urgent()
    counted.offer("a", "b", lazy=True)
    assert not counted.queue.has_urgent()
    counted.offer("c")
    assert counted.queue.has_urgent()


# Limits


def test_a_queue_takes_exactly_as_many_entries_as_its_limit_says() -> None:
    counted = CountedQueue(entries=2)
    assert counted.offer("a", "b", "c") == [True, True, False]
    assert counted.waiting() == "a b"
    assert counted.counters.discarded == {Reason.OVERFLOW_ENTRIES: 1}
    assert counted.balances()


def test_a_queue_takes_exactly_as_many_bytes_as_its_limit_says() -> None:
    counted = CountedQueue(bytes=5)
    assert counted.offer("aa", "bbbb", "ccc", "d") == [True, False, True, False]
    assert counted.waiting() == "aa ccc"
    assert counted.counters.discarded == {Reason.OVERFLOW_BYTES: 2}
    assert counted.balances()


def test_settled_entries_make_room_for_new_ones() -> None:
    counted = CountedQueue(entries=2, bytes=2)
    counted.offer("a", "b")
    counted.hand_over()
    counted.queue.written(counted.batch)
    assert counted.offer("cc") == [True]


def test_unacked_entries_count_against_the_limits() -> None:
    for limits in ({"entries": 3}, {"bytes": 3}):
        counted = CountedQueue(acknowledged=True, **limits)
        counted.offer("a", "b")
        counted.hand_over()
        assert counted.offer("c", "d") == [True, False]
        counted.queue.acknowledge(1)
        assert counted.offer("e", "f", "g") == [True, True, False]
        assert counted.hand_over() == "c e f"
        assert counted.balances()


# Receivers with acks


def acknowledged(*batches: str) -> CountedQueue:
    """A queue whose batches carried these new messages."""
    counted = CountedQueue(acknowledged=True)
    for batch in batches:
        counted.offer(*batch.split())
        counted.hand_over()
    return counted


def test_every_hand_over_is_a_new_batch_even_an_empty_one() -> None:
    counted = acknowledged("", "a", "")
    assert counted.queue.batch == 3


def test_writing_a_batch_settles_nothing_in_a_queue_with_acks() -> None:
    counted = acknowledged("a b")
    counted.queue.written(counted.batch)
    assert counted.waiting() == "a b"
    assert len(counted.queue.in_flight()) == 2


def test_an_unwritten_batch_cannot_be_acked_and_counts_as_no_redelivery() -> None:
    counted = acknowledged("a b")
    counted.queue.return_unwritten(counted.batch)
    assert not counted.queue.in_flight()
    counted.queue.acknowledge(1)
    assert counted.hand_over() == "a b"
    assert counted.counters.redelivered == 0
    counted.queue.acknowledge(2)
    assert counted.waiting() == ""


def test_an_acked_batch_is_settled() -> None:
    counted = acknowledged("a b")
    counted.queue.acknowledge(1)
    assert counted.waiting() == ""
    assert (counted.queue.size, len(counted.queue.in_flight()), counted.counters.acked) == (0, 0, 2)


def test_an_ack_settles_all_batches_up_to_its_own() -> None:
    counted = acknowledged("a", "b", "", "c")
    counted.queue.acknowledge(3)
    assert counted.waiting() == "c"
    assert (len(counted.queue.in_flight()), counted.counters.acked) == (1, 2)
    counted.queue.acknowledge(4)
    assert counted.waiting() == ""


def test_an_ack_does_not_settle_waiting_messages() -> None:
    counted = acknowledged("a")
    counted.offer("b")
    counted.queue.acknowledge(1)
    assert counted.waiting() == "b"
    assert len(counted.queue.in_flight()) == 0


def test_unacked_entries_are_redelivered_first_and_in_order() -> None:
    counted = acknowledged("a b")
    counted.offer("c")
    assert counted.hand_over() == "a b c"
    assert counted.counters.redelivered == 2
    counted.queue.acknowledge(1)
    assert counted.hand_over() == "c"


def test_an_old_ack_settles_nothing_and_is_not_counted_as_out_of_range() -> None:
    counted = acknowledged("a", "b", "c")
    counted.queue.acknowledge(2)
    counted.queue.acknowledge(1)
    counted.queue.acknowledge(0)
    counted.queue.acknowledge(2)
    assert counted.waiting() == "c"
    assert counted.counters.acks_out_of_range == 0


@pytest.mark.parametrize("batch", [-1, -100, 3, 10**30])
def test_an_ack_of_a_batch_that_was_never_sent_settles_nothing_and_is_counted(
    batch: int,
) -> None:
    counted = acknowledged("a", "b")
    counted.queue.acknowledge(batch)
    assert counted.waiting() == "a b"
    assert counted.counters.acks_out_of_range == 1


def test_messages_that_waited_before_acks_were_agreed_are_in_the_first_batch() -> None:
    counted = CountedQueue()
    counted.offer("a")
    counted.queue.settling = SettledBy.BATCH
    assert counted.hand_over() == "a"
    counted.queue.acknowledge(1)
    assert counted.waiting() == ""


def test_an_ack_after_very_many_empty_batches_settles_everything() -> None:
    counted = acknowledged("a", "b", *[""] * 50)
    counted.queue.acknowledge(51)
    assert counted.waiting() == ""
    assert counted.balances()


# Pauses of a receiver that does not ack


def pauses(counted: CountedQueue, repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        found.append(round(counted.queue.pause_s(), 3))
        counted.hand_over()
    return found


def test_three_redeliveries_come_at_once_and_later_ones_after_pauses_of_up_to_a_second() -> None:
    counted = acknowledged("a")
    assert pauses(counted, 9) == [0, 0, 0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.slow
def test_the_pause_stays_at_a_second_after_thousands_of_redeliveries() -> None:
    counted = acknowledged("a")
    pauses(counted, 5000)
    assert counted.queue.pause_s() == 1.0


def test_an_ack_that_settles_an_entry_ends_the_pauses() -> None:
    counted = acknowledged("a")
    pauses(counted, 6)
    counted.offer("b")
    counted.hand_over()
    counted.queue.acknowledge(7)
    assert len(counted.queue.in_flight()) == 1
    assert counted.queue.pause_s() == 0.0


def test_an_ack_that_settles_nothing_does_not_end_the_pauses() -> None:
    counted = acknowledged("a")
    pauses(counted, 5)
    counted.queue.acknowledge(0)
    assert counted.queue.pause_s() > 0


def test_empty_batches_cause_no_pause() -> None:
    counted = acknowledged(*[""] * 20)
    assert counted.queue.pause_s() == 0.0
