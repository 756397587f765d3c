"""Notes of what happens to many become rows that unfold into each of them."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from app.delivery.counters import Counters
from app.delivery.messages import Message
from app.delivery.queue import CallbackQueue, QueueLimits
from app.delivery.receivers import Receiver
from app.delivery.witness import Handout, Handouts, Watch
from app.journal.builder import FrameBuilder
from app.journal.frame import decode
from app.journal.notes import CrowdNotes
from app.journal.schema import Kind
from app.journal.unfold import unfold

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


def told(notes: CrowdNotes) -> Counter[tuple[object, ...]]:
    builder = FrameBuilder("here")
    builder.add(*notes.take())
    frame = builder.frame()
    events = unfold(decode(frame)) if frame else []
    return Counter((e.msg, e.receiver, e.ts, e.kind, e.attempt) for e in events)


@given(happenings)
def test_what_is_given_out_turn_by_turn_is_read_again(
    happened: list[tuple[Receiver, list[Message], bool]],
) -> None:
    watch = Times()
    handouts, notes = Handouts(Watch(watch)), CrowdNotes(Kind.HANDED, 1, {})
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
    watch, message = Times(), MESSAGES[0]
    handouts, notes = Handouts(Watch(watch)), CrowdNotes(Kind.HANDED, 1, {})
    handouts.add(RECEIVERS[0], [message], watch.turn)
    watch.end_turn()
    handouts.add(RECEIVERS[1], [message], watch.turn)
    notes.note(handouts.take())
    assert {(receiver, ts) for _, receiver, ts, *_ in told(notes)} == {
        (RECEIVERS[0].key, NOW),
        (RECEIVERS[1].key, NOW + 100),
    }


@given(st.lists(st.tuples(st.sampled_from(RECEIVERS), st.sampled_from(MESSAGES), st.booleans())))
def test_nothing_is_acknowledged_before_it_was_given_out(
    happened: list[tuple[Receiver, Message, bool]],
) -> None:
    # All in one turn, as the loop's clock has it.
    times = Times()
    watch = Watch(times)
    handed, acked = Handouts(watch), Handouts(watch, are_acks=True)
    in_hands = set()
    for receiver, message, is_ack in happened:
        times.now += 100
        if not is_ack:
            in_hands.add((receiver, message))
            handed.add(receiver, [message], 1.0)
        elif (receiver, message) in in_hands:
            in_hands.remove((receiver, message))
            acked.add(receiver, [message], 1.0)
    given_out = times_of(handed.take())
    for copy, ats in times_of(acked.take()).items():
        assert all(one <= other for one, other in zip(given_out[copy], ats, strict=False))


def times_of(given_out: Sequence[Handout]) -> dict[tuple[str, int], list[int]]:
    """When each copy was given out, or acknowledged."""
    found: dict[tuple[str, int], list[int]] = {}
    for messages, receivers, at in given_out:
        for receiver in receivers:
            found.setdefault((receiver.key, messages[0].id), []).append(at)
    return found


def test_those_who_acknowledge_the_same_share_a_row_until_something_is_given_out() -> None:
    times, (first, second) = Times(), MESSAGES[:2]
    watch = Watch(times)
    handed, acked = Handouts(watch), Handouts(watch, are_acks=True)
    for receiver in RECEIVERS:
        handed.add(receiver, [first], times.turn)
    times.end_turn()
    for receiver in RECEIVERS[:3]:
        acked.add(receiver, [first], times.turn)
    handed.add(RECEIVERS[0], [second], times.turn)
    for receiver in RECEIVERS[3:]:
        acked.add(receiver, [first], times.turn)
    assert [len(receivers) for _, receivers, _ in acked.take()] == [3, 2]


def test_a_crowd_that_gets_something_again_is_named_once_even_if_others_did_meanwhile() -> None:
    watch, builder = Times(), FrameBuilder("here")
    handouts, notes = Handouts(Watch(watch)), CrowdNotes(Kind.WRITTEN, 1, {})
    crowds = RECEIVERS[:3], RECEIVERS[3:]
    for n, message in enumerate(MESSAGES):
        for receiver in crowds[n % 2]:
            handouts.add(receiver, [message], watch.turn)
        notes.note(handouts.take())
    builder.add(*notes.take())
    body = decode(builder.frame()).body
    assert body["groups"] == [[0, 1, 2], [3, 4]]
    assert body["delivered"]["receivers"] == [0, 1, 0, 1]


def test_receivers_of_the_same_messages_share_a_row() -> None:
    handouts, notes = Handouts(Watch(Times())), CrowdNotes(Kind.WRITTEN, 1, {})
    for receiver in RECEIVERS:
        handouts.add(receiver, list(MESSAGES), 1.0)
    notes.note(handouts.take())
    count, rows = notes.take()
    assert (count, len(rows)) == (20, 1)
