"""The messages of a queue that have a lifetime, in the order in which they expire."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from operator import attrgetter

from holdfast.delivery.messages import Message

_by_end = attrgetter("expires_ms")


def add(mortals: list[Message], message: Message) -> None:
    """Insert the message behind those whose lifetime ends before."""
    insort(mortals, message, key=_by_end)


def remove(mortals: list[Message], messages: Iterable[Message]) -> None:
    """Remove these messages; ignore those that are not there."""
    for message in messages:
        place = bisect_left(mortals, message.expires_ms, key=_by_end)
        while place < len(mortals) and mortals[place].expires_ms == message.expires_ms:
            if mortals[place] is message:
                del mortals[place]
                break
            place += 1


def take_expired(mortals: list[Message], now_ms: int, most: int | None) -> list[Message]:
    """Remove and return up to `most` messages whose lifetime is over."""
    over = mortals[: bisect_right(mortals, now_ms, key=_by_end)][:most]
    del mortals[: len(over)]
    return over
