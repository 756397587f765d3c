"""The form of letters by which a shard reads the histories of another, and of answers.

A letter is a JSON object. An answer is a line with one, and the encoded events.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from orjson import dumps, loads

from holdfast.bayeux.subscribe.catching_up import HistoryReading
from holdfast.bayeux.wire.starts import Start, Starts
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.codec.attributes import Way, attributes_of, put_attributes
from holdfast.delivery.messages.message import Message

# What the letter is called in the log.
HISTORIES: Final = "histories"
# How many bytes of messages one answer has, unless a single one has more.
_MOST_BYTES: Final = 192 * 1024


class Part(NamedTuple):
    """What one answer says of the histories of a shard."""

    # Each message with the subscription that matches it and the start of that.
    messages: Sequence[tuple[Message, str, Start]]
    # The letter that began to read, and how many of its messages the answers so far have.
    letter: int
    taken: int
    # Whether that are all.
    is_last: bool
    # As in `HistoryReading`.
    has_cursor: bool
    gaps: Mapping[str, int]
    lost: Mapping[str, Sequence[int]]


def asked_of(starts: Starts, patterns: Sequence[str]) -> bytes:
    """Return the letter that begins to read the histories of these subscriptions."""
    named = {name: list(start) for name, start in starts.named.items()}
    return to_json({"patterns": [*patterns], "start": list(starts.ordinary), "named": named})


def more_of(part: Part) -> bytes:
    """Return the letter that asks for what follows this part."""
    return to_json({"letter": part.letter, "taken": part.taken})


def starts_in(asked: Mapping[str, Any]) -> Starts:
    """Return what the first letter says about starts."""
    named = {name: Start(*start) for name, start in asked["named"].items()}
    return Starts(Start(*asked["start"]), named)


def answer_with(
    reading: HistoryReading, ids: Sequence[int], letter: int, count: int
) -> tuple[bytes, int]:
    """Return the answer with the messages that follow the first `count`, and where it ends."""
    rows: list[list[Any]] = []
    wires: list[bytes] = []
    size = 0
    for id in ids[count:]:
        found = reading.found[id]
        message = found.message
        size += len(message.wire)
        if wires and size > _MOST_BYTES:
            break
        row = [id, len(message.wire), message.channel, message.sender]
        more = attributes_of(message, Way.HISTORY)
        rows.append([*row, more, found.pattern, list(found.start)])
        wires.append(message.wire)
    head = {
        "messages": rows,
        "letter": letter,
        "taken": count + len(rows),
        "is_last": count + len(rows) == len(ids),
        "has_cursor": reading.has_cursor,
        "gaps": reading.gaps,
        "lost": {name: list(ends) for name, ends in reading.lost.items()},
    }
    return b"".join([dumps(head), b"\n", *wires]), count + len(rows)


def part_of(answer: bytes) -> Part:
    """Undo `answer_with`. Raises `ValueError`, `KeyError` or `TypeError` for another form."""
    line, _, wires = answer.partition(b"\n")
    head = loads(line)
    messages: list[tuple[Message, str, Start]] = []
    at = 0
    for id, size, channel, sender, more, pattern, start in head["messages"]:
        message = Message(wires[at : at + size], id=id, channel=channel, sender=sender)
        put_attributes(message, more)
        messages.append((message, pattern, Start(*start)))
        at += size
    return Part(**{**head, "messages": messages})
