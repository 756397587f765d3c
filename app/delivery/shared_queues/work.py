"""Messages of work queues, and which receivers refused each."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord


class WorkRefusal(NamedTuple):
    """A receiver's refusal of a message of a work queue. Other receivers may accept it."""

    # The `key` of the receiver.
    key: str
    code: ErrorCode
    text: str


class _Work(MessageRecord):
    """The record of a message of a work queue. Copies of the message share it."""

    __slots__ = ("refusals",)

    def __init__(self, refusals: Sequence[WorkRefusal] = ()) -> None:
        self.refusals = refusals


def is_work(message: Message) -> bool:
    """Whether the message belongs to a work queue."""
    return record_of(message.records, _Work) is not None


def refusals_of(message: Message) -> Sequence[WorkRefusal]:
    """Return the refusals of the message, oldest first."""
    work = record_of(message.records, _Work)
    return () if work is None else work.refusals


def make_work(message: Message, refusals: Sequence[WorkRefusal] = ()) -> None:
    """Let the message belong to the work queue of its channel, with these refusals."""
    message.records = with_record(message.records, _Work(refusals))
