"""The calls of a turn in which messages cross to other shards."""

from collections.abc import Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from holdfast.delivery.messages.crossing import Crossing
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.messages.publish_key import PublishKey
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.store.format import scripts
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.publish_keys import KeyLimits
from holdfast.store.format.scripts import ScriptCall
from holdfast.store.writing.call_sizes import FRAME
from holdfast.store.writing.turn_buffer import TurnBuffer
from holdfast.store.writing.turn_writes import PendingCall

KEYS = RedisKeys("test")
LIMITS = KeyLimits(clock=0, most=9)


class EvenCross:
    """Others get the messages with even ids."""

    def __init__(self) -> None:
        # The ids in each frame, in the order of the calls, and the answers that were heard.
        self.frames: list[list[int]] = []
        self.heard: list[object] = []

    def size_of(self, message: Message, /) -> int:
        return 0 if message.id % 2 else len(message.wire)

    def framed(
        self, call: ScriptCall, messages: Sequence[Message], /
    ) -> tuple[ScriptCall, Callable[[object], None] | None]:
        crossing = [each.id for each in messages if self.size_of(each)]
        if not crossing:
            return call, None
        self.frames.append(crossing)
        return call, self.heard.append


def message(id: int, *, key: str = "", size: int = 10) -> Message:
    found = Message(b"x" * size, id=id, channel="/a", sender="ann")
    found.is_durable = True
    if key:
        PublishKey(key).identify(found)
    if id % 2 == 0:
        Crossing.add_to(found)
    return found


def ignore(_: object) -> None:
    """The outcome does not matter."""


def calls_of(buffer: TurnBuffer) -> list[PendingCall]:
    framing = buffer.framing
    return [
        call for turn in buffer.take() for call in turn.calls(KEYS, LIMITS, NO_JOURNAL, framing)
    ]


def kept_in(calls: Sequence[PendingCall]) -> list[list[int]]:
    return [[pending.message.id for pending in call.kept] for call in calls]


# Whether a message is kept, kept with a key, or moved; and its size.
writes = st.lists(
    st.tuples(st.sampled_from(["keep", "keyed", "move"]), st.integers(1, FRAME)), max_size=20
)


@given(writes)
def test_frames_have_messages_in_their_order_and_are_not_too_large(
    written: list[tuple[str, int]],
) -> None:
    buffer, framing = TurnBuffer(), EvenCross()
    buffer.framing = framing
    sizes = {}
    for id, (kind, size) in enumerate(written):
        found = message(id, key=f"key {id}" if kind == "keyed" else "", size=size)
        sizes[id] = size
        if kind == "move":
            buffer.move([Move(found, "joe/0", ["joe/1"], 1, 0)])
        else:
            buffer.keep(found, ["joe/1"], ignore)
    calls = calls_of(buffer)
    assert [id for frame in framing.frames for id in frame] == [*range(0, len(written), 2)]
    moved = {id for id, (kind, _) in enumerate(written) if kind == "move"}
    for frame in framing.frames:
        is_small = sum(sizes[id] for id in frame) <= FRAME
        assert is_small or len(frame) == 1 or moved.issuperset(frame)
    keyed = [call for call in calls if call.call.script is scripts.KEEP_KEYED]
    for ids in kept_in(keyed):
        assert len(ids) == 1 or all(id % 2 for id in ids), "a repeat would append no frame"
    assert sum(call.appended is not None for call in calls) == len(framing.frames)


def test_a_server_alone_keeps_all_messages_of_a_turn_in_one_call_for_each_kind() -> None:
    buffer = TurnBuffer()
    for id in range(10):
        buffer.keep(message(id, key=f"key {id}" if id < 5 else "", size=50_000), ["joe/1"], ignore)
    calls = calls_of(buffer)
    assert kept_in(calls) == [[5, 6, 7, 8, 9], [0, 1, 2, 3, 4]]
    assert [call.call.script for call in calls] == [scripts.KEEP, scripts.KEEP_KEYED]
    assert not any(call.appended for call in calls)


def test_what_does_not_cross_is_kept_as_at_a_server_alone() -> None:
    buffer, framing = TurnBuffer(), EvenCross()
    buffer.framing = framing
    for id in (1, 3, 5, 7):
        buffer.keep(message(id, key="k" if id < 4 else "", size=100_000), ["joe/1"], ignore)
    assert kept_in(calls_of(buffer)) == [[5, 7], [1, 3]]
    assert framing.frames == []
