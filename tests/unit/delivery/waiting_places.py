"""Waiting places for tests in which no message is addressed, delayed, or work."""

from typing import Any

from holdfast.bayeux.state.session_registry import Sessions, SharedQueueSessions
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.delivery.basics.channels import Channels
from holdfast.delivery.basics.node import Node
from holdfast.delivery.shared_queues.places import WaitingPlaces
from holdfast.delivery.shared_queues.shared_queues import SharedQueueLimits
from holdfast.delivery.shared_queues.subjects import Subjects
from holdfast.delivery.shared_queues.work_queues import WorkQueues
from holdfast.delivery.topics.sender_quota import SenderQuota
from tests.unit.delivery.fake_keeper import FakeKeeper
from tests.unit.delivery.lone_hub import quiet_hub


def empty_places(keeper: FakeKeeper, node: Node) -> WaitingPlaces[Any]:
    """Places that stay empty."""
    hub = quiet_hub(keeper)
    owner = SharedQueueSessions(hub, Sessions(ClientIds(b"", bytes), first=1), node)
    limits, senders = SharedQueueLimits(), SenderQuota(0, 0)
    channels = Channels()
    return WaitingPlaces(
        Subjects(hub, owner, limits, senders),
        WorkQueues(hub, owner, limits=limits, senders=senders, channels=channels, is_used=False),
    )
