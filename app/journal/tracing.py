"""What frames tell of one message."""

from collections.abc import Iterable

from app.journal.frame import FrameUnreadable, decode
from app.journal.schema import NS_PER_US, Event
from app.journal.unfold import unfold


def events_of(message: int, frames: Iterable[bytes]) -> list[Event]:
    """The events about the message of this id, in the order in which they were written down."""
    return [
        event for frame in frames for event in _in_frame(message, frame) if event.msg == message
    ]


def _in_frame(message: int, packed: bytes) -> list[Event]:
    try:
        frame = decode(packed)
        known = frame.body.get("messages", {}).get("id", ())
        # Most frames are about others, and need not be unfolded.
        is_there = message - frame.head.t0 * NS_PER_US in known
        return unfold(frame) if is_there else []
    except FrameUnreadable:
        # Readers of the journal complain of it; here it only tells nothing.
        return []
