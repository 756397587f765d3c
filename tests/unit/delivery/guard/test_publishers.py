"""Which publishers a receiver knows."""

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.guard.publishers import accepted_from, knows
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver


def somebody() -> Receiver:
    return Receiver(CallbackQueue(QueueLimits(), Counters()), 1)


def test_a_new_receiver_knows_nobody() -> None:
    assert not knows(somebody(), "client/ann/1")
    assert not knows(somebody(), "")


def test_a_receiver_knows_the_server_once_it_has_accepted_its_messages() -> None:
    receiver = somebody()
    accepted_from(receiver, "")
    assert knows(receiver, "")


def test_a_receiver_knows_the_last_two_publishers() -> None:
    receiver = somebody()
    for name in ("ann", "joe", "joe", "eve"):
        accepted_from(receiver, name)
    assert [knows(receiver, name) for name in ("ann", "joe", "eve")] == [False, True, True]
