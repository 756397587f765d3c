"""Events leave in order, wait for a store that is away, and are counted if they cannot."""

from collections.abc import Callable, Sequence

import pytest

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import DISCARDED
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.journal import notes
from holdfast.journal.frame import decode, decode_head
from holdfast.journal.journal import Journal
from holdfast.journal.schema import BOOKS_S, FULL, LONGEST_WAIT_S, MOST_EVENTS, Event, Kind
from holdfast.journal.unfold import unfold
from holdfast.journal.writer import JournalWriter

WALL = 1_763_600_000_000_000
MESSAGE = Message(b"{}", id=WALL * 1000, channel="/a", sender="client/joe/1")


class Shelf:
    """An `Outlet` that can be shut."""

    def __init__(self) -> None:
        self.is_available = True
        self.frames: list[bytes] = []
        self.notes: list[int] = []

    def write_frame(
        self, frame: bytes, notes: Sequence[int], refused: Callable[[], None] | None = None
    ) -> None:
        assert self.is_available
        self.frames.append(frame)
        self.notes += notes

    @property
    def events(self) -> list[Event]:
        return [event for frame in self.frames for event in unfold(decode(frame))]


class Wall:
    """A clock that can be put back."""

    def __init__(self) -> None:
        self.put_back_us = 0
        self.now = 0.0

    def __call__(self) -> int:
        return (WALL + int(self.now * 1e6) - self.put_back_us) * 1000


class JournalAlone:
    """A journal with what it needs."""

    def __init__(self, most_bytes: int = 1_000_000) -> None:
        self.shelf, self.wall = Shelf(), Wall()
        self.journal = Journal("here", self.shelf, now=0.0, now_ns=self.wall, most_bytes=most_bytes)

    def tell(self, count: int, now: float = 0.0) -> None:
        self.wall.now = now
        for n in range(count):
            self.journal.delivered(Kind.ACKED, [MESSAGE], f"r/{n}", self.journal.clock.read())


def test_a_full_frame_leaves_at_the_next_beat() -> None:
    at = JournalAlone()
    for n in range(FULL):
        at.journal.changed(Kind.SESSION, WALL, "opened", name=f"r/{n}")
        if n == FULL - 2:
            at.journal.beat(0.1)
            assert at.shelf.frames == []
    at.journal.beat(0.1)
    assert len(at.shelf.events) == FULL


def test_the_events_of_a_note_are_in_the_next_frame() -> None:
    at = JournalAlone()
    row = (Kind.ACKED, [MESSAGE.id], None, None, ["a/1", "b/1"], [WALL])
    at.journal.replace(5, ([], [row]))
    at.journal.replace(7, ([], []))
    at.journal.flush(0.0)
    assert (at.shelf.notes, [event.receiver for event in at.shelf.events]) == (
        [5, 7],
        ["a/1", "b/1"],
    )


def test_the_events_of_a_note_precede_later_ones() -> None:
    at = JournalAlone()
    row = (Kind.HANDED, [MESSAGE.id], 1, None, ["a/1"], [WALL])
    at.journal.replace(1, ([], [row]))
    at.journal.explained(Kind.REFUSED, MESSAGE, "a/1", WALL + 1, 1, code="user.update.error")
    at.journal.replace(2, ([], [row]))
    at.journal.delivered(Kind.RETURNED, [MESSAGE], "a/1", WALL + 2)
    at.journal.flush(0.0)
    kinds = [event.kind for event in at.shelf.events]
    assert kinds == [Kind.HANDED, Kind.REFUSED, Kind.HANDED, Kind.RETURNED]


def test_the_notes_of_waiting_and_of_dropped_frames_reach_the_outlet_in_order() -> None:
    at = JournalAlone(most_bytes=400)
    at.shelf.is_available = False
    for n in range(10):
        row = (Kind.ACKED, [MESSAGE.id], None, None, ["a/1"], [WALL])
        at.journal.replace(n, ([], [row]))
        at.journal.flush(n)
    assert at.journal.dropped
    at.shelf.is_available = True
    at.journal.flush(11.0)
    assert at.shelf.notes == [*range(10)]


def test_a_flush_sends_a_frame_only_if_there_are_events() -> None:
    at = JournalAlone()
    at.journal.flush(0.0)
    assert at.shelf.frames == []
    at.tell(2)
    at.journal.flush(0.1)
    assert len(at.shelf.frames) == 1


@pytest.mark.parametrize("is_available", [True, False])
def test_publishes_have_the_time_of_their_frame_after_the_clock_was_set_back(
    is_available: bool,
) -> None:
    at = JournalAlone()
    at.wall.put_back_us = 3600 * 1_000_000
    at.shelf.is_available = is_available
    at.journal.published(MESSAGE, copies=1)
    at.journal.flush(0.1)
    at.shelf.is_available, at.wall.put_back_us = True, 0
    at.journal.flush(0.2)
    assert [event.ts for event in at.shelf.events] == [WALL - 3600 * 1_000_000]


def books(shelf: Shelf) -> list[dict[str | None, int | None]]:
    """The books of each frame that has any; such a frame has nothing else."""
    frames = [unfold(decode(frame)) for frame in shelf.frames]
    found = [events for events in frames if any(event.kind == Kind.BOOKS for event in events)]
    assert all(event.kind == Kind.BOOKS for events in found for event in events)
    return [{event.what: event.number for event in events if event.number} for events in found]


def test_books_are_written_after_each_minute_with_events_behind_what_they_count() -> None:
    at = JournalAlone()
    at.journal.published(MESSAGE, copies=5)
    at.tell(3)
    at.journal.explained(Kind.DEAD, MESSAGE, "r/9", WALL, code="user.x")
    at.journal.beat(BOOKS_S - 0.1)
    assert books(at.shelf) == []
    at.tell(1, now=BOOKS_S)
    at.journal.beat(BOOKS_S)
    counts = {"accepted": 5, "acked": 4, "dead": 1}
    assert (books(at.shelf), at.shelf.events[-1].kind) == ([counts], Kind.BOOKS)
    at.journal.beat(2 * BOOKS_S)
    assert books(at.shelf) == [counts]
    at.tell(1, now=3 * BOOKS_S - 1)
    at.journal.beat(3 * BOOKS_S)
    assert books(at.shelf) == [counts, {**counts, "acked": 5}]


def test_books_count_every_event_of_every_row_and_nothing_of_a_former_run() -> None:
    shelf = Shelf()
    writer = JournalWriter("here", shelf, now=0.0, now_ns=Wall())
    old = notes.packed(([], [(Kind.ACKED, [1, 2], None, None, ["a/1"], [WALL])]))
    writer.report_left_notes({1: old})
    writer.begin_run(0.0)
    crowd, messages = receivers(10), stream(3)
    for receiver in crowd:
        writer.handed(receiver, messages, 0.0)
        writer.acked(receiver, messages, 0.0)
    writer.turned_away(crowd, messages[0], DISCARDED[Reason.OVERFLOW_ENTRIES])
    writer.replayed("a/1", messages[0], 7)
    row = (Kind.DEAD, [1, 2], 1, None, ["a/1", "b/1"], [WALL])
    writer.journal.replace(2, ([(1, 4, 4, 10, 5, "", "/a")], [row]))
    writer.beat(BOOKS_S)
    assert books(shelf) == [{"accepted": 5, "acked": 30, "dead": 4, "discarded": 10}]
    assert [event.what for event in shelf.events if event.kind == Kind.NODE] == ["start"]


def test_a_few_events_wait_for_more_for_a_limited_time() -> None:
    at = JournalAlone()
    at.tell(1)
    at.journal.beat(LONGEST_WAIT_S - 0.1)
    assert at.shelf.frames == []
    at.journal.beat(LONGEST_WAIT_S)
    assert len(at.shelf.frames) == 1
    at.tell(1, now=LONGEST_WAIT_S)
    at.journal.beat(LONGEST_WAIT_S + 0.1)
    assert len(at.shelf.frames) == 1


def test_events_that_the_store_refuses_are_reported_as_dropped() -> None:
    at = JournalAlone()
    at.journal.miss(7)
    at.journal.flush(0.0)
    assert [(event.kind, event.number) for event in at.shelf.events] == [("dropped", 7)]
    assert at.journal.dropped == 7


def test_events_have_the_times_of_the_wall_clock_even_if_it_is_set_back() -> None:
    at = JournalAlone()
    at.tell(1, now=1.5)
    at.journal.flush(1.5)
    at.wall.now, at.wall.put_back_us = 1.6, 1_000_000
    at.journal.flush(1.6)
    at.tell(1, now=2.5)
    at.journal.flush(2.5)
    assert [event.ts - WALL for event in at.shelf.events] == [1_500_000, 1_500_000]


def test_frames_made_while_the_store_is_away_are_sent_in_order_when_it_is_back() -> None:
    at = JournalAlone()
    at.shelf.is_available = False
    for n in range(3):
        at.tell(n + 1, now=n)
        at.journal.flush(n)
    at.shelf.is_available = True
    at.tell(4, now=3)
    at.journal.flush(3)
    assert [decode(frame).head.n for frame in at.shelf.frames] == [1, 2, 3, 4]
    assert at.journal.dropped == 0


def test_events_without_room_are_dropped_and_the_journal_says_how_many() -> None:
    at = JournalAlone(most_bytes=400)
    at.shelf.is_available = False
    for n in range(10):
        at.tell(1, now=n)
        at.journal.flush(n)
    kept = 10 - at.journal.dropped
    assert 0 < kept < 10
    at.shelf.is_available = True
    at.journal.flush(10.0)
    assert [event.kind for event in at.shelf.events] == ["acked"] * kept + ["dropped"]
    last = at.shelf.events[-1]
    assert (last.number, last.what) == (10 - kept, "buffer")
    assert last.ts == WALL + kept * 1_000_000
    at.tell(1, now=11.0)
    at.journal.flush(11.0)
    assert [event.kind for event in at.shelf.events][-2:] == ["dropped", "acked"]


def test_events_behind_a_gap_are_dropped_until_the_gap_is_reported() -> None:
    at = JournalAlone(most_bytes=1500)
    at.shelf.is_available = False
    at.tell(1)
    at.journal.flush(0.0)
    for n in range(200):
        at.journal.changed(Kind.SESSION, WALL, "opened", name=f"somebody/{n * 7919}")
    at.journal.flush(0.0)
    at.tell(1)
    at.journal.flush(0.0)
    assert at.journal.dropped == 201


@pytest.mark.slow
def test_the_memory_of_the_journal_is_limited_however_long_the_store_is_away() -> None:
    at = JournalAlone(most_bytes=3000)
    at.shelf.is_available = False
    for n in range(2000):
        at.tell(3, now=n)
        at.journal.flush(n)
    at.shelf.is_available = True
    at.journal.flush(2000.0)
    assert sum(map(len, at.shelf.frames)) < 4000
    acked = [event for event in at.shelf.events if event.kind == Kind.ACKED]
    assert len(acked) + at.journal.dropped == 6000


def receivers(count: int) -> list[Receiver]:
    counters = Counters()
    return [Receiver(CallbackQueue(QueueLimits(), counters), n) for n in range(count)]


def stream(count: int) -> list[Message]:
    return [Message(b"{}", id=WALL * 1000 + n, channel="/a") for n in range(count)]


def events_of(shelf: Shelf) -> list[tuple[int | None, str | None, str | None]]:
    return [(each.msg, each.receiver, each.code) for each in shelf.events]


def test_a_message_that_many_receivers_cannot_take_is_one_row_with_all_of_them() -> None:
    shelf = Shelf()
    writer = JournalWriter("here", shelf, now=0.0, now_ns=Wall())
    crowd, messages = receivers(100), stream(2)
    for message in messages:
        writer.turned_away(crowd, message, DISCARDED[Reason.OVERFLOW_ENTRIES])
    assert writer.journal.columns.weight == len(messages)
    writer.flush(1.0)
    code = Reason.OVERFLOW_ENTRIES.value
    assert events_of(shelf) == [(each.id, who.key, code) for each in messages for who in crowd]


def test_sessions_that_leave_the_same_messages_for_one_reason_share_a_row() -> None:
    shelf = Shelf()
    writer = JournalWriter("here", shelf, now=0.0, now_ns=Wall())
    ann, joe = receivers(2)
    messages = stream(100)
    writer.settled(ann, messages, DISCARDED[Reason.SESSION_EXPIRED])
    writer.settled(joe, messages, DISCARDED[Reason.SESSION_EXPIRED])
    writer.settled(joe, messages, DISCARDED[Reason.SESSION_ENDED])
    assert writer.journal.columns.weight == 2
    writer.flush(1.0)
    expired, ended = Reason.SESSION_EXPIRED.value, Reason.SESSION_ENDED.value
    assert sorted(events_of(shelf), key=str) == sorted(
        [
            (each.id, who.key, code)
            for each in messages
            for who, code in ((ann, expired), (joe, expired), (joe, ended))
        ],
        key=str,
    )


@pytest.mark.slow
def test_a_frame_has_a_limited_number_of_events_however_many_one_turn_has() -> None:
    shelf = Shelf()
    writer = JournalWriter("here", shelf, now=0.0, now_ns=Wall())
    receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
    messages = [Message(b"{}", id=WALL * 1000 + n, channel="/a") for n in range(5000)]
    for _ in range(104):
        writer.settled(receiver, messages, DISCARDED[Reason.OVERFLOW_ENTRIES])
    writer.flush(1.0)
    counts = [decode_head(frame).n for frame in shelf.frames]
    assert sum(counts) == 520_000
    assert max(counts) < MOST_EVENTS
    assert len(counts) > 1
