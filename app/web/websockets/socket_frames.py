"""The WebSocket frames of answers and pushes: text, one message in each or several."""

import struct
from collections.abc import Sequence
from typing import Final

from holdfast.bayeux.session import Exchange
from holdfast.delivery.messages.message import Event

_TEXT: Final = 0x81


def frame(payload: bytes) -> bytes:
    """Return a server's text frame: never masked, so all receivers can share the bytes."""
    size = len(payload)
    if size < 126:
        return struct.pack("!BB", _TEXT, size) + payload
    if size < 65536:
        return struct.pack("!BBH", _TEXT, 126, size) + payload
    return struct.pack("!BBQ", _TEXT, 127, size) + payload


def content_of_first(frames: bytes) -> bytes:
    """Return what the first of these frames carries."""
    size, begin = frames[1], 2
    if size == 126:
        size, begin = int.from_bytes(frames[2:4]), 4
    elif size == 127:
        size, begin = int.from_bytes(frames[2:10]), 10
    return frames[begin : begin + size]


def frames_of(messages: Sequence[Event], per_frame: int) -> bytes:
    """Return the frames of these messages, of which `per_frame` share one; all if negative."""
    if per_frame == 1:
        if len(messages) == 1:
            return messages[0].frame or _frame_once(messages[0])
        return b"".join([message.frame or _frame_once(message) for message in messages])
    step = per_frame if per_frame > 0 else max(1, len(messages))
    chunks = [messages[start : start + step] for start in range(0, len(messages), step)]
    return b"".join([frame(b"[" + b",".join([m.wire for m in chunk]) + b"]") for chunk in chunks])


def answer_frames(exchange: Exchange, messages: Sequence[Event], per_frame: int) -> bytes:
    """Return the frames of an exchange's replies and of the messages that travel with them."""
    replies = frame(b"[" + b",".join(exchange.replies) + b"]")
    if not messages:
        return replies
    frames = frames_of(messages, per_frame)
    return replies + frames if exchange.replies_first else frames + replies


def _frame_once(message: Event) -> bytes:
    message.frame = frame(b"[" + message.wire + b"]")
    return message.frame
