"""The outcome of an entry enters the journal once: live, or by a note."""

from holdfast.delivery.counters import Counters, Reason
from holdfast.delivery.delivery_journal import DeliveryJournal
from holdfast.delivery.entries import Entry
from holdfast.delivery.error_codes import INTERNAL_ERROR
from holdfast.delivery.messages import Message
from holdfast.delivery.moves import Move
from holdfast.delivery.outcomes import ACKED, DISCARDED, EXPIRED, NEVER_KEPT, Outcome
from holdfast.delivery.queue import CallbackQueue, QueueLimits
from holdfast.delivery.receivers import Receiver
from holdfast.journal import notes
from holdfast.journal.frame import decode
from holdfast.journal.journal_writer import JournalWriter
from holdfast.journal.schema import SETTLED, Kind
from holdfast.journal.unfold import unfold
from tests.unit.journal.ledger import Shelf

WALL_US = 1_763_600_000_000_000
ID = WALL_US * 1000
OUTCOMES = (ACKED, EXPIRED, *DISCARDED.values())


def writer_and_shelf() -> tuple[JournalWriter, Shelf]:
    shelf = Shelf()
    return JournalWriter("here", shelf, now=0.0, now_ns=lambda: ID), shelf


def written(
    writer: JournalWriter, shelf: Shelf
) -> list[tuple[str, int | None, str | None, str | None]]:
    writer.flush(0.0)
    events = [event for frame in shelf.frames for event in unfold(decode(frame))]
    return [(event.kind, event.msg, event.receiver, event.code) for event in events]


def expected(outcome: Outcome, key: str) -> list[tuple[str, int, str, str | None]]:
    reason = None if outcome.reason is None else outcome.reason.value
    return [(outcome.way.value, ID, key, reason)]


def test_the_note_of_a_settlement_has_its_outcome_and_reason() -> None:
    for outcome in OUTCOMES:
        writer, shelf = writer_and_shelf()
        assert writer.note_settled({ID: ["joe/1"]}, outcome)
        assert written(writer, shelf) == []
        writer.answered(1, is_there=True)
        assert written(writer, shelf) == expected(outcome, "joe/1")
        assert outcome.way.value in SETTLED


def test_a_settlement_without_the_store_has_the_same_events_as_one_with_a_note() -> None:
    receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    for outcome in (EXPIRED, DISCARDED[Reason.CLEARED]):
        writer, shelf = writer_and_shelf()
        writer.settled(receiver, [Message(b"{}", id=ID, channel="/a")], outcome)
        assert written(writer, shelf) == expected(outcome, receiver.key)


def test_a_replay_says_whether_the_store_has_the_copy_and_so_do_its_moves() -> None:
    for is_durable in (True, False):
        writer, shelf = writer_and_shelf()
        message = Message(b"{}", id=ID, channel="/a")
        message.is_durable, message.generation = is_durable, 2
        writer.replayed("joe/1", message, 7)
        writer.moved([Move(message, "joe/1", ["joe/0"], 1, 1)])
        writer.flush(0.0)
        events = [event for frame in shelf.frames for event in unfold(decode(frame))]
        assert [(each.kind, each.letter, each.generation, each.kept) for each in events] == [
            ("replayed", 7, 2, int(is_durable)),
            ("moved", None, 2, int(is_durable)),
            ("entered", None, 2, int(is_durable)),
        ]


def test_the_settlement_of_an_entry_that_was_never_kept_has_no_note() -> None:
    writer, _ = writer_and_shelf()
    assert writer.note_settled({ID: ["joe/1"]}, NEVER_KEPT) == b""


def durable() -> Receiver:
    receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    receiver.is_durable = True
    return receiver


def failed(*attempts: int) -> list[Entry]:
    entries = [Entry(Message(b"{}", id=ID + n, channel="/a")) for n in range(len(attempts))]
    for entry, number in zip(entries, attempts, strict=True):
        entry.attempts = number
    return entries


def test_a_refusal_of_a_durable_session_is_in_the_note_of_the_call_that_follows() -> None:
    receiver, key = durable(), "anonymous/-1"
    for is_last in (True, False):
        writer, shelf = writer_and_shelf()
        writer.refused_with_note(receiver, failed(1, 2, 1), INTERNAL_ERROR, "")
        outcome = DISCARDED[Reason.NO_LETTER]
        note = writer.note_settled({ID: [key]}, outcome) if is_last else writer.note_marked({})
        _, rows = notes.unpacked(note)
        of_refusals = [(row[0], row[1], row[2], row[4]) for row in rows[:2]]
        keys = [receiver.key]
        assert of_refusals == [
            (Kind.REFUSED, [ID, ID + 2], 1, keys),
            (Kind.REFUSED, [ID + 1], 2, keys),
        ]
        assert written(writer, shelf) == []
        writer.answered(1, is_there=True)
        assert [each[0] for each in written(writer, shelf)].count(Kind.REFUSED) == 3


def test_a_refusal_that_no_call_follows_enters_the_journal_live() -> None:
    writer, shelf = writer_and_shelf()
    writer.refused_with_note(durable(), failed(1), INTERNAL_ERROR, "")
    assert [each[0] for each in written(writer, shelf)] == [Kind.REFUSED]
    assert writer.note_marked({}) == b""


def test_refusals_beyond_the_first_hundred_of_a_turn_enter_the_journal_live() -> None:
    writer, shelf = writer_and_shelf()
    receiver = durable()
    for _ in range(150):
        writer.refused_with_note(receiver, failed(1), INTERNAL_ERROR, "")
    _, rows = notes.unpacked(writer.note_marked({}))
    assert (len(rows), len(written(writer, shelf))) == (100, 50)


def test_the_journal_writer_implements_every_method_of_the_delivery_journal() -> None:
    methods = {name for name in vars(DeliveryJournal) if not name.startswith("_")} - {"unread"}
    assert methods
    assert methods <= vars(JournalWriter).keys()
