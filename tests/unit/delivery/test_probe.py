"""A channel that is held back is tried again: one message, one receiver, after pauses that grow."""

from holdfast.delivery.counters import Counters
from holdfast.delivery.entries import SettledBy
from holdfast.delivery.guard import ChannelHold, Guard, GuardLimits
from holdfast.delivery.messages import Message
from holdfast.delivery.probe import PATIENCE_S, Probe
from holdfast.delivery.queue import CallbackQueue, QueueLimits
from holdfast.delivery.receivers import Receiver

CHANNEL = "/orders"
LIMITS = GuardLimits(first_pause_s=5.0, longest_pause_s=30.0)


def held_guard() -> tuple[Guard, Probe]:
    guard = Guard(LIMITS)
    assert guard.restore(CHANNEL, ChannelHold(0, "why"), 0.0)
    return guard, guard.probes[CHANNEL]


def receiver(*messages: Message) -> Receiver:
    made = Receiver(CallbackQueue(QueueLimits(), Counters()), 7)
    made.queue.settling = SettledBy.BATCH
    for message in messages:
        assert made.queue.offer(message) is None
    return made


def order(number: int, sender: str = "ann", channel: str = CHANNEL) -> Message:
    return Message(b"%d" % number, id=number, channel=channel, sender=sender)


def handed(somebody: Receiver, guard: Guard, now: float = 0.0) -> list[int]:
    return [message.id for message in somebody.queue.next_batch(now, -1, guard.held).messages]


def test_what_it_is_tried_with_is_handed_over_alone() -> None:
    guard, probe = held_guard()
    first, second = order(1), order(2)
    somebody = receiver(first, order(3, channel="/other"), second)
    assert handed(somebody, guard) == [3]
    assert not somebody.queue.has_news(guard.held) or somebody.queue.in_flight()
    probe.begin(somebody, second, 0.0)
    assert somebody.queue.has_news(guard.held)
    somebody.queue.acknowledge(1)
    assert handed(somebody, guard) == [2]
    somebody.queue.acknowledge(2)
    assert not somebody.queue.has_news(guard.held)
    assert handed(somebody, guard) == []


def test_the_pause_doubles_with_each_failure_up_to_the_longest() -> None:
    guard, probe = held_guard()
    now, pauses = 100.0, []
    for number in range(1, 6):
        message = order(number)
        probe.begin(receiver(message), message, now)
        guard.probe_failed(message, now)
        pauses.append(probe.due - now)
        now = probe.due
    assert pauses == [10.0, 20.0, 30.0, 30.0, 30.0]
    assert probe.failures == 5


def test_who_takes_it_shows_that_the_channel_passes() -> None:
    guard, probe = held_guard()
    message = order(1)
    probe.begin(receiver(message), message, 0.0)
    assert guard.taken([order(1)], "joe", 1.0) == []
    assert guard.taken([order(2, channel="/other"), message], "joe", 1.0) == [CHANNEL]


def test_who_says_nothing_is_given_up_and_counts_as_no_failure() -> None:
    guard, probe = held_guard()
    message = order(1)
    somebody = receiver(message)
    probe.begin(somebody, message, 10.0)
    assert probe.due == 10.0 + PATIENCE_S
    assert probe.is_under_way
    probe.give_up(20.0)
    assert (probe.due, probe.failures, somebody.queue.probe) == (25.0, 0, None)
    assert not probe.is_under_way
    # It may have something to say yet.
    assert guard.taken([message], "joe", 24.0) == [CHANNEL]


def test_a_publisher_who_has_not_failed_is_reason_to_try_soon() -> None:
    guard, probe = held_guard()
    message = order(1, "eve")
    probe.begin(receiver(message), message, 10.0)
    guard.probe_failed(message, 11.0)
    guard.published(CHANNEL, "eve", 12.0)
    assert probe.due == 21.0
    guard.published(CHANNEL, "ann", 10.5)
    assert probe.due == 11.0
    guard.published(CHANNEL, "bob", 12.0)
    assert probe.due == 11.0


def test_what_is_known_of_failures_is_bounded() -> None:
    _, probe = held_guard()
    for number in range(10_000):
        probe.failed(f"publisher {number}", 0.0)
    assert len(probe._refusals) <= 300


def test_a_publisher_is_tried_soon_until_many_receivers_have_refused_it() -> None:
    probe = Probe(LIMITS, 0.0, ["eve"])
    now, pauses = 100.0, []
    while probe.is_unheard("ann"):
        probe.failed("ann", now)
        pauses.append(probe.due - now)
        now = probe.due
    assert pauses == [1.0] * 9 + [10.0]
    assert not probe.is_unheard("eve")


def test_nothing_is_on_trial_when_the_channel_was_released() -> None:
    guard, probe = held_guard()
    message = order(1)
    somebody = receiver(message)
    probe.begin(somebody, message, 0.0)
    assert guard.release(CHANNEL)
    assert somebody.queue.probe is None
    assert not guard.is_probe(message)


def test_a_channel_that_is_held_back_is_no_detour_for_others() -> None:
    guard, _ = held_guard()
    usual = receiver(order(1, channel="/other"))
    assert handed(usual, guard) == [1]
    mixed = receiver(order(1, channel="/other"), order(2))
    assert handed(mixed, guard) == [1]
