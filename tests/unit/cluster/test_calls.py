"""Calls between shards: each is done once and answered, or its outcome is unknown."""

from holdfast.cluster.calls import (
    WAITS_FOR_REPLICAS,
    Received,
    SentCalls,
    UndoneCalls,
    call,
    confirmation_of,
)
from holdfast.cluster.frames import ANSWER, LogEntry, read, write
from holdfast.delivery.messages.shard_call import ShardCall


class Sender:
    """A shard that sends calls."""

    def __init__(self) -> None:
        self.entries: list[tuple[LogEntry, int]] = []
        self.results: list[bytes | None] = []
        self.sent = SentCalls(lambda entry, shard: self.entries.append((entry, shard)))

    def send(self, id: int, now: float = 0.0) -> LogEntry:
        asking = call("publish", id, b"data")
        self.sent.send(asking, 3, now, self.results.append)
        return asking


class Receiver:
    """A shard that gets calls."""

    def __init__(self) -> None:
        self.begun: list[Received] = []
        self.inbox = UndoneCalls(self.begun.append)


def answer(id: int, data: bytes = b"answer") -> LogEntry:
    return LogEntry(ANSWER, "", id, "", 0, data)


def test_a_call_is_an_entry_for_one_shard_and_its_sender_hears_the_answer_once() -> None:
    at = Sender()
    asking = at.send(7)
    assert at.entries == [(asking, 3)]
    assert read(write([asking])).all_entries() == [asking]
    at.sent.answered(answer(7))
    at.sent.answered(answer(7))
    assert at.results == [b"answer"]
    assert at.sent.late == 1


def test_a_call_without_an_answer_is_unknown_after_five_seconds() -> None:
    at = Sender()
    at.send(7, now=1.0)
    at.send(8, now=2.0)
    at.sent.tick(5.9)
    assert at.results == []
    at.sent.tick(6.0)
    assert at.results == [None]
    assert len(at.sent) == 1
    at.sent.answered(answer(7))
    assert at.sent.late == 1


def test_calls_are_done_without_waiting_for_each_other() -> None:
    at = Receiver()
    first, second = call("a", 1, b"1"), call("b", 2, b"2")
    at.inbox.take(5, first)
    at.inbox.take(5, second)
    assert [each.entry for each in at.begun] == [first, second]
    at.inbox.forget("5 2")
    assert [each.entry.id for each in at.inbox.calls()] == [1]


def test_a_call_that_is_told_again_while_it_is_done_is_not_done_again() -> None:
    at = Receiver()
    for _ in range(2):
        at.inbox.take(5, call("a", 1, b""))
    assert len(at.begun) == len(at.inbox) == 1


def test_calls_of_two_shards_may_have_the_same_id() -> None:
    at = Receiver()
    for shard in (5, 6):
        at.inbox.take(shard, call("a", 1, b""))
    assert [each.name for each in at.begun] == ["5 1", "6 1"]


def test_an_answer_that_waits_for_replicas_counts_once_it_is_confirmed() -> None:
    at = Sender()
    for id in (7, 8):
        at.send(id)
        at.sent.answered(answer(id)._replace(flags=WAITS_FOR_REPLICAS))
    assert at.results == []
    at.sent.answered(confirmation_of(ShardCall(0, 7, "0 7", "publish", b"")))
    assert at.results == [b"answer"]
    # No replica has what the other one stored.
    at.sent.tick(5.0)
    assert at.results[1:] == [None]


def test_a_confirmation_without_an_answer_says_nothing() -> None:
    at = Sender()
    at.send(7)
    at.sent.answered(confirmation_of(ShardCall(0, 7, "0 7", "publish", b"")))
    assert at.results == [None]
