"""Entries that come back to their queue: in which order, and who may still speak of them."""

from collections.abc import Iterable

from holdfast.delivery.batch import NO_BATCH
from holdfast.delivery.counters import Counters
from holdfast.delivery.entries import Entry, SettledBy
from holdfast.delivery.messages import Message
from holdfast.delivery.queue import CallbackQueue, QueueLimits
from holdfast.delivery.trails import FormerAttempts


class Shelf:
    """An acknowledged queue in which messages are single letters."""

    def __init__(self, settling: SettledBy = SettledBy.BATCH) -> None:
        self.counters = Counters()
        self.queue = CallbackQueue(QueueLimits(), self.counters)
        self.queue.settling = settling
        self.batch = NO_BATCH

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


def test_returned_entries_precede_waiting_ones_in_the_order_of_their_hand_over() -> None:
    shelf = Shelf(SettledBy.VERDICT)
    shelf.hand_over("ab")
    shelf.hand_over("cd")
    shelf.queue.give_back(since=4)
    shelf.queue.give_back(since=2)
    shelf.offer("z", priority=9)
    assert (shelf.handed, shelf.returned) == ("a", "bcd")
    assert shelf.hand_over(limit=2) == "bc"
    assert shelf.hand_over() == "dz"


def test_what_is_over_the_limit_stays_in_its_place() -> None:
    shelf = Shelf()
    shelf.hand_over("abc")
    assert shelf.hand_over(limit=2) == "ab"
    assert shelf.returned == "c"
    assert shelf.hand_over(limit=2) == "ab", "the order of their first hand-overs"
    shelf.queue.acknowledge(3)
    assert shelf.hand_over(limit=2) == "c"


def test_what_comes_in_is_put_behind_all_that_is_as_urgent_whatever_its_id() -> None:
    shelf = Shelf()
    for text, priority in (("c", 5), ("x", 9), ("a", 5), ("z", 1), ("b", 5), ("w", 9)):
        shelf.offer(text, priority=priority)
    assert shelf.hand_over() == "xwcabz"


# Acknowledgements


def test_a_batch_does_not_speak_for_what_a_later_answer_did_not_carry() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    shelf.hand_over(limit=0)
    assert shelf.returned == "a"
    assert shelf.queue.acknowledge(2) == []
    shelf.hand_over()
    assert shelf.queue.acknowledge(2) == []
    assert text_of(shelf.queue.acknowledge(3)) == "a"


def test_a_batch_does_not_speak_for_a_channel_that_was_held_back_since() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    assert shelf.hand_over(held=("/a",)) == ""
    shelf.hand_over()
    assert shelf.queue.acknowledge(2) == []


def test_what_was_lost_sight_of_is_settled_by_an_acknowledgement_that_comes_after_all() -> None:
    shelf = Shelf()
    shelf.hand_over("ab")
    shelf.queue.keep_pending([2])
    shelf.queue.lose_sight()
    assert text_of(shelf.queue.acknowledge(1)) == "a"
    assert shelf.returned == "b", "its receiver still worked on it"


def test_what_was_returned_on_purpose_is_not_settled_by_an_acknowledgement() -> None:
    shelf = Shelf()
    shelf.hand_over("ab")
    shelf.queue.lose_sight()
    shelf.queue.give_back(since=2)
    assert text_of(shelf.queue.acknowledge(1)) == "a"
    assert shelf.returned == "b"


# Answers


def test_only_what_an_answer_carried_comes_back_if_nobody_takes_it() -> None:
    shelf = Shelf(SettledBy.VERDICT)
    shelf.hand_over("a")
    first = shelf.batch
    shelf.hand_over("b")
    assert text_of(shelf.queue.not_written(first)) == "a"
    assert (shelf.handed, shelf.returned) == ("b", "a")


def test_what_was_handed_over_again_meanwhile_is_another_answers_affair() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    first = shelf.batch
    shelf.hand_over("b")
    assert shelf.queue.not_written(first) == []
    assert shelf.handed == "ab"


def test_an_answer_that_nobody_took_was_no_batch() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    first = shelf.batch
    shelf.hand_over("b")
    shelf.queue.not_written(shelf.batch)
    assert [entry.batch for entry in shelf.queue.returned.values()] == [1, 0]
    shelf.queue.not_written(first)
    assert text_of(shelf.queue.acknowledge(1)) == "a"


def test_only_what_an_answer_carried_is_settled_when_it_is_written() -> None:
    shelf = Shelf(SettledBy.WRITTEN)
    shelf.hand_over("a")
    first = shelf.batch
    shelf.hand_over("b")
    assert text_of(shelf.queue.written(first)) == "a"
    assert text_of(shelf.queue.written(shelf.batch)) == "b"


def test_what_was_returned_while_it_was_written_is_settled_all_the_same() -> None:
    shelf = Shelf(SettledBy.WRITTEN)
    shelf.hand_over("ab")
    carried = shelf.batch
    shelf.queue.lose_sight()
    assert text_of(shelf.queue.written(carried)) == "ab"
    assert (shelf.queue.count, shelf.queue.size) == (0, 0)


# Whom it belongs to


def test_an_entry_is_found_by_its_last_number_alone() -> None:
    shelf = Shelf()
    shelf.hand_over("abc")
    shelf.queue.give_back(since=2)
    assert [_found(shelf.queue.find(seq)) for seq in range(5)] == ["", "a", "b", "c", ""]
    shelf.hand_over()
    assert [_found(shelf.queue.find(seq)) for seq in (1, 2, 3, 4)] == ["", "", "", "a"]


def _found(entry: Entry | None) -> str:
    return "" if entry is None else entry.message.wire.decode()


def test_the_next_client_was_told_no_numbers_and_gets_everything_again() -> None:
    shelf = Shelf()
    shelf.hand_over("a")
    shelf.hand_over(limit=0)
    shelf.hand_over("b")
    shelf.queue.is_restored = True
    back = shelf.queue.change_hands()
    assert text_of(back) == "ab"
    assert [(entry.redelivered, entry.batch) for entry in back] == [(2, 0), (1, 0)]
    assert (shelf.queue.batch, shelf.queue.is_restored) == (0, False)
    assert [shelf.queue.find(seq) for seq in range(4)] == [None] * 4
    assert shelf.queue.withdraw([2, 3]) == []
    assert shelf.hand_over() == "ab"
    assert shelf.queue.seq == 5, "numbers rise whoever is told"
    assert text_of(shelf.queue.acknowledge(1)) == "ab"
    assert shelf.counters.redelivered == 3


def test_what_was_agreed_for_another_queue_can_be_taken() -> None:
    shelf = Shelf()
    shelf.hand_over("ab")
    other = CallbackQueue(QueueLimits(entries=3), Counters())
    other.settling, other.response_timeout_s = SettledBy.VERDICT, 7.0
    shelf.queue.take_terms(other)
    assert shelf.queue.settling is SettledBy.VERDICT
    assert shelf.queue.response_timeout_s == 7.0
    shelf.offer("c")
    assert shelf.queue.offer(Message(b"d")) is not None


# What other sessions attempted


def test_a_copy_with_former_attempts_takes_the_place_of_its_message_wherever_that_waits() -> None:
    shelf = Shelf()
    shelf.offer("bca")
    once = FormerAttempts(1, 1, (), was_alone=True)
    for message in list(shelf.queue.waiting):
        shelf.queue.exchange(message, message.tried(once))
    assert text_of(shelf.queue.waiting) == "abc"
    assert [entry.attempts for entry in shelf.queue.entries()] == [1, 1, 1]
    assert (shelf.queue.count, shelf.queue.size) == (3, 3)


def test_what_others_were_handed_goes_like_what_came_back() -> None:
    shelf = Shelf()
    shelf.offer("ab")
    b = shelf.queue.waiting[1]
    shelf.queue.exchange(b, b.tried(FormerAttempts(1, 1, ())))
    shelf.queue.recall()
    assert (shelf.returned, text_of(shelf.queue.waiting)) == ("b", "a")
    assert shelf.hand_over() == "ba"
    # The number that keeps a place is nobody's.
    assert list(shelf.queue.in_flight()) == [2, 3]
