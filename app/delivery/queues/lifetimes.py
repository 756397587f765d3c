"""The messages of a queue that have a lifetime, sorted by expiry."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from operator import attrgetter

from holdfast.delivery.messages.message import Message

_by_end = attrgetter("expires_ms")


def add(expiring: list[Message], message: Message) -> None:
    """Insert the message after those that expire earlier."""
    insort(expiring, message, key=_by_end)


def remove(expiring: list[Message], messages: Iterable[Message]) -> None:
    """Remove these messages, and ignore any that are missing."""
    for message in messages:
        place = bisect_left(expiring, message.expires_ms, key=_by_end)
        while place < len(expiring) and expiring[place].expires_ms == message.expires_ms:
            if expiring[place] is message:
                del expiring[place]
                break
            place += 1


def remove_expired(expiring: list[Message], now_ms: int, most: int | None) -> list[Message]:
    """Remove and return up to `most` expired messages."""
    over = expiring[: bisect_right(expiring, now_ms, key=_by_end)][:most]
    del expiring[: len(over)]
    return over
