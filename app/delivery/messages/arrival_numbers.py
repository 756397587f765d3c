"""When messages of other shards came here: their ids are by other clocks."""

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord


class Arrival(MessageRecord):
    """The record of a message of another shard: it stands in queues here by this number."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


def note_arrival(message: Message, number: int) -> None:
    """Let the message stand in queues where one with this id would, which this shard has given."""
    message.records = with_record(message.records, Arrival(number))


def arrival_of(message: Message) -> int | None:
    """Return the number by which the message stands in queues; None if its id says that."""
    if message.records is None:
        return None
    arrival = record_of(message.records, Arrival)
    return None if arrival is None else arrival.number
