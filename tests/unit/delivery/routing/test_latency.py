"""The latency sampler: how long messages take, and the rates of channels."""

import pytest

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.routing.latency import Latencies, LatencySampler

US = 1000


def receiver(*received_at: int, channel: str = "/a") -> Receiver:
    """A receiver whose messages arrived at these times."""
    receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    for at in received_at:
        receiver.queue.offer(Message(b"{}", id=at, channel=channel))
    return receiver


def hand_over(
    watch: LatencySampler, now_ns: int, *receivers: Receiver, held: tuple[str, ...] = ()
) -> None:
    """Hand over everything that may leave these queues."""
    samples = watch.sample(receivers, held)
    for each in receivers:
        each.queue.next_batch(0.0, held=held)
    watch.measured(samples, now_ns)


def test_latencies_are_those_since_the_last_reading() -> None:
    watch = LatencySampler(0.0)
    for age in range(1, 101):
        hand_over(watch, 1000 * US, receiver((1000 - age) * US))
    assert watch.read(1.0) == Latencies(100, 51, 100, 100)
    assert watch.read(2.0) is None


def test_an_empty_queue_has_no_latency() -> None:
    watch = LatencySampler(0.0)
    hand_over(watch, 5, receiver())
    assert watch.read(1.0) is None


def test_a_receiver_that_was_handed_nothing_has_no_latency() -> None:
    watch = LatencySampler(0.0)
    watch.measured(watch.sample([receiver(1)], ()), 5 * US)
    assert watch.read(1.0) is None


def test_a_resumed_receiver_is_left_out_of_the_latencies_once() -> None:
    watch = LatencySampler(0.0)
    resumed = receiver(1 * US)
    watch.excuse(resumed)
    hand_over(watch, 1000 * US, resumed)
    assert watch.read(1.0) is None
    resumed.queue.offer(Message(b"{}", id=998 * US))
    hand_over(watch, 1000 * US, resumed)
    assert watch.read(2.0) == Latencies(1, 2, 2, 2)


def test_the_sampler_seeks_a_message_that_may_be_handed_over_among_a_hundred_at_most() -> None:
    for count, times in ((99, Latencies(1, 2, 2, 2)), (100, None)):
        watch = LatencySampler(0.0)
        behind = receiver(*[US] * count, channel="/held")
        behind.queue.settling = SettledBy.BATCH
        behind.queue.offer(Message(b"{}", id=998 * US, channel="/a"))
        hand_over(watch, 1000 * US, behind, held=("/held",))
        assert watch.read(1.0) == times


def test_a_clock_that_was_set_back_makes_no_negative_latencies() -> None:
    watch = LatencySampler(0.0)
    hand_over(watch, 5 * US, receiver(9 * US))
    assert watch.read(1.0) == Latencies(1, 0, 0, 0)


def test_the_rate_of_a_channel_converges_and_vanishes_after_its_last_message() -> None:
    watch = LatencySampler(0.0)
    for second in range(1, 20):
        for _ in range(10):
            watch.published("/a")
        watch.read(float(second))
    assert watch.rates == {"/a": pytest.approx(10.0)}
    for second in range(20, 60):
        watch.read(float(second))
    assert watch.rates == {}


def test_the_number_of_channels_with_a_rate_is_limited() -> None:
    watch = LatencySampler(0.0)
    for number in range(6000):
        watch.published(f"/{number}")
    watch.read(1.0)
    assert len(watch.rates) == 5000


def test_reply_channels_have_no_rate() -> None:
    watch = LatencySampler(0.0)
    watch.published("/ret/4kQx1nXyQ0uQmT7p2v3hZA/4000017")
    watch.published("/a")
    watch.read(1.0)
    assert list(watch.rates) == ["/a"]
