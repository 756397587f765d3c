"""The events of one message in frames."""

from collections.abc import Iterable

from holdfast.journal.frame import FrameUnreadable, decode
from holdfast.journal.schema import NS_PER_US, Event
from holdfast.journal.unfold import unfold


def events_of(message: int, frames: Iterable[bytes]) -> list[Event]:
    """Return the events of the message with this id, in the order in which they were written."""
    return [
        event for frame in frames for event in _in_frame(message, frame) if event.msg == message
    ]


def _in_frame(message: int, packed: bytes) -> list[Event]:
    try:
        frame = decode(packed)
        known = frame.body.get("messages", {}).get("id", ())
        # Most frames are about other messages and need not be unfolded.
        is_there = message - frame.head.t0 * NS_PER_US in known
        return unfold(frame) if is_there else []
    except FrameUnreadable:
        # Other readers report an unreadable frame; here it has no events.
        return []
