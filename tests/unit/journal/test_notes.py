"""Notes of what happens to many become rows that unfold into each of them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from app.delivery.counters import Counters
from app.delivery.messages import Message
from app.delivery.queue import CallbackQueue, QueueLimits
from app.delivery.receivers import Receiver
from app.delivery.witness import Pushed
from app.journal.builder import FrameBuilder
from app.journal.frame import decode
from app.journal.notes import SingleNotes, TurnNotes
from app.journal.schema import Kind
from app.journal.unfold import unfold

NOW = 1_763_600_000_000_000
MESSAGES = [Message(b"{}", id=NOW * 1000 + n, channel="/a", sender="") for n in range(4)]
RECEIVERS = [Receiver(CallbackQueue(QueueLimits(), Counters()), n) for n in range(1, 6)]


class Watch:
    now = NOW

    def __call__(self) -> int:
        return self.now * 1000


happenings = st.lists(
    st.tuples(
        st.sampled_from(RECEIVERS),
        st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=3),
        st.booleans(),
    ),
    max_size=40,
)


def push(pushed: Pushed, receiver: Receiver, messages: list[Message]) -> None:
    """As the server does."""
    if messages != pushed.batch:
        pushed.begin(messages)
    pushed.receivers.append(receiver)


def tell(notes: TurnNotes, pushed: Pushed) -> None:
    """The turn ends."""
    for messages, receivers in pushed.take():
        notes.crowd(messages, receivers)


def told(notes: TurnNotes | SingleNotes) -> Counter[tuple[object, ...]]:
    builder = FrameBuilder("here")
    builder.add(*notes.take())
    frame = builder.frame()
    events = unfold(decode(frame)) if frame else []
    return Counter((e.msg, e.receiver, e.ts, e.kind, e.attempt) for e in events)


@given(happenings)
def test_what_many_are_handed_in_a_turn_is_read_again(
    happened: list[tuple[Receiver, list[Message], bool]],
) -> None:
    watch = Watch()
    notes = TurnNotes(Kind.HANDED, 1, watch, {})
    expected: Counter[tuple[object, ...]] = Counter()
    for receiver, messages, ends in happened:
        notes.note(receiver, messages)
        expected.update((m.id, receiver.key, watch.now, "handed", 1) for m in messages)
        if ends:
            notes.end_turn()
            watch.now += 100
    assert told(notes) == expected
    assert told(notes) == Counter()


@given(st.lists(happenings, max_size=4))
def test_what_is_pushed_while_turns_end_is_read_again(
    turns: list[list[tuple[Receiver, list[Message], bool]]],
) -> None:
    watch, pushed = Watch(), Pushed()
    notes = TurnNotes(Kind.WRITTEN, 1, watch, {})
    expected: Counter[tuple[object, ...]] = Counter()
    for happened in turns:
        for receiver, messages, _ in happened:
            push(pushed, receiver, messages)
            expected.update((m.id, receiver.key, watch.now, "written", 1) for m in messages)
        tell(notes, pushed)
        watch.now += 100
    assert told(notes) == expected


def test_a_crowd_that_gets_the_same_again_is_named_once() -> None:
    watch, pushed = Watch(), Pushed()
    notes, builder = TurnNotes(Kind.WRITTEN, 1, watch, {}), FrameBuilder("here")
    for message in MESSAGES:
        for receiver in RECEIVERS:
            push(pushed, receiver, [message])
        tell(notes, pushed)
    builder.add(*notes.take())
    body = decode(builder.frame()).body
    assert body["groups"] == [[0, 1, 2, 3, 4]]
    assert body["delivered"]["receivers"] == [0, 0, 0, 0]


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
    notes = TurnNotes(Kind.WRITTEN, 1, Watch(), {})
    for receiver in RECEIVERS:
        notes.note(receiver, list(MESSAGES))
    notes.end_turn()
    count, rows = notes.take()
    assert (count, len(rows)) == (20, 1)
