"""What shards ask each other, and answer: a JSON object, which may have messages with it.

Then two lines follow each other, with the object and a row for each message, and the bytes of all.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orjson import dumps, loads

from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.codec.attributes import Way, attributes_of, put_attributes
from holdfast.delivery.messages.message import Message

# The key of the messages.
ENCLOSED: Final = "enclosed"


def enclosed(fields: Mapping[str, Any], way: Way) -> bytes:
    """Return the fields as bytes, with the messages among them, which travel on this way."""
    messages: Sequence[Message] | None = fields.get(ENCLOSED)
    if messages is None:
        return to_json(fields)
    rows = [
        [each.id, len(each.wire), each.channel, each.sender, attributes_of(each, way)]
        for each in messages
    ]
    line = to_json({name: value for name, value in fields.items() if name != ENCLOSED})
    return b"".join([line, b"\n", dumps(rows), b"\n", *[each.wire for each in messages]])


def disclosed(data: bytes) -> Any:  # noqa: ANN401 - whatever was said
    """Undo `enclosed`. Raises `ValueError`, `LookupError` or `TypeError` for another form."""
    line, has_messages, rest = data.partition(b"\n")
    fields = loads(line)
    if has_messages:
        rows, _, wires = rest.partition(b"\n")
        fields[ENCLOSED] = [*_messages(loads(rows), wires)]
    return fields


def _messages(rows: Sequence[Sequence[Any]], wires: bytes) -> Iterator[Message]:
    at = 0
    for id, size, channel, sender, attributes in rows:
        message = Message(wires[at : at + size], id=id, channel=channel, sender=sender)
        put_attributes(message, attributes)
        at += size
        yield message
