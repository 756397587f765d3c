"""Notes of what happens to many become rows that unfold into each of them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.delivery.counters import Counters
from app.delivery.messages import Message
from app.delivery.queue import CallbackQueue, QueueLimits
from app.delivery.receivers import Receiver
from app.delivery.witness import Handouts
from app.journal.builder import FrameBuilder
from app.journal.frame import decode
from app.journal.notes import CrowdNotes, SingleNotes
from app.journal.schema import Kind
from app.journal.unfold import unfold

NOW = 1_763_600_000_000_000
MESSAGES = [Message(b"{}", id=NOW * 1000 + n, channel="/a", sender="") for n in range(4)]
RECEIVERS = [Receiver(CallbackQueue(QueueLimits(), Counters()), n) for n in range(1, 6)]


class Watch:
    now = NOW
    turn = 0.0

    def __call__(self) -> int:
        return self.now * 1000

    def us(self) -> int:
        return self.now

    def end_turn(self) -> None:
        self.now += 100
        self.turn += 0.0001


happenings = st.lists(
    st.tuples(
        st.sampled_from(RECEIVERS),
        st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=3),
        st.booleans(),
    ),
    max_size=40,
)


def told(notes: CrowdNotes | SingleNotes) -> Counter[tuple[object, ...]]:
    builder = FrameBuilder("here")
    builder.add(*notes.take())
    frame = builder.frame()
    events = unfold(decode(frame)) if frame else []
    return Counter((e.msg, e.receiver, e.ts, e.kind, e.attempt) for e in events)


@given(happenings)
def test_what_is_given_out_turn_by_turn_is_read_again(
    happened: list[tuple[Receiver, list[Message], bool]],
) -> None:
    watch = Watch()
    handouts, notes = Handouts(watch.us), CrowdNotes(Kind.HANDED, {})
    expected: Counter[tuple[object, ...]] = Counter()
    for receiver, messages, ends in happened:
        handouts.add(receiver, messages, watch.turn)
        expected.update((m.id, receiver.key, watch.now, "handed", 1) for m in messages)
        if ends:
            watch.end_turn()
            notes.note(handouts.take())
    notes.note(handouts.take())
    assert notes.count == sum(expected.values())
    assert told(notes) == expected
    assert told(notes) == Counter()


def test_who_gets_the_same_in_a_later_turn_gets_it_later_though_nobody_ended_the_first() -> None:
    watch, message = Watch(), MESSAGES[0]
    handouts, notes = Handouts(watch.us), CrowdNotes(Kind.HANDED, {})
    handouts.add(RECEIVERS[0], [message], watch.turn)
    watch.end_turn()
    handouts.add(RECEIVERS[1], [message], watch.turn)
    notes.note(handouts.take())
    assert {(receiver, ts) for _, receiver, ts, *_ in told(notes)} == {
        (RECEIVERS[0].key, NOW),
        (RECEIVERS[1].key, NOW + 100),
    }


def test_a_crowd_that_gets_something_again_is_named_once_even_if_others_did_meanwhile() -> None:
    watch, builder = Watch(), FrameBuilder("here")
    handouts, notes = Handouts(watch.us), CrowdNotes(Kind.WRITTEN, {})
    crowds = RECEIVERS[:3], RECEIVERS[3:]
    for n, message in enumerate(MESSAGES):
        for receiver in crowds[n % 2]:
            handouts.add(receiver, [message], watch.turn)
        notes.note(handouts.take())
    builder.add(*notes.take())
    body = decode(builder.frame()).body
    assert body["groups"] == [[0, 1, 2], [3, 4]]
    assert body["delivered"]["receivers"] == [0, 1, 0, 1]


@given(happenings)
def test_what_each_says_at_a_time_of_its_own_is_read_again(
    happened: list[tuple[Receiver, list[Message], bool]],
) -> None:
    watch = Watch()
    notes = SingleNotes(Kind.ACKED, watch, {})
    expected: Counter[tuple[object, ...]] = Counter()
    for receiver, messages, _ in happened:
        notes.note(receiver, messages)
        expected.update((m.id, receiver.key, watch.now, "acked", None) for m in messages)
        watch.now += 100
    assert notes.count == sum(expected.values())
    assert told(notes) == expected
    assert (notes.count, told(notes)) == (0, Counter())


def test_receivers_of_the_same_messages_share_a_row() -> None:
    handouts, notes = Handouts(Watch().us), CrowdNotes(Kind.WRITTEN, {})
    for receiver in RECEIVERS:
        handouts.add(receiver, list(MESSAGES), 1.0)
    notes.note(handouts.take())
    count, rows = notes.take()
    assert (count, len(rows)) == (20, 1)


def test_acks_of_the_same_messages_share_a_row_even_if_others_come_between_them() -> None:
    notes = SingleNotes(Kind.ACKED, Watch(), {})
    for receiver in RECEIVERS:
        notes.note(receiver, MESSAGES[:2])
        notes.note(receiver, MESSAGES[1:2])
        notes.note(receiver, MESSAGES[2:])
    count, rows = notes.take()
    # Those that end with the same message take each other's place, the third has one row.
    assert (count, sum(len(row[4]) for row in rows)) == (25, 15)
    assert len(rows) == 11
