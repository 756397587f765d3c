"""Entries that return to their queue: their order, and which acks and replies settle them."""

from collections.abc import Iterable

import pytest

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.former_attempts import FormerAttempts, tried
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits


class Shelf:
    """An acknowledged queue in which messages are single letters."""

    def __init__(self, settling: SettledBy = SettledBy.BATCH) -> None:
        self.counters = Counters()
        self.queue = CallbackQueue(QueueLimits(), self.counters)
        self.queue.settling = settling
        self.batch = Batch(0, 0, messages=(), handed_at=0.0)

    def offer(self, texts: str, *, channel: str = "/a", priority: int = 5) -> None:
        for text in texts:
            message = Message(text.encode(), id=ord(text), channel=channel)
            message.priority = priority
            self.counters.accepted += 1
            assert self.queue.offer(message) is None

    def hand_over(self, texts: str = "", *, limit: int = -1, held: tuple[str, ...] = ()) -> str:
        self.offer(texts)
        self.batch = self.queue.next_batch(0.0, limit, held)
        return text_of(self.batch.messages)

    @property
    def returned(self) -> str:
        return text_of(self.queue.returned.values())

    @property
    def handed(self) -> str:
        return text_of(list(self.queue.in_flight().values()))


def text_of(what: Iterable[Entry | Message]) -> str:
    messages = [each.message if isinstance(each, Entry) else each for each in what]
    return "".join(message.wire.decode() for message in messages)


# Order


def test_returned_entries_precede_new_ones_in_the_order_of_their_hand_over() -> None:
    shelf = Shelf(SettledBy.VERDICT)
    shelf.hand_over("ab")
    shelf.hand_over("cd")
    shelf.queue.return_from(since=4)
    shelf.queue.return_from(since=2)
    shelf.offer("z", priority=9)
    assert (shelf.handed, shelf.returned) == ("a", "bcd")
    assert shelf.hand_over(limit=2) == "bc"
    assert shelf.hand_over() == "dz"


def test_returned_entries_beyond_the_limit_of_a_batch_keep_their_place() -> None:
    shelf = Shelf()
    shelf.hand_over("abc")
    assert shelf.hand_over(limit=2) == "ab"
    assert shelf.returned == "c"
    assert shelf.hand_over(limit=2) == "ab", "the order of their first hand-overs"
    shelf.queue.acknowledge(3)
    assert shelf.hand_over(limit=2) == "c"


def test_an_entry_that_went_again_while_a_later_one_was_pending_stays_ahead_of_it() -> None:
    shelf = Shelf()
    shelf.hand_over("ab")
    shelf.queue.keep_pending([2])
    assert shelf.hand_over() == "a", "the receiver works on b"
    shelf.queue.keep_pending([])
    assert shelf.hand_over(limit=1) == "a"
    shelf.queue.acknowledge(3)
    assert shelf.hand_over() == "b"


def test_messages_wait_by_priority_and_then_by_id_however_they_come() -> None:
    shelf = Shelf()
    for text, priority in (("c", 5), ("x", 9), ("a", 5), ("z", 1), ("b", 5), ("w", 9)):
        shelf.offer(text, priority=priority)
    assert shelf.hand_over() == "wxabcz"


# Acks


def test_an_ack_does_not_settle_an_entry_that_its_batch_left_out() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    shelf.hand_over(limit=0)
    assert shelf.returned == "a"
    assert shelf.queue.acknowledge(2) == []
    shelf.hand_over()
    assert shelf.queue.acknowledge(2) == []
    assert text_of(shelf.queue.acknowledge(3)) == "a"


def test_an_ack_does_not_settle_an_entry_that_its_batch_left_out_for_a_channel_hold() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    assert shelf.hand_over(held=("/a",)) == ""
    shelf.hand_over()
    assert shelf.queue.acknowledge(2) == []


def test_a_late_ack_settles_entries_that_lost_contact_returned_unless_they_are_pending() -> None:
    shelf = Shelf()
    shelf.hand_over("ab")
    shelf.queue.keep_pending([2])
    shelf.queue.return_all()
    assert text_of(shelf.queue.acknowledge(1)) == "a"
    assert shelf.returned == "b", "its receiver was still processing it"


def test_an_ack_does_not_settle_an_entry_that_was_given_back() -> None:
    shelf = Shelf()
    shelf.hand_over("ab")
    shelf.queue.return_all()
    shelf.queue.return_from(since=2)
    assert text_of(shelf.queue.acknowledge(1)) == "a"
    assert shelf.returned == "b"


# Replies


def test_an_unwritten_reply_returns_only_the_entries_that_it_carried() -> None:
    shelf = Shelf(SettledBy.VERDICT)
    shelf.hand_over("a")
    first = shelf.batch
    shelf.hand_over("b")
    assert text_of(shelf.queue.return_unwritten(first)) == "a"
    assert (shelf.handed, shelf.returned) == ("b", "a")


def test_an_unwritten_reply_returns_no_entry_that_a_later_reply_carries() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    first = shelf.batch
    shelf.hand_over("b")
    assert shelf.queue.return_unwritten(first) == []
    assert shelf.handed == "ab"


def test_entries_of_an_unwritten_reply_keep_their_earlier_batch() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    first = shelf.batch
    shelf.hand_over("b")
    shelf.queue.return_unwritten(shelf.batch)
    assert [entry.batch for entry in shelf.queue.returned.values()] == [1, 0]
    shelf.queue.return_unwritten(first)
    assert text_of(shelf.queue.acknowledge(1)) == "a"


def test_a_written_reply_settles_only_the_entries_that_it_carried() -> None:
    shelf = Shelf(SettledBy.WRITTEN)
    shelf.hand_over("a")
    first = shelf.batch
    shelf.hand_over("b")
    assert text_of(shelf.queue.written(first)) == "a"
    assert text_of(shelf.queue.written(shelf.batch)) == "b"


def test_a_written_reply_settles_entries_that_returned_meanwhile() -> None:
    shelf = Shelf(SettledBy.WRITTEN)
    shelf.hand_over("ab")
    carried = shelf.batch
    shelf.queue.return_all()
    assert text_of(shelf.queue.written(carried)) == "ab"
    assert (shelf.queue.count, shelf.queue.size) == (0, 0)


# Numbers and clients


def test_an_entry_is_found_only_by_its_latest_number() -> None:
    shelf = Shelf()
    shelf.hand_over("abc")
    shelf.queue.return_from(since=2)
    assert [_found(shelf.queue.find(seq)) for seq in range(5)] == ["", "a", "b", "c", ""]
    shelf.hand_over()
    assert [_found(shelf.queue.find(seq)) for seq in (1, 2, 3, 4)] == ["", "", "", "a"]


def _found(entry: Entry | None) -> str:
    return "" if entry is None else entry.message.wire.decode()


def test_a_takeover_returns_all_entries_and_forgets_their_numbers_and_batches() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    shelf.hand_over(limit=0)
    shelf.hand_over("b")
    shelf.queue.is_restored = True
    back = shelf.queue.return_for_takeover()
    assert text_of(back) == "ab"
    assert [(entry.redelivered, entry.batch) for entry in back] == [(2, 0), (1, 0)]
    assert (shelf.queue.batch, shelf.queue.is_restored) == (0, False)
    assert [shelf.queue.find(seq) for seq in range(4)] == [None] * 4
    assert shelf.queue.remove([2, 3]) == []
    assert shelf.hand_over() == "ab"
    assert shelf.queue.seq == 5, "numbers keep rising"
    assert text_of(shelf.queue.acknowledge(1)) == "ab"
    assert shelf.counters.redelivered == 3


@pytest.mark.parametrize("is_returned", [False, True])
def test_after_a_restart_an_ack_of_an_unknown_batch_settles_nothing_that_may_have_been_refused(
    is_returned: bool,
) -> None:
    shelf = Shelf()
    shelf.queue.gives_verdicts = True
    shelf.hand_over("ab")
    if is_returned:
        shelf.queue.return_all()
    shelf.queue.is_restored = True
    assert text_of(shelf.queue.acknowledge(5)) == ""
    shelf.queue.window = 0
    assert shelf.hand_over("c") == "abc"
    assert shelf.batch.number == 6
    assert text_of(shelf.queue.acknowledge(5)) == ""
    assert text_of(shelf.queue.acknowledge(6)) == "abc"


def test_after_a_restart_an_ack_of_an_unknown_batch_settles_what_cannot_be_refused() -> None:
    shelf = Shelf()
    shelf.hand_over("ab")
    shelf.queue.is_restored = True
    assert text_of(shelf.queue.acknowledge(5)) == "ab"
    shelf.hand_over("c")
    assert shelf.batch.number == 6


def test_a_queue_can_take_the_terms_of_another() -> None:
    shelf = Shelf()
    shelf.hand_over("ab")
    other = CallbackQueue(QueueLimits(entries=3), Counters())
    other.settling, other.response_timeout_s = SettledBy.VERDICT, 7.0
    shelf.queue.take_terms(other)
    assert shelf.queue.settling is SettledBy.VERDICT
    assert shelf.queue.response_timeout_s == 7.0
    shelf.offer("c")
    assert shelf.queue.offer(Message(b"d")) is not None


# Attempts of other sessions


def test_a_copy_with_former_attempts_takes_the_place_of_its_waiting_message() -> None:
    shelf = Shelf()
    shelf.offer("bca")
    once = FormerAttempts(1, 1, (), was_alone=True)
    for message in list(shelf.queue.new):
        shelf.queue.exchange(message, tried(message, once))
    assert text_of(shelf.queue.new) == "abc"
    assert [entry.attempts for entry in shelf.queue.entries()] == [1, 1, 1]
    assert (shelf.queue.count, shelf.queue.size) == (3, 3)


def test_a_recalled_message_with_former_attempts_is_a_returned_entry() -> None:
    shelf = Shelf()
    shelf.offer("ab")
    b = shelf.queue.new[1]
    shelf.queue.exchange(b, tried(b, FormerAttempts(1, 1, ())))
    shelf.queue.recall()
    assert (shelf.returned, text_of(shelf.queue.new)) == ("b", "a")
    assert shelf.hand_over() == "ba"
    # The number that keeps the place was never handed over.
    assert list(shelf.queue.in_flight()) == [2, 3]
