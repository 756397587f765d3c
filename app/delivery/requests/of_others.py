"""What crosses to other shards with the message of a request."""

from typing import NamedTuple

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord
from holdfast.delivery.requests.request import request_of


class Asked(NamedTuple):
    """What the shards of receivers know of a request."""

    # The channel that responders publish to.
    address: str
    mode: str
    timeout_ms: int
    deadline_ms: int


class AskedElsewhere(MessageRecord):
    """The record of a message that is a request of another shard."""

    __slots__ = ("asked",)

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def mark(self, message: Message) -> None:
        """Let the message be such a request."""
        message.records = with_record(message.records, self)


def far_request_in(message: Message) -> Asked | None:
    """Return the request of another shard that the message is, if it is one."""
    record = record_of(message.records, AskedElsewhere)
    return None if record is None else record.asked


def asked_by(message: Message) -> Asked | None:
    """Return what other shards need to know of the request that the message is, if it is one."""
    request = request_of(message)
    if request is None:
        return None
    return Asked(request.address, request.mode.value, request.timeout_ms, request.deadline_ms)
