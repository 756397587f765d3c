"""The ledger: each event of an entry enters the journal once, by a note of the store or live."""

from collections.abc import Callable

import pytest

from holdfast.delivery.batch import Batch
from holdfast.delivery.counters import Counters, Reason
from holdfast.delivery.entries import Entry, SettledBy
from holdfast.delivery.error_codes import INTERNAL_ERROR
from holdfast.delivery.ledger import Ledger
from holdfast.delivery.messages import Message
from holdfast.delivery.outcomes import DISCARDED, EXPIRED
from holdfast.delivery.queue import CallbackQueue, QueueLimits
from holdfast.delivery.receivers import Receiver
from holdfast.delivery.unwritten_letters import DeadEntry, Death
from holdfast.journal.frame import decode
from holdfast.journal.schema import Kind
from holdfast.journal.unfold import unfold
from tests.unit.journal.ledger import WALL_US, Writing

ID = WALL_US * 1000
FULL = DISCARDED[Reason.OVERFLOW_ENTRIES]


class Desk:
    """A ledger with a journal, one receiver and one message."""

    def __init__(self, *, is_durable: bool) -> None:
        self.store = Writing()
        self.ledger = Ledger(self.store, self.store.writer)
        self.counters = self.ledger.counters
        self.receiver = Receiver(CallbackQueue(QueueLimits(), Counters()), 1)
        self.receiver.queue.settling = SettledBy.BATCH
        self.receiver.is_durable = is_durable
        self.message = Message(b"{}", id=ID, channel="/a")
        self.message.is_durable = is_durable
        self.entry = Entry(self.message, 1, 1, 1)

    def events(self) -> list[tuple[str, int | None, str | None]]:
        self.store.writer.flush(0.0)
        events = [event for frame in self.store.shelf.frames for event in unfold(decode(frame))]
        return [(event.kind, event.msg, event.code) for event in events]


def copied(desk: Desk) -> None:
    desk.ledger.copied(desk.message, desk.receiver)


def handed_over(desk: Desk) -> None:
    desk.ledger.handed_over(desk.receiver, Batch(1, 1, [desk.message], 0.0), 0.0)


def handed_over_again(desk: Desk) -> None:
    desk.entry.attempts = 2
    batch = Batch(2, 1, [desk.message], 0.0, [desk.entry])
    desk.ledger.handed_over(desk.receiver, batch, 0.0)


def acked(desk: Desk) -> None:
    desk.ledger.acked(desk.receiver, [desk.message], 0.0)


def expired(desk: Desk) -> None:
    desk.ledger.settled(desk.receiver, [desk.message], EXPIRED)


def turned_away(desk: Desk) -> None:
    crowd: list[Receiver] = []
    desk.ledger.turned_away(desk.receiver, desk.message, FULL, crowd)
    desk.ledger.crowd_turned_away(crowd, desk.message, FULL)


def refused(desk: Desk) -> None:
    desk.ledger.refused(desk.receiver, [desk.entry], INTERNAL_ERROR, "")
    desk.ledger.settled(desk.receiver, [desk.message], DISCARDED[Reason.NO_LETTER])


REFUSED = INTERNAL_ERROR.text


@pytest.mark.parametrize(
    ("happen", "expected"),
    [
        (copied, [(Kind.PUBLISHED, None)]),
        (handed_over, [(Kind.HANDED, None)]),
        (handed_over_again, [(Kind.REDELIVERED, None)]),
        (acked, [(Kind.ACKED, None)]),
        (expired, [(Kind.EXPIRED, None)]),
        (turned_away, [(Kind.DISCARDED, Reason.OVERFLOW_ENTRIES.value)]),
        (refused, [(Kind.REFUSED, REFUSED), (Kind.DISCARDED, Reason.NO_LETTER.value)]),
    ],
)
def test_an_event_has_a_note_if_the_store_has_the_entry_and_is_live_if_not(
    happen: Callable[[Desk], None], expected: list[tuple[str, str | None]]
) -> None:
    for is_durable in (True, False):
        desk = Desk(is_durable=is_durable)
        happen(desk)
        assert desk.events() == [(kind, ID, code) for kind, code in expected]
        assert desk.store.notes == int(is_durable)


def test_a_letter_is_stored_for_every_receiver_but_only_a_stored_entry_is_removed() -> None:
    for is_durable in (True, False):
        desk = Desk(is_durable=is_durable)
        key = desk.receiver.key
        desk.store.keep(desk.message, (key,), lambda _: None)
        death = Death(desk.receiver.name, INTERNAL_ERROR, "", None)
        letters = [DeadEntry(desk.entry, death, ID + 1)]
        desk.ledger.dead(desk.receiver, [desk.entry], letters, lambda: None)
        assert (Kind.DEAD, ID, INTERNAL_ERROR.text) in desk.events()
        assert (ID in desk.store.queues[key]) is not is_durable
        assert (len(desk.store.letters), desk.counters.dead) == (1, 1)


def test_entries_that_found_no_room_as_letters_are_lost_unless_the_store_still_has_them() -> None:
    for is_durable, expected in (
        (True, []),
        (False, [(Kind.DISCARDED, ID, Reason.STORE_AWAY.value)]),
    ):
        desk = Desk(is_durable=is_durable)
        desk.ledger.lost(desk.receiver, [desk.entry])
        assert desk.events() == expected
        assert desk.counters.discarded == {Reason.STORE_AWAY: 1}


def test_what_is_left_in_an_ended_session_is_live_although_the_store_had_it() -> None:
    desk = Desk(is_durable=True)
    desk.ledger.left(desk.receiver, [desk.message], DISCARDED[Reason.SESSION_ENDED])
    assert desk.events() == [(Kind.DISCARDED, ID, Reason.SESSION_ENDED.value)]
    assert desk.store.notes == 0


def test_a_receiver_that_does_not_ack_has_one_event_for_hand_over_and_settlement() -> None:
    desk = Desk(is_durable=False)
    desk.receiver.queue.settling = SettledBy.WRITTEN
    handed_over(desk)
    assert desk.events() == []
    acked(desk)
    assert desk.events() == [(Kind.WRITTEN, ID, None)]


def test_passing_messages_of_a_durable_receiver_are_settled_live_while_the_store_is_full() -> None:
    desk = Desk(is_durable=True)
    desk.store.is_full = True
    passing = Message(b"{}", id=ID + 1, channel="/a")
    desk.ledger.settled(desk.receiver, [desk.message, passing], EXPIRED)
    assert sorted(desk.events()) == [(Kind.EXPIRED, ID, None), (Kind.EXPIRED, ID + 1, None)]
    assert (desk.store.notes, desk.counters.expired) == (1, 2)
