"""Waiting places for tests in which no message is addressed, and none is work."""

from typing import Any

from holdfast.bayeux.session_registry import Sessions
from holdfast.bayeux.shared_queue_sessions import SharedQueueSessions
from holdfast.delivery.channels import ChannelLimits, Channels
from holdfast.delivery.history_depth import HistoryLimits
from holdfast.delivery.hub import Hub
from holdfast.delivery.kept_messages import Histories
from holdfast.delivery.ledger import Ledger
from holdfast.delivery.node import Node
from holdfast.delivery.senders import Senders
from holdfast.delivery.shared_queues import SharedQueueLimits
from holdfast.delivery.subjects import Subjects
from holdfast.delivery.waiting_places import WaitingPlaces
from holdfast.delivery.work_queues import WorkQueues
from tests.unit.delivery.fake_keeper import FakeKeeper


def empty_places(keeper: FakeKeeper, node: Node) -> WaitingPlaces[Any]:
    """Places that stay empty."""
    hub: Hub[Any] = Hub(
        on_ready=lambda: None,
        linger=lambda *_: None,
        store=keeper,
        histories=Histories(HistoryLimits()),
        ledger=Ledger(keeper),
    )
    owner = SharedQueueSessions(hub, Sessions(lambda: "id", first=1), node)
    limits, senders = SharedQueueLimits(), Senders(0, 0)
    channels = Channels(ChannelLimits())
    return WaitingPlaces(
        Subjects(hub, owner, limits, senders),
        WorkQueues(hub, owner, limits, senders, channels, is_used=False),
    )
