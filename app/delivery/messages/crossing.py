"""Which messages cross to other shards, and how."""

from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.message import Message, MessageRecord


class Crossing(MessageRecord):
    """The record of a message that other shards get, too.

    A stored message is appended to the log by the call that stores it; any other one when it is
    shown here.
    """

    __slots__ = ("is_framed", "is_stored")

    def __init__(self) -> None:
        self.is_stored = False
        # Whether a frame has it already.
        self.is_framed = False

    def is_of_copies(self) -> bool:
        # The others have the original.
        return False

    @classmethod
    def add_to(cls, message: Message) -> "Crossing":
        """Let the message cross."""
        crossing = cls()
        message.records = with_record(message.records, crossing)
        return crossing


def crossing_of(message: Message) -> Crossing | None:
    """Return the message's record, or None if it does not cross."""
    return record_of(message.records, Crossing)
