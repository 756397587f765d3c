"""Publishes that wait for the store."""

import gc
import weakref
from typing import Any
from unittest.mock import Mock

import pytest

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_call import Effect, ShardCall
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.writing.pending_publishes import PendingPublishes
from holdfast.store.writing.turn_writes import PendingPublish


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


@pytest.mark.parametrize("is_confirmed", [True, False])
def test_what_another_shard_asked_for_counts_only_if_replicas_confirm_it(
    is_confirmed: bool,
) -> None:
    asked: list[Any] = []
    pending = PendingPublishes(Mock(time=lambda: 100.0), lambda _, done: asked.append(done))
    message = Message(b"{}", id=1, channel="/a", sender="")
    effect = Effect(ShardCall(1, 7, "1 7", "published", b""), b"answer")
    effect.mark(message)
    told: list[tuple[PersistOutcome, bool]] = []

    def hear(outcome: PersistOutcome) -> None:
        told.append((outcome, effect.is_confirmed))

    pending.begin([PendingPublish(message, ("joe/1",), hear)])(b"OK")
    assert told == []
    asked[0](is_confirmed)
    assert told[-1] == (PersistOutcome.KEPT, is_confirmed)
