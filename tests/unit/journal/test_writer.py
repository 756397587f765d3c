"""The outcome of an entry enters the journal once: live, or by a note."""

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.error_codes import INTERNAL_ERROR
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import ACKED, DISCARDED, EXPIRED, Move, Outcome
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.journal import notes
from holdfast.journal.frame import decode
from holdfast.journal.schema import SETTLED, Kind
from holdfast.journal.unfold import unfold
from holdfast.journal.writer import JournalWriter
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
    return [(outcome.kind, ID, key, reason)]


def test_the_note_of_a_settlement_has_its_outcome_and_reason() -> None:
    for outcome in OUTCOMES:
        writer, shelf = writer_and_shelf()
        assert writer.note_settled({ID: ["joe/1"]}, outcome)
        assert written(writer, shelf) == []
        writer.answered(1, is_there=True)
        assert written(writer, shelf) == expected(outcome, "joe/1")
        assert outcome.kind in SETTLED


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


def durable() -> Receiver:
    receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    receiver.is_durable = True
    return receiver


def failed(*attempts: int) -> list[Entry]:
    entries = [Entry(Message(b"{}", id=ID + n, channel="/a")) for n in range(len(attempts))]
    for entry, number in zip(entries, attempts, strict=True):
        entry.attempts = number
    return entries


def refused_in(note: bytes) -> list[tuple[object, ...]]:
    """The refusals of a note."""
    rows = notes.unpacked(note)[1] if note else []
    return [(row[1], row[2], row[4]) for row in rows if row[0] == Kind.REFUSED]


def test_a_refusal_is_in_the_note_of_the_call_that_changes_its_entry_and_in_no_other() -> None:
    receiver = durable()
    key = receiver.key
    writer, shelf = writer_and_shelf()
    writer.refused_with_note(receiver, failed(1, 2, 1, 1, 1), INTERNAL_ERROR, "")
    assert refused_in(writer.note_marked({key: [ID + 9], "other/1": [ID]}, {})) == []
    assert refused_in(writer.note_marked({key: [ID, ID + 1, ID + 2]}, {})) == [
        ([ID, ID + 2], 1, [key]),
        ([ID + 1], 2, [key]),
    ]
    settled = writer.note_settled({ID + 3: [key]}, DISCARDED[Reason.NO_LETTER])
    assert refused_in(settled) == [([ID + 3], 1, [key])]
    message = Message(b"{}", id=ID + 4, channel="/a")
    moved = writer.note_moved([Move(message, key, ["work:/a/0"], 1, 1)])
    assert refused_in(moved) == [([ID + 4], 1, [key])]
    assert written(writer, shelf) == []
    for number in range(1, 4):
        writer.answered(number, is_there=True)
    assert [each[0] for each in written(writer, shelf)].count(Kind.REFUSED) == 5


def test_a_refusal_is_before_the_move_of_a_message_that_is_not_stored() -> None:
    writer, shelf = writer_and_shelf()
    receiver = durable()
    writer.refused_with_note(receiver, failed(1), INTERNAL_ERROR, "")
    message = Message(b"{}", id=ID, channel="/a")
    writer.moved([Move(message, receiver.key, ["work:/a/0"], 1, 1)])
    writer.flush(0.0)
    kinds = [each[0] for each in written(writer, shelf)]
    assert kinds.index(Kind.REFUSED) < kinds.index(Kind.MOVED)


def test_a_refusal_waits_for_its_call_and_enters_the_journal_live_if_none_follows() -> None:
    writer, shelf = writer_and_shelf()
    receiver = durable()
    writer.refused_with_note(receiver, failed(1), INTERNAL_ERROR, "")
    writer.beat(0.0)
    assert writer.journal.count == writer.journal.waiting_rows == 0
    writer.beat(0.1)
    assert [each[0] for each in written(writer, shelf)] == [Kind.REFUSED]
    assert writer.note_marked({receiver.key: [ID]}, {}) == b""


def test_refusals_beyond_the_first_thousand_enter_the_journal_live() -> None:
    writer, shelf = writer_and_shelf()
    receiver = durable()
    entries = [Entry(Message(b"{}", id=ID + n, channel="/a")) for n in range(1500)]
    for entry in entries:
        writer.refused_with_note(receiver, [entry], INTERNAL_ERROR, "")
    note = writer.note_marked({receiver.key: [entry.message.id for entry in entries]}, {})
    assert [len(ids) for ids, *_ in refused_in(note)] == [1000]  # type: ignore[arg-type]
    assert len(written(writer, shelf)) == 500


def test_the_journal_writer_implements_every_method_of_the_delivery_journal() -> None:
    methods = {name for name in vars(DeliveryJournal) if not name.startswith("_")} - {"unread"}
    assert methods
    assert methods <= vars(JournalWriter).keys()


def sizes_of(writer: JournalWriter, shelf: Shelf) -> list[tuple[int | None, int | None]]:
    """The copies and the size of each publish."""
    writer.flush(0.0)
    events = [event for frame in shelf.frames for event in unfold(decode(frame))]
    return [(each.copies, each.size) for each in events if each.kind == Kind.PUBLISHED]


def stored(id: int) -> Message:
    message = Message(b"12345", id=id, channel="/a")
    message.is_durable = True
    return message


def test_only_the_shard_that_accepted_a_message_reports_its_size() -> None:
    own, other = ID + 2, ID + 1
    shelf = Shelf()
    writer = JournalWriter("here/2", shelf, now=0.0, now_ns=lambda: ID, shard=2)
    for id in (own, other):
        writer.published(Message(b"12345", id=id, channel="/a"), 1)
        assert writer.note_kept([(stored(id), ["joe/1", "ann/1"])])
    for number in (1, 2):
        writer.answered(number, is_there=True)
    assert sizes_of(writer, shelf) == [(1, 5), (1, 0), (2, 5), (2, 0)]


def test_a_server_alone_reports_the_size_whatever_the_id_ends_in() -> None:
    writer, shelf = writer_and_shelf()
    writer.published(Message(b"12345", id=ID + 7, channel="/a"), 1)
    assert sizes_of(writer, shelf) == [(1, 5)]


def test_a_message_that_only_other_shards_have_receivers_for_is_published_here() -> None:
    shelf = Shelf()
    writer = JournalWriter("here", shelf, now=0.0, now_ns=lambda: ID, shard=0)
    assert writer.note_kept([(stored(ID), [])])
    writer.answered(1, is_there=True)
    # The hub shows it to nobody here.
    writer.published(stored(ID), 0)
    assert sizes_of(writer, shelf) == [(0, 5)]
