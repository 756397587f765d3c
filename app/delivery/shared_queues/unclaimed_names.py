"""Receivers that were created for a message to their name, before any client has come.

They take no messages to their subject.
"""

from holdfast.delivery.basics.feature_records import record_of, with_record, without_record
from holdfast.delivery.queues.receivers import Receiver


class _Unclaimed:
    """The record of such a receiver until a client comes."""

    __slots__ = ()


def leave_unclaimed(receiver: Receiver) -> None:
    """Record that no client has come yet."""
    receiver.records = with_record(receiver.records, _Unclaimed())


def is_unclaimed(receiver: Receiver) -> bool:
    """Whether no client has come yet."""
    return record_of(receiver.records, _Unclaimed) is not None


def claim(receiver: Receiver) -> bool:
    """Record that a client has come. Returns whether it is the first."""
    is_first = is_unclaimed(receiver)
    if is_first:
        receiver.records = without_record(receiver.records, _Unclaimed)
    return is_first
