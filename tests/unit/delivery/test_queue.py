"""The callback queue: plain and acknowledged, and what happens when it is full."""

from collections.abc import Iterable

import pytest

from holdfast.delivery.batch import NO_BATCH
from holdfast.delivery.counters import Counters, Reason
from holdfast.delivery.entries import SettledBy
from holdfast.delivery.messages import Message
from holdfast.delivery.queue import CallbackQueue, QueueLimits


class Desk:
    """A queue with its counters; messages are texts."""

    def __init__(self, *, acknowledged: bool = False, **limits: int) -> None:
        self.counters = Counters()
        self.queue = CallbackQueue(QueueLimits(**limits), self.counters)
        if acknowledged:
            self.queue.settling = SettledBy.BATCH
        self.batch = NO_BATCH

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
    desk = Desk()
    assert desk.offer("a", "b", "c") == [True, True, True]
    assert desk.hand_over() == "a b c"


def test_a_written_batch_is_settled() -> None:
    desk = Desk()
    desk.offer("a", "b")
    desk.hand_over()
    desk.queue.written(desk.batch)
    assert desk.waiting() == ""
    assert (desk.queue.size, len(desk.queue.in_flight()), desk.counters.acked) == (0, 0, 2)


def test_an_unwritten_batch_is_handed_over_again_before_waiting_messages() -> None:
    desk = Desk()
    desk.offer("a", "b")
    desk.hand_over()
    desk.queue.not_written(desk.batch)
    assert (len(desk.queue.in_flight()), desk.counters.acked) == (0, 0)
    desk.offer("c")
    assert desk.hand_over() == "a b c"


def test_a_message_offered_after_the_hand_over_is_not_settled_with_it() -> None:
    desk = Desk()
    desk.offer("a", "b")
    desk.hand_over()
    desk.offer("c")
    desk.queue.written(desk.batch)
    assert desk.waiting() == "c"
    assert (desk.queue.size, len(desk.queue.in_flight()), desk.counters.acked) == (1, 0, 2)


def test_an_empty_queue_hands_over_nothing() -> None:
    desk = Desk()
    assert desk.hand_over() == ""
    desk.queue.written(desk.batch)
    assert desk.counters.acked == 0


def test_acks_change_nothing_in_a_plain_queue() -> None:
    desk = Desk()
    desk.offer("a")
    desk.hand_over()
    desk.queue.acknowledge(0)
    desk.queue.acknowledge(1)
    assert desk.waiting() == "a"
    assert desk.queue.pause_s() == 0.0


def test_only_messages_that_are_not_lazy_are_urgent() -> None:
    desk = Desk()
    assert not desk.queue.has_urgent()
    desk.offer("a", "b", lazy=True)
    assert not desk.queue.has_urgent()
    desk.offer("c")
    assert desk.queue.has_urgent()


# Limits


def test_a_queue_takes_exactly_as_many_entries_as_its_limit_says() -> None:
    desk = Desk(entries=2)
    assert desk.offer("a", "b", "c") == [True, True, False]
    assert desk.waiting() == "a b"
    assert desk.counters.discarded == {Reason.OVERFLOW_ENTRIES: 1}
    assert desk.balances()


def test_a_queue_takes_exactly_as_many_bytes_as_its_limit_says() -> None:
    desk = Desk(bytes=5)
    assert desk.offer("aa", "bbbb", "ccc", "d") == [True, False, True, False]
    assert desk.waiting() == "aa ccc"
    assert desk.counters.discarded == {Reason.OVERFLOW_BYTES: 2}
    assert desk.balances()


def test_settled_entries_make_room_for_new_ones() -> None:
    desk = Desk(entries=2, bytes=2)
    desk.offer("a", "b")
    desk.hand_over()
    desk.queue.written(desk.batch)
    assert desk.offer("cc") == [True]


def test_unacked_entries_count_against_the_limits() -> None:
    for limits in ({"entries": 3}, {"bytes": 3}):
        desk = Desk(acknowledged=True, **limits)
        desk.offer("a", "b")
        desk.hand_over()
        assert desk.offer("c", "d") == [True, False]
        desk.queue.acknowledge(1)
        assert desk.offer("e", "f", "g") == [True, True, False]
        assert desk.hand_over() == "c e f"
        assert desk.balances()


# Receivers with acks


def acknowledged(*batches: str) -> Desk:
    """A queue whose batches carried these new messages."""
    desk = Desk(acknowledged=True)
    for batch in batches:
        desk.offer(*batch.split())
        desk.hand_over()
    return desk


def test_every_hand_over_is_a_new_batch_even_an_empty_one() -> None:
    desk = acknowledged("", "a", "")
    assert desk.queue.batch == 3


def test_writing_a_batch_settles_nothing_in_a_queue_with_acks() -> None:
    desk = acknowledged("a b")
    desk.queue.written(desk.batch)
    assert desk.waiting() == "a b"
    assert len(desk.queue.in_flight()) == 2


def test_an_unwritten_batch_cannot_be_acked_and_counts_as_no_redelivery() -> None:
    desk = acknowledged("a b")
    desk.queue.not_written(desk.batch)
    assert not desk.queue.in_flight()
    desk.queue.acknowledge(1)
    assert desk.hand_over() == "a b"
    assert desk.counters.redelivered == 0
    desk.queue.acknowledge(2)
    assert desk.waiting() == ""


def test_an_acked_batch_is_settled() -> None:
    desk = acknowledged("a b")
    desk.queue.acknowledge(1)
    assert desk.waiting() == ""
    assert (desk.queue.size, len(desk.queue.in_flight()), desk.counters.acked) == (0, 0, 2)


def test_an_ack_settles_all_batches_up_to_its_own() -> None:
    desk = acknowledged("a", "b", "", "c")
    desk.queue.acknowledge(3)
    assert desk.waiting() == "c"
    assert (len(desk.queue.in_flight()), desk.counters.acked) == (1, 2)
    desk.queue.acknowledge(4)
    assert desk.waiting() == ""


def test_an_ack_does_not_settle_waiting_messages() -> None:
    desk = acknowledged("a")
    desk.offer("b")
    desk.queue.acknowledge(1)
    assert desk.waiting() == "b"
    assert len(desk.queue.in_flight()) == 0


def test_unacked_entries_are_redelivered_first_and_in_order() -> None:
    desk = acknowledged("a b")
    desk.offer("c")
    assert desk.hand_over() == "a b c"
    assert desk.counters.redelivered == 2
    desk.queue.acknowledge(1)
    assert desk.hand_over() == "c"


def test_an_old_ack_settles_nothing_and_is_not_counted_as_out_of_range() -> None:
    desk = acknowledged("a", "b", "c")
    desk.queue.acknowledge(2)
    desk.queue.acknowledge(1)
    desk.queue.acknowledge(0)
    desk.queue.acknowledge(2)
    assert desk.waiting() == "c"
    assert desk.counters.acks_out_of_range == 0


@pytest.mark.parametrize("batch", [-1, -100, 3, 10**30])
def test_an_ack_of_a_batch_that_was_never_sent_settles_nothing_and_is_counted(
    batch: int,
) -> None:
    desk = acknowledged("a", "b")
    desk.queue.acknowledge(batch)
    assert desk.waiting() == "a b"
    assert desk.counters.acks_out_of_range == 1


def test_messages_that_waited_before_acks_were_agreed_are_in_the_first_batch() -> None:
    desk = Desk()
    desk.offer("a")
    desk.queue.settling = SettledBy.BATCH
    assert desk.hand_over() == "a"
    desk.queue.acknowledge(1)
    assert desk.waiting() == ""


def test_an_ack_after_very_many_empty_batches_settles_everything() -> None:
    desk = acknowledged("a", "b", *[""] * 50)
    desk.queue.acknowledge(51)
    assert desk.waiting() == ""
    assert desk.balances()


# Pauses of a receiver that does not ack


def pauses(desk: Desk, repeats: int) -> list[float]:
    found = []
    for _ in range(repeats):
        found.append(round(desk.queue.pause_s(), 3))
        desk.hand_over()
    return found


def test_three_redeliveries_come_at_once_and_later_ones_after_pauses_of_up_to_a_second() -> None:
    desk = acknowledged("a")
    assert pauses(desk, 9) == [0, 0, 0, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@pytest.mark.slow
def test_the_pause_stays_at_a_second_after_thousands_of_redeliveries() -> None:
    desk = acknowledged("a")
    pauses(desk, 5000)
    assert desk.queue.pause_s() == 1.0


def test_an_ack_that_settles_an_entry_ends_the_pauses() -> None:
    desk = acknowledged("a")
    pauses(desk, 6)
    desk.offer("b")
    desk.hand_over()
    desk.queue.acknowledge(7)
    assert len(desk.queue.in_flight()) == 1
    assert desk.queue.pause_s() == 0.0


def test_an_ack_that_settles_nothing_does_not_end_the_pauses() -> None:
    desk = acknowledged("a")
    pauses(desk, 5)
    desk.queue.acknowledge(0)
    assert desk.queue.pause_s() > 0


def test_empty_batches_cause_no_pause() -> None:
    desk = acknowledged(*[""] * 20)
    assert desk.queue.pause_s() == 0.0
