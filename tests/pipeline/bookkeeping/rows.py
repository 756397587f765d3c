"""Rows of a report by their keys, and what they have in common: times are microseconds."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from holdfast.journal.schema import NS_PER_US
from tests.pipeline.bookkeeping.ledger import Copy, End, Message

Row = dict[str, Any]
Key = tuple[Any, ...]
Rows = dict[Key, Row]

MINUTE_US, HOUR_US, DAY_US = 60_000_000, 3_600_000_000, 86_400_000_000
DONE = (End.ACKED, End.WRITTEN)


def channel_of(message: Message) -> str:
    return "/ret/*" if message.channel.startswith("/ret/") else message.channel


def id_us(message: Message) -> int:
    return message.id // NS_PER_US


def by_channel(copies: Iterable[Copy]) -> dict[str, list[Copy]]:
    found: dict[str, list[Copy]] = defaultdict(list)
    for copy in copies:
        found[channel_of(copy.message)].append(copy)
    return found


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def minute_of(us: int) -> int:
    return us - us % MINUTE_US


def ended_us(copy: Copy) -> int:
    assert copy.ended is not None
    return copy.ended.us


def deliveries(copies: Iterable[Copy]) -> list[int]:
    """Return the times until the first hand-over of copies that are not in that queue any more."""
    return [
        stay.hand_overs[0].us - id_us(copy.message)
        for copy in copies
        for stay in copy.stays
        if not copy.generation
        and stay.hand_overs
        and not stay.former
        and (stay is not copy.stay or copy.end is not None)
    ]
