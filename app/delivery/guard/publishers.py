"""The publishers whose messages a receiver accepted last.

To the guard, a receiver is broken only if it refuses a publisher whose messages it used to accept.
"""

from typing import Final

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.queues.receivers import Receiver

# A name that no publisher has. The server's own messages have an empty one.
_NOBODY_YET: Final = "/"


class _Publishers:
    """The record of a receiver: the last two publishers whose messages it accepted."""

    __slots__ = ("last", "one_before")

    def __init__(self, last: str) -> None:
        self.last = last
        self.one_before = _NOBODY_YET


def accepted_from(receiver: Receiver, publisher: str) -> None:
    """Record that the receiver accepted a message of this publisher."""
    publishers = record_of(receiver.records, _Publishers)
    if publishers is None:
        receiver.records = with_record(receiver.records, _Publishers(publisher))
    elif publisher != publishers.last:
        publishers.one_before, publishers.last = publishers.last, publisher


def knows(receiver: Receiver, publisher: str) -> bool:
    """Return whether the receiver recently accepted a message of this publisher."""
    publishers = record_of(receiver.records, _Publishers)
    if publishers is None:
        return False
    return publisher == publishers.last or publisher == publishers.one_before
