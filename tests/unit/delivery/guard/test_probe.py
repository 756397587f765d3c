"""Probes of a held channel: one message to one receiver, after pauses that grow."""

from dataclasses import replace

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.feature_records import record_of
from holdfast.delivery.guard.holds import ChannelHold, Guard
from holdfast.delivery.guard.probe import TIMEOUT_S, Probe, _Probed
from holdfast.delivery.messages.entries import SettledBy
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from tests.unit.delivery.lone_hub import GUARD_LIMITS

CHANNEL = "/orders"
LIMITS = replace(GUARD_LIMITS, longest_pause_s=30.0)


def held_guard() -> tuple[Guard, Probe]:
    guard = Guard(lambda _: True, LIMITS)
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


def test_only_the_probed_message_of_a_held_channel_is_handed_over() -> None:
    guard, probe = held_guard()
    first, second = order(1), order(2)
    somebody = receiver(first, order(3, channel="/other"), second)
    assert handed(somebody, guard) == [3]
    somebody.queue.acknowledge(1)
    assert not somebody.queue.has_news(guard.held)
    probe.begin(somebody, second, 0.0)
    assert somebody.queue.has_news(guard.held)
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


def test_a_receiver_that_takes_the_probed_message_shows_that_its_channel_works() -> None:
    guard, probe = held_guard()
    message = order(1)
    probe.begin(receiver(message), message, 0.0)
    assert guard.taken([order(1)], "joe", 1.0) == []
    assert guard.taken([order(2, channel="/other"), message], "joe", 1.0) == [CHANNEL]


def test_a_probe_without_an_answer_is_given_up_and_is_no_failure() -> None:
    guard, probe = held_guard()
    message = order(1)
    somebody = receiver(message)
    probe.begin(somebody, message, 10.0)
    assert probe.due == 10.0 + TIMEOUT_S
    assert probe.is_under_way
    probe.give_up(20.0)
    assert (probe.due, probe.failures) == (25.0, 0)
    assert handed(somebody, guard) == []
    assert not probe.is_under_way
    # A late answer still counts.
    assert guard.taken([message], "joe", 24.0) == [CHANNEL]


def test_a_publish_by_a_publisher_without_failures_brings_the_next_probe_forward() -> None:
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


def test_a_probe_remembers_the_failures_of_a_limited_number_of_publishers() -> None:
    _, probe = held_guard()
    for number in range(10_000):
        probe.failed(f"publisher {number}", 0.0)
    assert len(probe._refusals) <= 300


def test_a_publisher_is_probed_soon_until_ten_of_its_probes_have_failed() -> None:
    probe = Probe(LIMITS, 0.0, ["eve"])
    now, pauses = 100.0, []
    while probe.may_pass("ann"):
        probe.failed("ann", now)
        pauses.append(probe.due - now)
        now = probe.due
    assert pauses == [1.0] * 9 + [10.0]
    assert not probe.may_pass("eve")


def test_releasing_a_channel_ends_its_probe() -> None:
    guard, probe = held_guard()
    message = order(1)
    somebody = receiver(message)
    probe.begin(somebody, message, 0.0)
    assert guard.release(CHANNEL)
    assert record_of(somebody.queue.records, _Probed) is None
    assert not guard.is_probe(message)


def test_a_held_channel_does_not_stop_messages_of_other_channels() -> None:
    guard, _ = held_guard()
    usual = receiver(order(1, channel="/other"))
    assert handed(usual, guard) == [1]
    mixed = receiver(order(1, channel="/other"), order(2))
    assert handed(mixed, guard) == [1]
