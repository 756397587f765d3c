"""The publish order of a channel while the store has not answered."""

from collections.abc import Callable

from holdfast.delivery.counters import Counters
from holdfast.delivery.messages import Message
from holdfast.delivery.persist_outcome import PersistOutcome
from holdfast.delivery.publish_order import AcceptedPublish, PublishOrder
from holdfast.delivery.queue import CallbackQueue, QueueLimits
from holdfast.delivery.receivers import Receiver


class Street:
    """A publish order, what was delivered to whom, and what publishers were told."""

    def __init__(self) -> None:
        self.lanes: PublishOrder[Receiver] = PublishOrder(self._show)
        self.shown: list[str] = []
        self.told: list[str] = []

    def _show(self, publication: AcceptedPublish[Receiver]) -> None:
        leave_out = publication.leave_out
        left_out = "" if leave_out is None else f" but {leave_out.number}"
        others = "".join(str(receiver.number) for receiver in publication.receivers)
        self.shown.append(f"{publication.message.wire.decode()} to {others}{left_out}")

    def publication(self, text: str, *, is_asked: bool = True) -> AcceptedPublish[Receiver]:
        receivers = [
            Receiver(CallbackQueue(QueueLimits(), Counters()), number) for number in (1, 2)
        ]

        def done(outcome: PersistOutcome) -> None:
            self.told.append(f"{text} {outcome.value}")

        message = Message(text.encode())
        return AcceptedPublish(message, receivers, receivers[1], done if is_asked else None)

    def keep(
        self, text: str, channel: str = "/a", **options: bool
    ) -> Callable[[PersistOutcome], None]:
        return self.lanes.keep(channel, self.publication(text, **options))

    def enter(self, text: str, channel: str = "/a") -> PersistOutcome | None:
        return self.lanes.enter(channel, self.publication(text))


def shown(*texts: str) -> list[str]:
    return [f"{text} to 12 but 2" for text in texts]


def test_a_kept_message_is_delivered_to_the_receivers_that_it_was_accepted_for() -> None:
    street = Street()
    answer = street.keep("a")
    assert street.shown == []
    answer(PersistOutcome.KEPT)
    assert (street.shown, street.told) == (shown("a"), ["a kept"])
    assert not street.lanes.open


def test_a_passing_message_is_delivered_at_once_if_none_waits_on_its_channel() -> None:
    street = Street()
    assert street.enter("a") is PersistOutcome.KEPT
    street.keep("b", "/b")
    assert street.enter("c") is PersistOutcome.KEPT
    assert street.shown == shown("a", "c")
    assert street.told == []


def test_later_messages_wait_until_the_store_has_answered_for_all_earlier_ones() -> None:
    street = Street()
    first, second = street.keep("a"), street.keep("b")
    assert street.enter("c") is None
    second(PersistOutcome.KEPT)
    assert street.shown == []
    first(PersistOutcome.KEPT)
    assert street.shown == shown("a", "b", "c")
    assert street.told == ["a kept", "b kept", "c kept"]
    assert not street.lanes.open


def test_a_message_that_the_store_refuses_is_not_delivered_and_delays_no_other() -> None:
    street = Street()
    first = street.keep("a")
    street.enter("b")
    first(PersistOutcome.REFUSED)
    assert street.shown == shown("b")
    assert street.told == ["a refused", "b kept"]


def test_a_message_that_the_store_calls_repeated_is_not_delivered() -> None:
    street = Street()
    first, second = street.keep("a"), street.keep("b")
    street.enter("c")
    first(PersistOutcome.UNKNOWN)
    second(PersistOutcome.REPEATED)
    first(PersistOutcome.REPEATED)
    assert street.shown == shown("c")
    assert street.told == ["a unknown", "b repeated", "c kept"]


def test_a_message_of_unknown_outcome_delays_no_other_and_is_delivered_once_kept() -> None:
    street = Street()
    first, second = street.keep("a"), street.keep("b")
    first(PersistOutcome.UNKNOWN)
    second(PersistOutcome.UNKNOWN)
    street.enter("c")
    first(PersistOutcome.KEPT)
    second(PersistOutcome.REFUSED)
    assert street.shown == shown("c", "a")
    assert street.told == ["a unknown", "b unknown"]


def test_a_publish_without_a_callback_is_delivered_when_kept() -> None:
    street = Street()
    street.keep("a", is_asked=False)(PersistOutcome.KEPT)
    assert (street.shown, street.told) == (shown("a"), [])


def test_the_callback_of_a_publish_may_publish_on_the_same_channel() -> None:
    street = Street()
    publication = street.publication("a")
    more: list[Callable[[PersistOutcome], None]] = []
    publication.done = lambda _: more.append(street.keep("b"))
    street.lanes.keep("/a", publication)(PersistOutcome.KEPT)
    assert street.lanes.open
    (answer,) = more
    answer(PersistOutcome.KEPT)
    assert street.shown == shown("a", "b")
    assert not street.lanes.open
