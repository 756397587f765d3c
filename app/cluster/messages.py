"""Messages as entries of a log, and back."""

from collections.abc import Iterable, Sequence
from struct import Struct
from struct import error as error_of_struct
from typing import Final

import orjson

from holdfast.cluster.calls import WAITS_FOR_REPLICAS, Done, done_with
from holdfast.cluster.frames import DURABLE, MESSAGE, FrameUnreadable, LogEntry
from holdfast.delivery.codec.attributes import Way, attributes_of, put_attributes
from holdfast.delivery.messages.crossing import Crossing, crossing_of
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.shard_call import effect_of

# A flag: the data begin with the size of a JSON object, and the object.
HAS_EXTRA: Final = 2
_SIZE: Final = Struct("<I")


def entry_of(message: Message) -> LogEntry:
    """Return the entry of a message: what its receivers elsewhere need to know of it."""
    flags, data = DURABLE if message.is_durable else 0, message.wire
    if extra := attributes_of(message, Way.FRAME):
        head = orjson.dumps(extra)
        flags, data = flags | HAS_EXTRA, _SIZE.pack(len(head)) + head + data
    return LogEntry(MESSAGE, message.channel, message.id, message.sender, flags, data)


def size_of(message: Message) -> int:
    """Return how many bytes of a frame the message needs; 0 if its call appends none for it."""
    if message.records is None:
        return 0
    crossing = _unframed(message)
    size = 0
    if crossing is not None:
        size = sum(each.size for each in _entries(message, crossing))
    effect = effect_of(message)
    if effect is not None and not effect.is_framed:
        size += done_with(effect.call, effect.answer).answer.size
    return size


def framed(messages: Iterable[Message]) -> list[LogEntry]:
    """Return the entries of those that cross and that no frame has yet."""
    entries: list[LogEntry] = []
    for message in messages:
        crossing = _unframed(message)
        if crossing is not None:
            crossing.is_framed = True
            entries += _entries(message, crossing)
    return entries


def preceding(messages: Iterable[Message]) -> list[LogEntry]:
    """Return the entries that must be in the log before the frame of these messages.

    The call that stores a message with a publish key may find that it is a repeat. It appends
    nothing then, and messages that are stored meanwhile would overtake those before it.
    """
    entries: list[LogEntry] = []
    for message in messages:
        crossing = _unframed(message)
        if crossing is not None and crossing.before and publish_key_of(message) is not None:
            entries += map(entry_of, crossing.take_before())
    return entries


def _entries(message: Message, crossing: Crossing) -> Sequence[LogEntry]:
    """Return the entries of a message, and of those that go before it."""
    return [*map(entry_of, crossing.before), entry_of(message)]


def answered(messages: Iterable[Message], *, waits: bool) -> list[Done]:
    """Return what the script that stores these messages does with the calls that asked for them.

    Args:
        waits: Whether the messages only count when replicas have them.
    """
    found: list[Done] = []
    flags = WAITS_FOR_REPLICAS if waits else 0
    for message in messages:
        effect = None if message.records is None else effect_of(message)
        if effect is not None and not effect.is_framed:
            effect.is_framed = True
            found.append(done_with(effect.call, effect.answer, flags))
    return found


def _unframed(message: Message) -> Crossing | None:
    crossing = None if message.records is None else crossing_of(message)
    return None if crossing is None or crossing.is_framed else crossing


def message_of(entry: LogEntry) -> Message:
    """Undo `entry_of`. Raises `FrameUnreadable`."""
    if not entry.flags & HAS_EXTRA:
        return Message(entry.data, id=entry.id, channel=entry.channel, sender=entry.publisher)
    try:
        (size,) = _SIZE.unpack_from(entry.data)
        begin = _SIZE.size + size
        extra = orjson.loads(entry.data[_SIZE.size : begin])
        message = Message(
            entry.data[begin:], id=entry.id, channel=entry.channel, sender=entry.publisher
        )
        put_attributes(message, extra)
    except (error_of_struct, ValueError, TypeError, AttributeError, LookupError) as error:
        raise FrameUnreadable(f"entry {entry.id} is unreadable: {error!r}") from error
    return message
