"""Publishes that wait for the store."""

import gc
import weakref
from unittest.mock import Mock

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.pending_publishes import PendingPublishes
from holdfast.store.turn_writes import PendingPublish


class Publisher:
    def __init__(self) -> None:
        self.heard: list[PersistOutcome] = []

    def hear(self, outcome: PersistOutcome) -> None:
        self.heard.append(outcome)


def test_an_answered_publish_is_freed_without_the_garbage_collector() -> None:
    publisher = Publisher()
    pending = PendingPublishes(Mock(time=lambda: 100.0), None)
    message = Message(b"{}", id=1, channel="/a", sender="")
    answered = pending.begin([PendingPublish(message, ("joe/1",), publisher.hear)])
    gc.disable()
    try:
        answered(b"OK")
        assert publisher.heard == [PersistOutcome.KEPT]
        left = weakref.ref(publisher)
        del answered, publisher
        assert left() is None
    finally:
        gc.enable()
