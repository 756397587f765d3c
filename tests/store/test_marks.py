"""The marks of entries: made once a turn, with a note of every hand-over."""

from collections.abc import Collection, Mapping, Sequence

from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.ports.journal_port import DeliveryJournal
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.records import unpack_entry
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writes import PendingCall
from tests.store.store_process import BASE, KEYS, message

HandOvers = dict[str, list[tuple[int, int]]]


class Notebook(DeliveryJournal):
    """Remembers the hand-overs that it got."""

    def __init__(self) -> None:
        self.heard: list[HandOvers] = []

    def note_marked(
        self,
        marked: Mapping[str, Collection[int]],
        hand_overs: Mapping[str, Sequence[tuple[int, int]]],
    ) -> bytes:
        self.heard.append({key: list(each) for key, each in hand_overs.items()})
        return b"note"


def handed_over(entry: Entry, seq: int) -> Entry:
    entry.seq, entry.is_in_flight = seq, True
    entry.attempts += 1
    return entry


LIMITS = KeyLimits(clock=0, most=1000)


def leave(turns: TurnBuffer) -> tuple[list[PendingCall], list[HandOvers]]:
    journal = Notebook()
    calls = [call for turn in turns.take() for call in turn.calls(KEYS, LIMITS, journal)]
    return calls, journal.heard


def mark_in(call: PendingCall) -> Mark:
    """The only mark of the call."""
    *_, packed = call.call.args
    assert isinstance(packed, bytes)
    return unpack_entry(BASE + 1, packed)[0]


def test_an_entry_is_marked_once_a_turn_with_its_last_state() -> None:
    turns, entry = TurnBuffer(), handed_over(Entry(message(1)), 7)
    turns.mark("joe/1", [entry])
    entry.is_in_flight = False
    entry.redelivered = 1
    turns.mark("joe/1", [entry])
    ([call], told) = leave(turns)
    mark = mark_in(call)
    assert (mark.seq, mark.attempts, mark.redelivered) == (-7, 1, 1)
    assert told == [{"joe/1": [(BASE + 1, 1)]}]


def test_the_journal_gets_each_hand_over_of_a_turn() -> None:
    turns, entry = TurnBuffer(), handed_over(Entry(message(1)), 7)
    turns.mark("joe/1", [entry])
    entry.is_in_flight = False
    turns.mark("joe/1", [entry])
    turns.mark("joe/1", [handed_over(entry, 8)])
    turns.mark("joe/1", [entry])
    ([call], told) = leave(turns)
    assert (mark_in(call).seq, mark_in(call).attempts) == (8, 2)
    assert told == [{"joe/1": [(BASE + 1, 1), (BASE + 1, 2)]}]


def test_each_call_that_marks_entries_carries_a_note_of_their_hand_overs() -> None:
    turns, count = TurnBuffer(), 3000
    entries = [handed_over(Entry(message(n)), n) for n in range(1, count + 1)]
    turns.mark("joe/1", entries)
    calls, told = leave(turns)
    assert len(calls) == len(told) > 1
    assert [id - BASE for each in told for id, _ in each["joe/1"]] == list(range(1, count + 1))
