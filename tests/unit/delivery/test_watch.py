"""What is measured while somebody looks: how long messages take, and where they go."""

import pytest

from app.delivery.counters import Counters
from app.delivery.messages import Message
from app.delivery.queue import CallbackQueue, QueueLimits
from app.delivery.receivers import Receiver
from app.delivery.watch import Times, Watch

US = 1000


def receiver(received_at: int | None) -> Receiver:
    """Its first message came then."""
    queue = CallbackQueue(QueueLimits(), Counters())
    if received_at is not None:
        queue.offer(Message(b"{}", id=received_at))
    return Receiver(queue, 1)


def test_times_are_those_since_the_last_reading() -> None:
    watch = Watch(0.0)
    for age in range(1, 101):
        watch.told([receiver((1000 - age) * US)], 1000 * US)
    assert watch.read(1.0) == Times(100, 51, 100, 100)
    assert watch.read(2.0) is None


def test_who_has_nothing_waiting_tells_nothing() -> None:
    watch = Watch(0.0)
    watch.told([receiver(None)], 5)
    assert watch.read(1.0) is None


def test_a_clock_that_was_put_back_makes_no_negative_times() -> None:
    watch = Watch(0.0)
    watch.told([receiver(9 * US)], 5 * US)
    assert watch.read(1.0) == Times(1, 0, 0, 0)


def test_the_rate_of_a_channel_settles_and_fades_away() -> None:
    watch = Watch(0.0)
    for second in range(1, 20):
        for _ in range(10):
            watch.published("/a")
        watch.read(float(second))
    assert watch.rates == {"/a": pytest.approx(10.0)}
    for second in range(20, 60):
        watch.read(float(second))
    assert watch.rates == {}


def test_channels_without_number_take_no_memory_without_bound() -> None:
    watch = Watch(0.0)
    for number in range(6000):
        watch.published(f"/{number}")
    watch.read(1.0)
    assert len(watch.rates) == 5000
