"""Late messages: each takes the place among waiting messages that it would have had."""

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits


class Bench:
    """A queue; messages are numbers."""

    def __init__(self) -> None:
        self.queue = CallbackQueue(QueueLimits(), Counters())

    def offer(self, *numbers: int, priority: int = 5) -> None:
        for number in numbers:
            self._offer(number, priority)

    def offer_late(self, *numbers: int, priority: int = 5) -> None:
        for number in numbers:
            self.queue.is_mixed = True
            self._offer(number, priority, is_late=True)

    def _offer(self, number: int, priority: int, *, is_late: bool = False) -> None:
        message = Message(b"", id=number)
        message.priority, message.is_late = priority, is_late
        assert self.queue.offer(message) is None

    def waiting(self) -> list[int]:
        return [message.id for message in self.queue.new]


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
    assert [message.id for message in bench.queue.next_batch(0.0).messages] == [2, 3, 1, 4]
