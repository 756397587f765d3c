"""What is measured while somebody looks: how long messages take, and where they go."""

import pytest

from holdfast.delivery.counters import Counters
from holdfast.delivery.entries import SettledBy
from holdfast.delivery.latency import Latencies, LatencySampler
from holdfast.delivery.messages import Message
from holdfast.delivery.queue import CallbackQueue, QueueLimits
from holdfast.delivery.receivers import Receiver

US = 1000


def receiver(*received_at: int, channel: str = "/a") -> Receiver:
    """Its messages came then."""
    receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    for at in received_at:
        receiver.queue.offer(Message(b"{}", id=at, channel=channel))
    return receiver


def hand_over(
    watch: LatencySampler, now_ns: int, *receivers: Receiver, held: tuple[str, ...] = ()
) -> None:
    """All that may go of their queues goes."""
    looks = watch.look(receivers, held)
    for each in receivers:
        each.queue.next_batch(0.0, held=held)
    watch.measured(looks, now_ns)


def test_times_are_those_since_the_last_reading() -> None:
    watch = LatencySampler(0.0)
    for age in range(1, 101):
        hand_over(watch, 1000 * US, receiver((1000 - age) * US))
    assert watch.read(1.0) == Latencies(100, 51, 100, 100)
    assert watch.read(2.0) is None


def test_who_has_nothing_waiting_tells_nothing() -> None:
    watch = LatencySampler(0.0)
    hand_over(watch, 5, receiver())
    assert watch.read(1.0) is None


def test_who_is_not_told_after_all_has_no_time() -> None:
    watch = LatencySampler(0.0)
    watch.measured(watch.look([receiver(1)], ()), 5 * US)
    assert watch.read(1.0) is None


def test_what_was_held_back_until_now_is_excused_once() -> None:
    watch = LatencySampler(0.0)
    resumed = receiver(1 * US)
    watch.excuse(resumed)
    hand_over(watch, 1000 * US, resumed)
    assert watch.read(1.0) is None
    resumed.queue.offer(Message(b"{}", id=998 * US))
    hand_over(watch, 1000 * US, resumed)
    assert watch.read(2.0) == Latencies(1, 2, 2, 2)


def test_the_first_message_that_may_go_is_looked_for_in_a_bounded_number() -> None:
    for count, times in ((99, Latencies(1, 2, 2, 2)), (100, None)):
        watch = LatencySampler(0.0)
        behind = receiver(*[US] * count, channel="/held")
        behind.queue.settling = SettledBy.BATCH
        behind.queue.offer(Message(b"{}", id=998 * US, channel="/a"))
        hand_over(watch, 1000 * US, behind, held=("/held",))
        assert watch.read(1.0) == times


def test_a_clock_that_was_put_back_makes_no_negative_times() -> None:
    watch = LatencySampler(0.0)
    hand_over(watch, 5 * US, receiver(9 * US))
    assert watch.read(1.0) == Latencies(1, 0, 0, 0)


def test_the_rate_of_a_channel_settles_and_fades_away() -> None:
    watch = LatencySampler(0.0)
    for second in range(1, 20):
        for _ in range(10):
            watch.published("/a")
        watch.read(float(second))
    assert watch.rates == {"/a": pytest.approx(10.0)}
    for second in range(20, 60):
        watch.read(float(second))
    assert watch.rates == {}


def test_channels_without_number_take_no_memory_without_bound() -> None:
    watch = LatencySampler(0.0)
    for number in range(6000):
        watch.published(f"/{number}")
    watch.read(1.0)
    assert len(watch.rates) == 5000


def test_replies_have_no_rate_which_nobody_could_follow_or_should_read() -> None:
    watch = LatencySampler(0.0)
    watch.published("/ret/4kQx1nXyQ0uQmT7p2v3hZA/4000017")
    watch.published("/a")
    watch.read(1.0)
    assert list(watch.rates) == ["/a"]
