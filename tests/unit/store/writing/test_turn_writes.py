"""The order of the calls of a turn."""

import pytest

from holdfast.delivery.basics.error_codes import UPDATE_ERROR
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.letters.unwritten import DeadEntry, Death
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.marks import BatchMark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED, DISCARDED
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writes import PendingCall

KEYS = RedisKeys("test")
LIMITS = KeyLimits(clock=0, most=9)


def urgent_calls(buffer: TurnBuffer) -> list[PendingCall]:
    return [call for turn in buffer.take_urgent() for call in turn.calls(KEYS, LIMITS, NO_JOURNAL)]


def names(calls: list[PendingCall]) -> list[object]:
    return [each.call.script for each in calls]


def dead(id: int) -> DeadEntry:
    message = Message(b"{}", id=id, channel="/a", sender="ann")
    return DeadEntry(Entry(message), Death("joe/1", UPDATE_ERROR, "", None), id)


def test_acks_of_a_batch_are_stored_before_the_batch_that_replaces_it() -> None:
    # After a kill between the two calls, messages that were acked would come again as new.
    buffer = TurnBuffer()
    buffer.settle("joe/1", [1, 2], ACKED)
    buffer.mark_batch("joe/1", BatchMark(6, 3, [3]))
    assert names(urgent_calls(buffer)) == [scripts.SETTLE, scripts.MARK_BATCHES]


def test_discarded_messages_of_a_batch_are_stored_before_the_batch_that_replaces_it() -> None:
    buffer = TurnBuffer()
    buffer.settle("joe/1", [1], ACKED)
    buffer.settle("joe/1", [2], DISCARDED[Reason.OUTDATED])
    buffer.mark_batch("joe/1", BatchMark(6, 3, [3]))
    assert names(urgent_calls(buffer)) == [scripts.SETTLE, scripts.SETTLE, scripts.MARK_BATCHES]


def test_refused_messages_of_a_batch_are_stored_before_the_batch_that_replaces_it() -> None:
    buffer = TurnBuffer()
    buffer.dead_letter([dead(2)], None)
    for receiver in ("joe/1", "ann/1"):
        buffer.dead_letter([dead(1)], receiver)
        buffer.mark_batch(receiver, BatchMark(6, 3, [3]))
    assert names(urgent_calls(buffer)) == [scripts.DEAD_LETTER, scripts.MARK_BATCHES]


def test_refused_messages_of_a_batch_of_the_same_turn_follow_it() -> None:
    buffer = TurnBuffer()
    buffer.dead_letter([dead(1)], "joe/1")
    buffer.mark_batch("joe/1", BatchMark(6, 3, [3]))
    buffer.dead_letter([dead(3)], "joe/1")
    calls = urgent_calls(buffer)
    assert names(calls) == [scripts.DEAD_LETTER, scripts.MARK_BATCHES, scripts.DEAD_LETTER]
    assert [each.may_wait for each in calls] == [True] * 3
    # The next batch replaces one of which a message is dead.
    buffer.mark_batch("joe/1", BatchMark(6, 3, [3]))
    buffer.dead_letter([dead(3)], "joe/1")
    buffer.mark_batch("joe/1", BatchMark(7, 4, [4]))
    expected = [scripts.MARK_BATCHES, scripts.DEAD_LETTER, scripts.MARK_BATCHES]
    assert names(urgent_calls(buffer)) == expected


def test_acks_of_a_batch_of_the_same_turn_follow_it() -> None:
    buffer = TurnBuffer()
    buffer.mark_batch("joe/1", BatchMark(6, 3, [3]))
    buffer.settle("joe/1", [3], ACKED)
    assert names(urgent_calls(buffer)) == [scripts.MARK_BATCHES, scripts.SETTLE]


def test_acks_before_and_behind_a_batch_keep_their_places() -> None:
    # As of a session that needs no acks: what was sent to it is settled at once.
    buffer = TurnBuffer()
    for receiver in ("joe/1", "ann/1"):
        buffer.settle(receiver, [1], ACKED)
        buffer.mark_batch(receiver, BatchMark(6, 3, [3]))
        buffer.settle(receiver, [3], ACKED)
    calls = urgent_calls(buffer)
    assert names(calls) == [scripts.SETTLE, scripts.MARK_BATCHES, scripts.SETTLE]
    first, _, last = [" ".join(map(str, each.call.args)) for each in calls]
    assert "3" not in first
    assert "3" in last


@pytest.mark.parametrize("replies_leave", [False, True])
def test_what_precedes_replies_that_leave_does_not_wait(replies_leave: bool) -> None:
    buffer = TurnBuffer()
    buffer.settle("joe/1", [1, 2], ACKED)
    buffer.mark_batch("joe/1", BatchMark(6, 3, [3]))
    if replies_leave:
        buffer.let_replies_leave()
    assert all(each.may_wait is not replies_leave for each in urgent_calls(buffer))


def test_acks_of_other_sessions_follow_later() -> None:
    buffer = TurnBuffer()
    buffer.settle("joe/1", [1, 2], ACKED)
    buffer.mark_batch("ann/1", BatchMark(6, 3, [3]))
    assert names(urgent_calls(buffer)) == [scripts.MARK_BATCHES]
    later = [call for turn in buffer.take() for call in turn.calls(KEYS, LIMITS, NO_JOURNAL)]
    assert names(later) == [scripts.SETTLE]
