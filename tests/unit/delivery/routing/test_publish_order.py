"""The publish order of a channel while the store has not answered."""

from collections.abc import Callable

from holdfast.delivery.basics import channels as names
from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.routing.publish_order import PublishOrder
from holdfast.delivery.routing.publishes import Publish

NAMES = names.Channels()


class Channels:
    """A publish order, what was delivered to whom, and the outcomes for publishers."""

    def __init__(self) -> None:
        self.order: PublishOrder[Receiver] = PublishOrder(self._show, ignore)
        self.shown: list[str] = []
        self.outcomes: list[str] = []

    def _show(self, accepted: Publish[Receiver]) -> None:
        leave_out = accepted.leave_out
        left_out = "" if leave_out is None else f" but {leave_out.number}"
        others = "".join(str(receiver.number) for receiver in accepted.receivers)
        self.shown.append(f"{accepted.message.wire.decode()} to {others}{left_out}")

    def accepted(
        self, text: str, channel: str = "/a", *, is_asked: bool = True
    ) -> Publish[Receiver]:
        receivers = [
            Receiver(CallbackQueue(QueueLimits(), Counters()), number) for number in (1, 2)
        ]

        def done(outcome: PersistOutcome) -> None:
            self.outcomes.append(f"{text} {outcome.value}")

        publish: Publish[Receiver] = Publish(NAMES.named(channel))
        publish.message = Message(text.encode())
        publish.receivers, publish.leave_out = receivers, receivers[1]
        publish.done = done if is_asked else None
        return publish

    def keep(
        self, text: str, channel: str = "/a", **options: bool
    ) -> Callable[[PersistOutcome], None]:
        return self.order.keep(self.accepted(text, channel, **options))

    def enter(self, text: str, channel: str = "/a") -> PersistOutcome | None:
        return self.order.enter(self.accepted(text, channel))


def shown(*texts: str) -> list[str]:
    return [f"{text} to 12 but 2" for text in texts]


def test_a_kept_message_is_delivered_to_the_receivers_that_it_was_accepted_for() -> None:
    channels = Channels()
    answer = channels.keep("a")
    assert channels.shown == []
    answer(PersistOutcome.KEPT)
    assert (channels.shown, channels.outcomes) == (shown("a"), ["a kept"])
    assert not channels.order.waiting


def test_a_passing_message_is_delivered_at_once_if_none_waits_on_its_channel() -> None:
    channels = Channels()
    assert channels.enter("a") is PersistOutcome.KEPT
    channels.keep("b", "/b")
    assert channels.enter("c") is PersistOutcome.KEPT
    assert channels.shown == shown("a", "c")
    assert channels.outcomes == []


def test_later_messages_wait_until_the_store_has_answered_for_all_earlier_ones() -> None:
    channels = Channels()
    first, second = channels.keep("a"), channels.keep("b")
    assert channels.enter("c") is None
    second(PersistOutcome.KEPT)
    assert channels.shown == []
    first(PersistOutcome.KEPT)
    assert channels.shown == shown("a", "b", "c")
    assert channels.outcomes == ["a kept", "b kept", "c kept"]
    assert not channels.order.waiting


def test_a_message_that_the_store_refuses_is_not_delivered_and_delays_no_other() -> None:
    channels = Channels()
    first = channels.keep("a")
    channels.enter("b")
    first(PersistOutcome.REFUSED)
    assert channels.shown == shown("b")
    assert channels.outcomes == ["a refused", "b kept"]


def test_a_message_that_the_store_calls_repeated_is_not_delivered() -> None:
    channels = Channels()
    first, second = channels.keep("a"), channels.keep("b")
    channels.enter("c")
    first(PersistOutcome.UNKNOWN)
    second(PersistOutcome.REPEATED)
    first(PersistOutcome.REPEATED)
    assert channels.shown == shown("c")
    assert channels.outcomes == ["a unknown", "b repeated", "c kept"]


def test_a_message_of_unknown_outcome_delays_no_other_and_is_delivered_once_kept() -> None:
    channels = Channels()
    first, second = channels.keep("a"), channels.keep("b")
    first(PersistOutcome.UNKNOWN)
    second(PersistOutcome.UNKNOWN)
    channels.enter("c")
    first(PersistOutcome.KEPT)
    second(PersistOutcome.REFUSED)
    assert channels.shown == shown("c", "a")
    assert channels.outcomes == ["a unknown", "b unknown"]


def test_a_publish_without_a_callback_is_delivered_when_kept() -> None:
    channels = Channels()
    channels.keep("a", is_asked=False)(PersistOutcome.KEPT)
    assert (channels.shown, channels.outcomes) == (shown("a"), [])


def test_the_callback_of_a_publish_may_publish_on_the_same_channel() -> None:
    channels = Channels()
    accepted = channels.accepted("a")
    more: list[Callable[[PersistOutcome], None]] = []
    accepted.done = lambda _: more.append(channels.keep("b"))
    channels.order.keep(accepted)(PersistOutcome.KEPT)
    assert channels.order.waiting
    (answer,) = more
    answer(PersistOutcome.KEPT)
    assert channels.shown == shown("a", "b")
    assert not channels.order.waiting
