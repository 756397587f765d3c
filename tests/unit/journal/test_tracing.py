"""What the journal says about one message."""

from holdfast.delivery.messages.message import Message
from holdfast.journal.builder import FrameBuilder
from holdfast.journal.schema import Kind
from holdfast.journal.tracing import events_of

NOW_US = 1_763_600_000_000_000


def message(number: int) -> Message:
    return Message(b"{}", id=NOW_US * 1000 + number, channel="/a", sender="client/joe/1")


def frame(*messages: Message) -> bytes:
    builder = FrameBuilder("here")
    for each in messages:
        builder.published(each, copies=1)
        builder.delivered(Kind.HANDED, [each], "ann/1", NOW_US + 2, 1)
    return builder.frame()


def test_the_events_of_one_message_are_found_in_several_frames() -> None:
    one, other = message(1), message(2)
    builder = FrameBuilder("here")
    builder.happened(Kind.ACKED, [one.id], "ann/1", NOW_US + 9)
    found = events_of(one.id, [frame(one, other), frame(other), builder.frame()])
    assert [event.kind for event in found] == ["published", "handed", "acked"]
    assert {event.msg for event in found} == {one.id}


def test_unreadable_frames_have_no_events() -> None:
    assert events_of(1, [b"", b"{", b'{"v":99}\n{}']) == []
