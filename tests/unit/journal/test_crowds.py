"""Crowds: what happens to many receivers is a row that unfolds into an event for each."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.basics.counters import Counters
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.queue import CallbackQueue, QueueLimits
from holdfast.delivery.queues.receivers import Receiver
from holdfast.journal.builder import FrameBuilder
from holdfast.journal.crowds import Crowds
from holdfast.journal.event_clock import JournalClock
from holdfast.journal.frame import decode
from holdfast.journal.schema import Event, Kind
from holdfast.journal.unfold import unfold

NOW = 1_763_600_000_000_000
MESSAGES = [Message(b"{}", id=NOW * 1000 + n, channel="/a", sender="") for n in range(4)]
RECEIVERS = [Receiver(CallbackQueue(QueueLimits(), Counters()), n) for n in range(1, 6)]


class Times:
    now = NOW
    turn = 0.0

    def __call__(self) -> int:
        return self.now * 1000

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


def events_of(builder: FrameBuilder) -> list[Event]:
    frame = builder.frame()
    return unfold(decode(frame)) if frame else []


def counts_of(builder: FrameBuilder) -> Counter[tuple[object, ...]]:
    return Counter((e.msg, e.receiver, e.ts, e.kind, e.attempt) for e in events_of(builder))


@pytest.mark.slow
@given(happenings)
def test_hand_overs_of_several_turns_unfold_into_the_same_events(
    happened: list[tuple[Receiver, list[Message], bool]],
) -> None:
    times, builder = Times(), FrameBuilder("here")
    notes = Crowds(builder, JournalClock(times), Kind.HANDED, 1)
    expected: Counter[tuple[object, ...]] = Counter()
    for receiver, messages, ends in happened:
        notes.add(receiver, messages, times.turn)
        expected.update((m.id, receiver.key, times.now, "handed", 1) for m in messages)
        if ends:
            times.end_turn()
            notes.end()
    notes.end()
    assert builder.count == sum(expected.values())
    assert counts_of(builder) == expected
    assert counts_of(builder) == Counter()


def test_hand_overs_of_a_later_turn_have_a_later_time_although_the_first_was_not_ended() -> None:
    times, builder = Times(), FrameBuilder("here")
    notes = Crowds(builder, JournalClock(times), Kind.HANDED, 1)
    notes.add(RECEIVERS[0], MESSAGES[:1], times.turn)
    times.end_turn()
    notes.add(RECEIVERS[1], MESSAGES[:1], times.turn)
    notes.end()
    assert [(event.receiver, event.ts) for event in events_of(builder)] == [
        (RECEIVERS[0].key, NOW),
        (RECEIVERS[1].key, NOW + 100),
    ]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(RECEIVERS), st.sampled_from(MESSAGES))))
def test_no_ack_has_an_earlier_time_than_its_hand_over(
    happened: list[tuple[Receiver, Message]],
) -> None:
    # All in one turn, as the loop's clock has it.
    times, builder = Times(), FrameBuilder("here")
    watch = JournalClock(times)
    handed = Crowds(builder, watch, Kind.HANDED, 1)
    acked = Crowds(builder, watch, Kind.ACKED)
    in_flight: set[tuple[Receiver, Message]] = set()
    for receiver, message in happened:
        times.now += 100
        if (receiver, message) in in_flight:
            in_flight.remove((receiver, message))
            acked.add(receiver, [message], 1.0)
        else:
            in_flight.add((receiver, message))
            handed.add(receiver, [message], 1.0)
    handed.end()
    acked.end()
    copies: dict[tuple[object, ...], dict[str, list[int]]] = {}
    for event in events_of(builder):
        copy = copies.setdefault((event.msg, event.receiver), {"handed": [], "acked": []})
        copy[event.kind].append(event.ts)
    for copy in copies.values():
        assert all(a <= b for a, b in zip(copy["handed"], copy["acked"], strict=False))


def test_acks_of_the_same_message_share_a_row_until_the_next_hand_over() -> None:
    times, builder = Times(), FrameBuilder("here")
    watch = JournalClock(times)
    handed = Crowds(builder, watch, Kind.HANDED, 1)
    acked = Crowds(builder, watch, Kind.ACKED)
    for receiver in RECEIVERS:
        handed.add(receiver, MESSAGES[:1], times.turn)
    handed.end()
    times.end_turn()
    for receiver in RECEIVERS[:3]:
        acked.add(receiver, MESSAGES[:1], times.turn)
    handed.add(RECEIVERS[0], MESSAGES[1:2], times.turn)
    for receiver in RECEIVERS[3:]:
        acked.add(receiver, MESSAGES[:1], times.turn)
    acked.end()
    block = decode(builder.frame()).body["delivered"]
    assert (block["kind"], block["t"]) == (["handed", "acked", "acked"], [0, 100, 100])


def test_a_crowd_that_gets_several_messages_is_named_once_in_a_frame() -> None:
    builder = FrameBuilder("here")
    notes = Crowds(builder, JournalClock(Times()), Kind.WRITTEN, 1)
    crowds = RECEIVERS[:3], RECEIVERS[3:]
    for n, message in enumerate(MESSAGES):
        for receiver in crowds[n % 2]:
            notes.add(receiver, [message], 1.0)
    notes.end()
    body = decode(builder.frame()).body
    assert body["groups"] == [[0, 1, 2], [3, 4]]
    assert body["delivered"]["receivers"] == [0, 1, 0, 1]


def test_each_frame_names_its_own_crowds() -> None:
    builder = FrameBuilder("here")
    notes = Crowds(builder, JournalClock(Times()), Kind.WRITTEN, 1)
    for _ in range(2):
        for receiver in RECEIVERS:
            notes.add(receiver, MESSAGES[:1], 1.0)
        notes.end()
        assert {receiver for _, receiver, *_ in counts_of(builder)} == {
            receiver.key for receiver in RECEIVERS
        }


def test_receivers_of_the_same_messages_share_a_row() -> None:
    builder = FrameBuilder("here")
    notes = Crowds(builder, JournalClock(Times()), Kind.WRITTEN, 1)
    for receiver in RECEIVERS:
        notes.add(receiver, list(MESSAGES), 1.0)
    notes.end()
    assert (builder.count, builder.columns.weight) == (20, 1)
