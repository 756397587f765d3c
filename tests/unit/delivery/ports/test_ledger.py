"""The ledger: each event of an entry enters the journal once, by a note of the store or live."""

from collections.abc import Callable

import pytest

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.basics.error_codes import INTERNAL_ERROR
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.letters.unwritten import DeadEntry, Death
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.entries import Entry, SettledBy
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import DISCARDED, EXPIRED
from holdfast.delivery.ports.ledger import Ledger
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.journal.frame import decode
from holdfast.journal.schema import Kind
from holdfast.journal.unfold import unfold
from tests.unit.journal.ledger import WALL_US, Writing

ID = WALL_US * 1000
FULL = DISCARDED[Reason.OVERFLOW_ENTRIES]


class OneMessage:
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
        self.entry = Entry(self.message, 1, batch=1, attempts=1)

    def events(self) -> list[tuple[str, int | None, str | None]]:
        self.store.writer.flush(0.0)
        events = [event for frame in self.store.shelf.frames for event in unfold(decode(frame))]
        return [(event.kind, event.msg, event.code) for event in events]


def copied(at: OneMessage) -> None:
    at.ledger.copied(at.message, at.receiver)


def handed_over(at: OneMessage) -> None:
    at.ledger.handed_over(at.receiver, Batch(1, 1, messages=[at.message], handed_at=0.0), 0.0)


def handed_over_again(at: OneMessage) -> None:
    at.entry.attempts = 2
    batch = Batch(2, 1, messages=[at.message], handed_at=0.0, entries=[at.entry])
    at.ledger.handed_over(at.receiver, batch, 0.0)


def acked(at: OneMessage) -> None:
    at.ledger.acked(at.receiver, [at.message], 0.0)


def expired(at: OneMessage) -> None:
    at.ledger.settled(at.receiver, [at.message], EXPIRED)


def turned_away(at: OneMessage) -> None:
    crowd: list[Receiver] = []
    at.ledger.turned_away(at.receiver, at.message, FULL, crowd)
    at.ledger.crowd_turned_away(crowd, at.message, FULL)


def refused(at: OneMessage) -> None:
    at.ledger.refused(at.receiver, [at.entry], INTERNAL_ERROR, "")
    at.ledger.settled(at.receiver, [at.message], DISCARDED[Reason.NO_LETTER])


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
    happen: Callable[[OneMessage], None], expected: list[tuple[str, str | None]]
) -> None:
    for is_durable in (True, False):
        at = OneMessage(is_durable=is_durable)
        happen(at)
        assert at.events() == [(kind, ID, code) for kind, code in expected]
        assert at.store.notes == int(is_durable)


def test_a_letter_is_stored_for_every_receiver_but_only_a_stored_entry_is_removed() -> None:
    for is_durable in (True, False):
        at = OneMessage(is_durable=is_durable)
        key = at.receiver.key
        at.store.keep(at.message, (key,), lambda _: None)
        death = Death(at.receiver.name, INTERNAL_ERROR, "", None)
        letters = [DeadEntry(at.entry, death, ID + 1)]
        at.ledger.dead(at.receiver, [at.entry], letters, lambda: None)
        assert (Kind.DEAD, ID, INTERNAL_ERROR.text) in at.events()
        assert (ID in at.store.queues[key]) is not is_durable
        assert (len(at.store.letters), at.counters.dead) == (1, 1)


def test_entries_that_found_no_room_as_letters_are_lost_unless_the_store_still_has_them() -> None:
    for is_durable, expected in (
        (True, []),
        (False, [(Kind.DISCARDED, ID, Reason.STORE_UNAVAILABLE.value)]),
    ):
        at = OneMessage(is_durable=is_durable)
        at.ledger.lost(at.receiver, [at.entry])
        assert at.events() == expected
        assert at.counters.discarded == {Reason.STORE_UNAVAILABLE: 1}


def test_what_is_left_in_an_ended_session_is_live_although_the_store_had_it() -> None:
    at = OneMessage(is_durable=True)
    at.ledger.left(at.receiver, [at.message], DISCARDED[Reason.SESSION_ENDED])
    assert at.events() == [(Kind.DISCARDED, ID, Reason.SESSION_ENDED.value)]
    assert at.store.notes == 0


def test_a_receiver_that_does_not_ack_has_one_event_for_hand_over_and_settlement() -> None:
    at = OneMessage(is_durable=False)
    at.receiver.queue.settling = SettledBy.WRITTEN
    handed_over(at)
    assert at.events() == []
    acked(at)
    assert at.events() == [(Kind.WRITTEN, ID, None)]


def test_passing_messages_of_a_durable_receiver_are_settled_live_while_the_store_is_full() -> None:
    at = OneMessage(is_durable=True)
    at.store.is_full = True
    passing = Message(b"{}", id=ID + 1, channel="/a")
    at.ledger.settled(at.receiver, [at.message, passing], EXPIRED)
    assert sorted(at.events()) == [(Kind.EXPIRED, ID, None), (Kind.EXPIRED, ID + 1, None)]
    assert (at.store.notes, at.counters.expired) == (1, 2)
