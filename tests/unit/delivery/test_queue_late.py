"""Messages that come late: among those that wait, each takes the place that it would have had."""

from holdfast.delivery.counters import Counters
from holdfast.delivery.messages import Message
from holdfast.delivery.queue import CallbackQueue, QueueLimits


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
        return [message.id for message in self.queue.waiting]


def test_a_late_message_stands_between_those_before_and_those_behind_it() -> None:
    bench = Bench()
    bench.offer(1, 3, 5)
    bench.offer_late(4, 2)
    assert bench.waiting() == [1, 2, 3, 4, 5]


def test_a_late_message_passes_nothing_that_is_more_urgent() -> None:
    bench = Bench()
    bench.offer(4, 5)
    bench.offer(6, priority=9)
    bench.offer(7, priority=1)
    bench.offer_late(3)
    bench.offer_late(2, priority=9)
    assert bench.waiting() == [2, 6, 3, 4, 5, 7]


def test_what_comes_behind_a_late_message_stands_behind_it() -> None:
    bench = Bench()
    bench.offer_late(1, 2)
    bench.offer(3, 4)
    assert bench.waiting() == [1, 2, 3, 4]


def test_what_was_handed_over_stays_ahead_of_what_comes_late() -> None:
    bench = Bench()
    bench.offer(2, 3)
    bench.queue.next_batch(0.0)
    bench.queue.give_back()
    bench.offer(4)
    bench.offer_late(1)
    assert [message.id for message in bench.queue.next_batch(0.0).messages] == [2, 3, 1, 4]
