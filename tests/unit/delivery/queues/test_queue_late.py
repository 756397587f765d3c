"""Late messages: each takes the place among waiting messages that it would have had."""

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits


class Bench:
    """A queue; messages are numbers, and in the last three digits of their ids is the shard."""

    def __init__(self, *, has_one_clock: bool = True) -> None:
        self.queue = CallbackQueue(QueueLimits(has_one_clock=has_one_clock), Counters())

    def offer(self, *numbers: int, priority: int = 5, shard: int = 0) -> None:
        for number in numbers:
            self._offer(1000 * number + shard, priority)

    def offer_late(self, *numbers: int, priority: int = 5) -> None:
        for number in numbers:
            self.queue.is_mixed = True
            self._offer(1000 * number, priority, is_late=True)

    def _offer(self, id: int, priority: int, *, is_late: bool = False) -> None:
        message = Message(b"", id=id)
        message.priority, message.is_late = priority, is_late
        assert self.queue.offer(message) is None

    def waiting(self) -> list[int]:
        return [message.id // 1000 for message in self.queue.new]


def test_a_late_message_takes_its_place_by_id_among_waiting_messages() -> None:
    bench = Bench()
    bench.offer(1, 3, 5)
    bench.offer_late(4, 2)
    assert bench.waiting() == [1, 2, 3, 4, 5]


def test_a_late_message_takes_its_place_among_messages_of_its_priority() -> None:
    bench = Bench()
    bench.offer(4, 5)
    bench.offer(6, priority=9)
    bench.offer(7, priority=1)
    bench.offer_late(3)
    bench.offer_late(2, priority=9)
    assert bench.waiting() == [2, 6, 3, 4, 5, 7]


def test_a_message_offered_after_a_late_one_waits_behind_it() -> None:
    bench = Bench()
    bench.offer_late(1, 2)
    bench.offer(3, 4)
    assert bench.waiting() == [1, 2, 3, 4]


def test_returned_messages_stay_ahead_of_late_ones() -> None:
    bench = Bench()
    bench.offer(2, 3)
    bench.queue.next_batch(0.0)
    bench.queue.return_from()
    bench.offer(4)
    bench.offer_late(1)
    batch = bench.queue.next_batch(0.0).messages
    assert [message.id // 1000 for message in batch] == [2, 3, 1, 4]


def test_a_late_message_takes_its_place_among_messages_of_its_shard() -> None:
    bench = Bench(has_one_clock=False)
    bench.offer(90, shard=1)
    bench.offer(3, 5)
    bench.offer(1, 2, shard=2)
    bench.offer_late(4, 6)
    assert bench.waiting() == [90, 3, 4, 5, 1, 2, 6]
