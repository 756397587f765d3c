"""The order of a channel while the store is asked."""

from collections.abc import Callable

from holdfast.delivery.counters import Counters
from holdfast.delivery.messages import Message
from holdfast.delivery.persist_outcome import PersistOutcome
from holdfast.delivery.publish_order import AcceptedPublish, PublishOrder
from holdfast.delivery.queue import CallbackQueue, QueueLimits
from holdfast.delivery.receivers import Receiver


class Street:
    """Lanes, what was shown to whom, and what publishers were told."""

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


def test_a_message_is_shown_to_those_whom_it_was_for_when_it_was_accepted() -> None:
    street = Street()
    answer = street.keep("a")
    assert street.shown == []
    answer(PersistOutcome.KEPT)
    assert (street.shown, street.told) == (shown("a"), ["a kept"])
    assert not street.lanes.open


def test_what_need_not_be_kept_is_shown_at_once_where_nobody_waits() -> None:
    street = Street()
    assert street.enter("a") is PersistOutcome.KEPT
    street.keep("b", "/b")
    assert street.enter("c") is PersistOutcome.KEPT
    assert street.shown == shown("a", "c")
    assert street.told == []


def test_what_comes_behind_waits_until_all_before_it_is_answered() -> None:
    street = Street()
    first, second = street.keep("a"), street.keep("b")
    assert street.enter("c") is None
    second(PersistOutcome.KEPT)
    assert street.shown == []
    first(PersistOutcome.KEPT)
    assert street.shown == shown("a", "b", "c")
    assert street.told == ["a kept", "b kept", "c kept"]
    assert not street.lanes.open


def test_what_is_refused_is_not_shown_and_keeps_nobody_waiting() -> None:
    street = Street()
    first = street.keep("a")
    street.enter("b")
    first(PersistOutcome.REFUSED)
    assert street.shown == shown("b")
    assert street.told == ["a refused", "b kept"]


def test_what_came_before_is_not_shown_again() -> None:
    street = Street()
    first, second = street.keep("a"), street.keep("b")
    street.enter("c")
    first(PersistOutcome.UNKNOWN)
    second(PersistOutcome.REPEATED)
    first(PersistOutcome.REPEATED)
    assert street.shown == shown("c")
    assert street.told == ["a unknown", "b repeated", "c kept"]


def test_what_nobody_knows_keeps_nobody_waiting_and_is_shown_if_it_was_kept() -> None:
    street = Street()
    first, second = street.keep("a"), street.keep("b")
    first(PersistOutcome.UNKNOWN)
    second(PersistOutcome.UNKNOWN)
    street.enter("c")
    first(PersistOutcome.KEPT)
    second(PersistOutcome.REFUSED)
    assert street.shown == shown("c", "a")
    assert street.told == ["a unknown", "b unknown"]


def test_nobody_need_be_told() -> None:
    street = Street()
    street.keep("a", is_asked=False)(PersistOutcome.KEPT)
    assert (street.shown, street.told) == (shown("a"), [])


def test_who_is_told_may_publish_on_the_same_channel() -> None:
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
