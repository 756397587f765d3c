"""The times of messages: once for each receiver, from their receipt."""

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.times import NS_PER_S, Histogram
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.message_times import MessageTimes
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver

NOW = 1_700_000_000 * NS_PER_S


class Timed:
    """A receiver, and the times of its messages as a clock shows them that stands still."""

    def __init__(self) -> None:
        self.readings = 0
        self.times = MessageTimes(self._read)
        self.receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)

    def _read(self) -> int:
        self.readings += 1
        return NOW


def counted(histogram: Histogram) -> tuple[int, float]:
    """How many times it has, and their sum in seconds."""
    return histogram.read()[-1], histogram.total_ns / NS_PER_S


def old(seconds: float) -> Message:
    return Message(b"{}", id=NOW - round(seconds * NS_PER_S))


def test_messages_are_counted_by_the_kind_of_their_receiver() -> None:
    at = Timed()
    at.times.written([old(1), old(2)], 0.0)
    at.times.handed_over(at.receiver, Batch(1, 1, messages=[old(4)], handed_at=0.0), 0.0)
    at.times.acked(at.receiver, [old(8)], 0.0)
    at.receiver.is_durable = True
    at.times.handed_over(at.receiver, Batch(1, 1, messages=[old(16)], handed_at=0.0), 0.0)
    at.times.acked(at.receiver, [old(32)], 0.0)
    hand_overs = {kind: counted(each) for kind, each in at.times.hand_overs.items()}
    assert hand_overs == {"plain": (2, 3.0), "acking": (1, 4.0), "durable": (1, 16.0)}
    acks = {kind: counted(each) for kind, each in at.times.acks.items()}
    assert acks == {"acking": (1, 8.0), "durable": (1, 32.0)}


def test_only_the_first_hand_over_of_a_message_counts() -> None:
    at = Timed()
    entries = [Entry(old(1), 2, attempts=2), Entry(old(4), 3, attempts=1)]
    messages = [each.message for each in entries]
    batch = Batch(2, 2, messages=messages, handed_at=0.0, entries=entries)
    at.times.handed_over(at.receiver, batch, 0.0)
    assert counted(at.times.hand_overs["acking"]) == (1, 4.0)


def test_copies_from_histories_and_replays_do_not_count() -> None:
    at = Timed()
    replayed = old(7)
    replayed.generation = 1
    at.times.written([old(5).initial(), replayed, old(3)], 0.0)
    assert counted(at.times.hand_overs["plain"]) == (1, 3.0)


def test_a_message_of_a_clock_that_is_ahead_takes_no_time() -> None:
    at = Timed()
    at.times.written([old(-5)], 0.0)
    assert counted(at.times.hand_overs["plain"]) == (1, 0.0)


def test_each_receiver_of_a_message_counts() -> None:
    at, message = Timed(), old(1)
    for _ in range(2500):
        at.times.written([message], 5.0)
    assert counted(at.times.hand_overs["plain"]) == (2500, 2500.0)
    at.times.written([message], 5.0)
    at.times.written([old(3), old(4)], 5.0)
    at.times.written([message], 5.0)
    at.times.acked(at.receiver, [message], 5.0)
    assert counted(at.times.hand_overs["plain"]) == (2504, 2509.0)
    assert counted(at.times.acks["acking"]) == (1, 1.0)


def test_the_clock_of_turns_goes_on_from_that_of_messages_for_a_second() -> None:
    at = Timed()
    for turn in (7.0, 7.5, 7.75):
        at.times.written([old(1)], turn)
    assert at.readings == 1
    assert counted(at.times.hand_overs["plain"]) == (3, 1.0 + 1.5 + 1.75)
    for turn in (8.0, 3.0):
        at.times.written([old(1)], turn)
    assert at.readings == 3
    assert counted(at.times.hand_overs["plain"])[1] == 6.25
