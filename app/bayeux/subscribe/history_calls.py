"""What a shard asks another one about its histories, and the form of the answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from holdfast.bayeux.state.calls import Answer, Asking
from holdfast.bayeux.subscribe.catching_up import HistoryReading
from holdfast.bayeux.wire.starts import Start, Starts
from holdfast.delivery.messages.message import Message

# What the operation is called.
HISTORIES: Final = "histories"
# How many bytes of messages one answer has, unless a single one has more.
_MOST_BYTES: Final = 192 * 1024


class Part(NamedTuple):
    """What one answer says of the histories of a shard."""

    enclosed: Sequence[Message]
    # For each message, the subscription that matches it and the start of that.
    found: Sequence[Sequence[Any]]
    # The number of the reading, and how many of its messages the answers so far have.
    reading: int
    taken: int
    # Whether that are all.
    is_last: bool
    # As in `HistoryReading`.
    has_cursor: bool
    gaps: Mapping[str, int]
    lost: Mapping[str, Sequence[int]]


def asked_of(starts: Starts, patterns: Sequence[str]) -> Asking:
    """Return what begins to read the histories of these subscriptions."""
    named = {name: [*start] for name, start in starts.named.items()}
    return {"patterns": patterns, "start": [*starts.ordinary], "named": named}


def starts_in(asked: Asking) -> Starts:
    """Return what that says about starts."""
    named = {name: Start(*start) for name, start in asked["named"].items()}
    return Starts(Start(*asked["start"]), named)


def part_with(reading: HistoryReading, ids: Sequence[int], number: int, count: int) -> Answer:
    """Return the answer with the messages that follow the first `count`."""
    messages: list[Message] = []
    size = 0
    for id in ids[count:]:
        message = reading.found[id].message
        size += len(message.wire)
        if messages and size > _MOST_BYTES:
            break
        messages.append(message)
    found = [reading.found[each.id] for each in messages]
    taken = count + len(messages)
    return {
        "enclosed": messages,
        "found": [[each.pattern, [*each.start]] for each in found],
        "reading": number,
        "taken": taken,
        "is_last": taken == len(ids),
        "has_cursor": reading.has_cursor,
        "gaps": reading.gaps,
        "lost": {name: [*ends] for name, ends in reading.lost.items()},
    }
