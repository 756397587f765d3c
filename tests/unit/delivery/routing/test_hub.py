"""The hub: from a publisher into the queues of receivers, and which receivers have news."""

from holdfast.delivery.basics.channels import Channel, Channels
from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import EXPIRED
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.routing.publishes import Publish
from tests.unit.delivery.fake_keeper import FakeKeeper
from tests.unit.delivery.lone_hub import Refusals, lone_hub


def channel(name: str) -> Channel:
    found = Channels().get(name)
    assert found is not None
    return found


class Town:
    """A hub with receivers; notes what the hub asks of its owner."""

    def __init__(self, *names: str, entries: int = 100) -> None:
        self.calls = 0
        self.lingering: list[tuple[Receiver, Message]] = []
        store = FakeKeeper()
        self.settling = Refusals()
        self.hub = lone_hub(store, self.settling, self._on_ready, self._linger)
        limits = QueueLimits(entries=entries)
        self.people = {
            name: Receiver(CallbackQueue(limits, self.hub.counters), number)
            for number, name in enumerate(names)
        }
        for receiver in self.people.values():
            self.subscribe(receiver, "/a")

    def _on_ready(self) -> None:
        self.calls += 1

    def _linger(self, receiver: Receiver, message: Message) -> None:
        self.lingering.append((receiver, message))

    def subscribe(self, receiver: Receiver, pattern: str) -> None:
        self.hub.routes.add(channel(pattern), receiver)
        receiver.subscriptions.add(pattern)

    def publish(
        self, text: str, *, linger_s: float | None = None, leave_out: Receiver | None = None
    ) -> Message:
        publish: Publish[Receiver] = Publish(channel("/a"))
        publish.message = Message(text.encode(), linger_s=linger_s)
        publish.leave_out = leave_out
        self.hub.publish(publish)
        return publish.message

    def waiting(self, name: str) -> list[bytes]:
        return [message.wire for message in self.people[name].queue.new]


def test_every_receiver_gets_the_same_message() -> None:
    town = Town("alice", "bob")
    message = town.publish("hello")
    assert all(r.queue.new == [message] for r in town.people.values())
    assert (town.hub.counters.published, town.hub.counters.accepted) == (1, 2)


def test_a_receiver_that_is_left_out_gets_nothing() -> None:
    town = Town("alice", "bob")
    town.publish("hello", leave_out=town.people["alice"])
    assert town.waiting("alice") == []
    assert town.waiting("bob") == [b"hello"]
    assert town.hub.counters.accepted == 1


def test_the_owner_is_called_once_for_a_burst_of_messages() -> None:
    town = Town("alice", "bob")
    for number in range(3):
        town.publish(str(number))
    assert town.calls == 1
    assert town.hub.take_ready() == list(town.people.values())
    assert town.hub.take_ready() == []


def test_the_owner_is_called_again_after_it_took_the_ready_receivers() -> None:
    town = Town("alice")
    town.publish("a")
    town.hub.take_ready()
    town.publish("b")
    assert town.calls == 2
    assert town.hub.take_ready() == [town.people["alice"]]


def test_a_receiver_made_ready_twice_is_ready_once() -> None:
    town = Town("alice")
    alice = town.people["alice"]
    town.hub.make_ready(alice)
    town.hub.make_ready(alice)
    assert town.calls == 1
    assert town.hub.take_ready() == [alice]


def test_a_lazy_message_makes_no_receiver_ready_and_lingers() -> None:
    town = Town("alice")
    message = town.publish("later", linger_s=5.0)
    assert town.calls == 0
    assert town.lingering == [(town.people["alice"], message)]
    assert town.waiting("alice") == [b"later"]


def test_a_message_for_a_full_queue_is_no_news_and_is_counted_as_discarded() -> None:
    town = Town("alice", entries=0)
    town.publish("a")
    town.publish("b", linger_s=5.0)
    town.hub.deliver(town.people["alice"], Message(b"c"))
    assert town.calls == 0
    assert town.lingering == []
    assert town.hub.counters.accepted == 3
    assert [reason for _, _, reason in town.settling.refused] == [Reason.OVERFLOW_ENTRIES] * 3


def test_receivers_that_do_not_take_a_message_are_reported_together_by_reason() -> None:
    town = Town("alice", "bob", "carol", "dave", entries=1)
    alice, bob, carol, dave = town.people.values()
    town.publish("first")
    dave.queue.limit(None, 1)
    dave.queue.clear()
    carol.advance(SessionInput.DISCONNECT)
    town.publish("second")
    assert town.settling.refused == [
        ([alice, bob], b"second", Reason.OVERFLOW_ENTRIES),
        ([carol], b"second", Reason.SESSION_ENDED),
        ([dave], b"second", Reason.OVERFLOW_BYTES),
    ]


def test_a_message_can_be_delivered_to_one_receiver_alone() -> None:
    town = Town("alice", "bob")
    alice = town.people["alice"]
    town.hub.deliver(alice, Message(b"one"))
    town.hub.deliver(alice, Message(b"two"))
    assert town.waiting("alice") == [b"one", b"two"]
    assert town.waiting("bob") == []
    assert town.hub.take_ready() == [alice]
    town.hub.deliver(alice, Message(b"later", linger_s=1.0))
    assert town.hub.take_ready() == []
    assert len(town.lingering) == 1


def test_a_removed_receiver_has_no_subscriptions_and_gets_nothing() -> None:
    town = Town("alice", "bob")
    alice = town.people["alice"]
    town.subscribe(alice, "/**")
    town.hub.remove(alice)
    town.publish("hello")
    assert town.waiting("alice") == []
    assert alice.subscriptions == set()
    assert "/**" not in town.hub.routes
    assert town.waiting("bob") == [b"hello"]


def test_settled_is_the_sum_of_acked_dead_expired_and_discarded() -> None:
    counters = Counters()
    counters.acked, counters.dead, counters.left[EXPIRED.counter] = 1, 2, 4
    counters.discarded[Reason.SESSION_ENDED] = 8
    counters.discarded[Reason.OVERFLOW_BYTES] = 16
    assert counters.settled() == 31
