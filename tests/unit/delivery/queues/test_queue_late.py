"""Late messages: each takes the place among waiting messages that it would have had."""

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits


class Bench:
    """A queue; messages are numbers, and in the last three digits of their ids is the shard."""

    def __init__(self) -> None:
        self.queue = CallbackQueue(QueueLimits(), Counters())

    def offer(self, *numbers: int, priority: int = 5, shard: int = 0) -> None:
        for number in numbers:
            message = Message(b"", id=1000 * number + shard)
            message.priority = priority
            assert self.queue.offer(message) is None

    def waiting(self) -> list[int]:
        return [message.id // 1000 for message in self.queue.new]


def test_a_late_message_takes_its_place_by_id_among_waiting_messages() -> None:
    bench = Bench()
    bench.offer(1, 3, 5)
    bench.offer(4, 2)
    assert bench.waiting() == [1, 2, 3, 4, 5]


def test_a_late_message_takes_its_place_among_messages_of_its_priority() -> None:
    bench = Bench()
    bench.offer(4, 5)
    bench.offer(6, priority=9)
    bench.offer(7, priority=1)
    bench.offer(3)
    bench.offer(2, priority=9)
    assert bench.waiting() == [2, 6, 3, 4, 5, 7]


def test_a_message_offered_after_a_late_one_waits_behind_it() -> None:
    bench = Bench()
    bench.offer(1, 2)
    bench.offer(3, 4)
    assert bench.waiting() == [1, 2, 3, 4]


def test_returned_messages_stay_ahead_of_late_ones() -> None:
    bench = Bench()
    bench.offer(2, 3)
    bench.queue.next_batch(0.0)
    bench.queue.return_from()
    bench.offer(4)
    bench.offer(1)
    batch = bench.queue.next_batch(0.0).messages
    assert [message.id // 1000 for message in batch] == [2, 3, 1, 4]


def test_a_late_message_takes_its_place_among_messages_of_other_shards() -> None:
    bench = Bench()
    bench.offer(90, shard=1)
    bench.offer(3, 5)
    bench.offer(4, 4, shard=2)
    bench.offer(4, 91)
    assert bench.waiting() == [3, 4, 4, 4, 5, 90, 91]
    assert [each.id % 1000 for each in bench.queue.new] == [0, 0, 2, 2, 0, 1, 0]
