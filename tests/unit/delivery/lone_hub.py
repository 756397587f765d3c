"""A hub without the rest of a server."""

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.notices import Notices
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.guard.holds import GuardLimits
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.ledger import Ledger
from holdfast.delivery.routing.histories import Histories, HistoryLimits
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.routing.routes import Routes
from holdfast.delivery.topics.configured import Topics
from holdfast.delivery.topics.sender_quota import SenderQuota
from tests.unit.delivery.fake_keeper import FakeKeeper

GUARD_LIMITS = GuardLimits(
    window_s=60.0, min_receivers=3, min_messages=5, grace_s=5.0, first_pause_s=5.0
)


class Refusals:
    """Notes which messages queues refuse. Nothing expires, and no rights change."""

    def __init__(self) -> None:
        self.refused: list[tuple[Sequence[Any], bytes, Reason]] = []

    def turned_away(self, receivers: Sequence[Any], message: Message, reason: Reason) -> None:
        self.refused.append((receivers, message.wire, reason))

    def dead_letter(
        self, receiver: object, entries: Sequence[Entry], code: ErrorCode, text: str
    ) -> None:
        raise AssertionError("no message of these tests is work")

    def discard(self, receiver: object, messages: Sequence[Message], reason: Reason) -> None:
        raise AssertionError("no message of these tests returns to a shared queue")

    def make_room_for(self, receiver: object, message: Message) -> bool:
        return False

    def watch_expiry(self, receiver: object) -> None:
        """Nothing expires."""

    def forget_expiry(self, receiver: object) -> None:
        """Nothing was watched."""

    def recheck(self, message: Message, receivers: Sequence[object]) -> None:
        raise AssertionError("no rights change in these tests")


def lone_hub(
    keeper: FakeKeeper,
    settling: Refusals,
    on_ready: Callable[[], None],
    linger: Callable[[Any, Message], None],
) -> Hub[Any]:
    routes: Routes[Any] = Routes()
    return Hub(
        on_ready=on_ready,
        linger=linger,
        store=keeper,
        settling=settling,
        histories=Histories(HistoryLimits(), keeper),
        ledger=Ledger(keeper),
        routes=routes,
        topics=Topics(
            routes.__contains__,
            lambda name: None,
            most=0,
            makers=SenderQuota(0, 0),
            are_used=False,
            on_change=lambda topics: None,
        ),
        notices=Notices(),
    )


def quiet_hub(keeper: FakeKeeper) -> Hub[Any]:
    """A hub whose readiness nobody awaits."""
    return lone_hub(keeper, Refusals(), lambda: None, lambda receiver, message: None)
