"""Letters between shards: each is done once and answered, or its outcome is unknown."""

from holdfast.cluster.frames import ANSWER, LETTER, Entry, read, write
from holdfast.cluster.letters import (
    WAITS_FOR_REPLICAS,
    Done,
    Inbox,
    LetterResult,
    Outcome,
    Received,
    SentLetters,
    confirmation_of,
    letter,
)
from holdfast.delivery.messages.shard_letter import ShardLetter


class Sender:
    """A shard that sends letters."""

    def __init__(self) -> None:
        self.entries: list[tuple[Entry, int]] = []
        self.results: list[LetterResult] = []
        self.sent = SentLetters(lambda entry, shard: self.entries.append((entry, shard)))

    def send(self, id: int, now: float = 0.0) -> Entry:
        asking = letter("publish", id, b"data", until_ms=5000)
        self.sent.send(asking, 3, now, self.results.append)
        return asking


class Receiver:
    """A shard that gets letters."""

    def __init__(self) -> None:
        self.begun: list[Received] = []
        self.refused: list[Done] = []
        self.inbox = Inbox(self.begun.append, self.refused.append)


def answer(id: int, data: bytes = b"answer") -> Entry:
    return Entry(ANSWER, "", id, "", 0, data)


def test_a_letter_is_an_entry_for_one_shard_and_its_sender_hears_the_answer_once() -> None:
    at = Sender()
    asking = at.send(7)
    assert at.entries == [(asking, 3)]
    assert read(write([asking])).all_entries() == [asking]
    at.sent.answered(answer(7))
    at.sent.answered(answer(7))
    assert at.results == [LetterResult(Outcome.ANSWERED, b"answer")]
    assert at.sent.late == 1


def test_a_letter_without_an_answer_is_unknown_after_five_seconds() -> None:
    at = Sender()
    at.send(7, now=1.0)
    at.send(8, now=2.0)
    at.sent.tick(5.9)
    assert at.results == []
    at.sent.tick(6.0)
    assert at.results == [LetterResult(Outcome.UNKNOWN)]
    assert len(at.sent) == 1
    at.sent.answered(answer(7))
    assert at.sent.late == 1


def test_letters_are_done_without_waiting_for_each_other() -> None:
    at = Receiver()
    first, second = letter("a", 1, b"1", until_ms=9), letter("b", 2, b"2", until_ms=9)
    at.inbox.take(5, first, 9)
    at.inbox.take(5, second, 9)
    assert [each.entry for each in at.begun] == [first, second]
    done = at.inbox.done(at.begun[1], b"two")
    assert done == Done("5 2", answer(2, b"two"), 5)
    assert [each.entry.id for each in at.inbox.letters()] == [1]


def test_a_letter_that_comes_too_late_is_refused_unless_it_is_for_good() -> None:
    at, sender = Receiver(), Sender()
    at.inbox.take(5, letter("a", 1, b"", until_ms=1000), 1001)
    at.inbox.take(5, letter("publish", 2, b"", until_ms=1000, is_for_good=True), 99_999)
    assert [done.name for done in at.refused] == ["5 1"]
    assert [each.entry.id for each in at.begun] == [2]
    sender.send(1)
    sender.sent.answered(at.refused[0].answer)
    assert sender.results[0].outcome is Outcome.EXPIRED


def test_a_letter_that_is_told_again_while_it_is_done_is_not_done_again() -> None:
    at = Receiver()
    for _ in range(2):
        at.inbox.take(5, letter("a", 1, b"", until_ms=9), 1)
    assert len(at.begun) == len(at.inbox) == 1


def test_letters_of_two_shards_may_have_the_same_id() -> None:
    at = Receiver()
    for shard in (5, 6):
        at.inbox.take(shard, Entry(LETTER, "a", 1, "9", 0, b""), 1)
    assert [each.name for each in at.begun] == ["5 1", "6 1"]


def test_an_answer_that_waits_for_replicas_counts_once_it_is_confirmed() -> None:
    at = Sender()
    for id in (7, 8):
        at.send(id)
        at.sent.answered(answer(id)._replace(flags=WAITS_FOR_REPLICAS))
    assert at.results == []
    at.sent.answered(confirmation_of(ShardLetter(0, 7, "0 7", "publish", b"")))
    assert at.results == [LetterResult(Outcome.ANSWERED, b"answer")]
    # No replica has what the other one stored.
    at.sent.tick(5.0)
    assert at.results[1:] == [LetterResult(Outcome.UNKNOWN)]


def test_a_confirmation_without_an_answer_says_nothing() -> None:
    at = Sender()
    at.send(7)
    at.sent.answered(confirmation_of(ShardLetter(0, 7, "0 7", "publish", b"")))
    assert at.results == [LetterResult(Outcome.UNKNOWN)]
